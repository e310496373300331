package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// errNoTracer means that this machine cannot slow a disk down.
var errNoTracer = fmt.Errorf("%w strace, which may trace what it starts", errMissing)

// checkStrace looks whether strace is there, and may.
func checkStrace() error {
	if out, err := exec.Command("strace", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", errNoTracer, err, out)
	}
	return nil
}

// slowCommand begins the command of a server whose disk is slow: its writes into files
// and its syncs return late, each by so much.
func (s *servers) slowCommand() []string {
	if s.o.slow == 0 {
		return nil
	}
	const calls = "pwrite64,fsync,fdatasync,openat"
	return []string{"strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + calls,
		"-e", fmt.Sprintf("inject=fsync,fdatasync,pwrite64:delay_exit=%d", s.o.slow.Microseconds())}
}

// slowLeases collects the events about leases above a slow disk.
type slowLeases struct {
	mu      sync.Mutex
	expired int       // leases of nodes that live
	dead    string    // the id of the node that died, with the leases that it had
	had     int       //
	struck  time.Time // when it died
	taken   int       // of its leases
	last    time.Time // when the last of them was taken
}

func (l *slowLeases) noteEvent(e client.Event) {
	var m event.ShardMoved
	if e.Kind != event.KindShardTaken && e.Kind != event.KindShardReleased || json.Unmarshal(e.Data, &m) != nil || m.Why != "expired" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead == "" || e.Kind == event.KindShardReleased && e.Agent != strings.ToLower(l.dead) || e.Kind == event.KindShardTaken && m.Other != l.dead:
		l.expired++
	case e.Kind == event.KindShardTaken:
		l.taken++
		l.last = time.Now()
	}
}

// killNode kills a node in the middle of the runs; no other node replaces it.
func (l *slowLeases) killNode(t *testCluster) {
	time.Sleep(t.o.ttl / 4)
	m := t.nodes.list[0]
	list, err := t.client.Nodes(context.Background())
	if err != nil {
		t.found.add("who holds what: %v", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range list {
		if n.Name == m.name {
			l.dead, l.had = n.ID, n.Held()
		}
	}
	l.struck = time.Now()
	b := &fault{no: 1, kind: killed, node: m.name, at: l.struck}
	t.faults = append(t.faults, b)
	t.nodes.setReady(m, false)
	t.observer.faultBegins(b)
	t.nodes.signalNode(m, syscall.SIGKILL)
}

// allTaken reports whether all leases of the dead node have been taken.
func (l *slowLeases) allTaken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken >= l.had
}

// slowDisk is the scenario in which the disk beneath the servers is slow and a node dies.
type slowDisk struct{ *testCluster }

// run makes runs continue above a slow disk while a node dies. No lease of another node may end,
// and other nodes take over those of the dead node; the writes that wait for the disk are bounded.
func (t *slowDisk) run() {
	leases := &slowLeases{}
	stop, err := t.client.Watch(leases.noteEvent)
	if err != nil {
		t.found.add("%v", err)
		return
	}
	defer stop()
	base := t.largestNode()
	began := time.Now()
	most := base
	if t.o.broken {
		go t.freezeOne()
	} else {
		t.nodes.wait.Go(func() { leases.killNode(t.testCluster) })
	}
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(10 * poll):
				most = max(most, t.largestNode())
			}
		}
	})
	t.load.runBatch(t.o.runs)
	close(over)
	wait.Wait()
	t.checkIndex()
	took := time.Since(began)
	t.nodes.awaitFaults()
	if err := waitUntil(t.o.ttl+t.o.slack, leases.allTaken); err != nil {
		t.found.add("%d of %d shards of the dead node were taken over %v after the runs", leases.taken, leases.had, t.o.ttl+t.o.slack)
	}
	leases.mu.Lock()
	defer leases.mu.Unlock()
	fmt.Printf("%d runs above a disk that takes %v longer for each write and sync: %v; %d leases of nodes that live ended meanwhile; the largest node had %d MiB, and %d at the beginning; of at most %d appends under way\n",
		t.o.runs, t.o.slow, took.Round(time.Millisecond), leases.expired, most>>20, base>>20, jetstream.InFlightMax)
	if leases.dead != "" {
		fmt.Printf("a node died: its %d shards were taken over within %v (TTL %v)\n", leases.had, leases.last.Sub(leases.struck).Round(time.Millisecond), t.o.ttl)
		if late := leases.last.Sub(leases.struck); late > t.o.ttl+t.o.slack {
			t.found.add("the shards of the dead node were taken over after %v", late)
		}
	}
	t.judgeLeases(leases.expired, base, most)
}

// judgeLeases judges the scenario: no node may be taken for dead because of the disk, and what
// waits for it is bounded. A node of size 0 was not measured.
func (t *slowDisk) judgeLeases(expired int, base, most int64) {
	if expired > 0 {
		t.found.add("%d leases ended, and everybody lives", expired)
	}
	if base == 0 {
		t.found.add("no node could be measured")
	}
	if most-base > slowGrowth {
		t.found.add("a node grew by %d MiB", (most-base)>>20)
	}
}

// slowGrowth is by how much a node may grow while it waits for the disk.
const slowGrowth = 128 << 20

// largestNode returns the memory of the largest node.
func (t *slowDisk) largestNode() (most int64) {
	for _, m := range t.nodes.list {
		most = max(most, residentMemory(m.cmd.Process.Pid))
	}
	return most
}
