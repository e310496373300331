package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// errNoTracer: this machine cannot slow a disk down.
var errNoTracer = fmt.Errorf("%w strace, which may trace what it starts", errMissing)

// tracer looks whether strace is there, and may.
func tracer() error {
	if out, err := exec.Command("strace", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %w: %s", errNoTracer, err, out)
	}
	return nil
}

// slowed begins the command of a server whose disk is slow: its writes into files
// and its syncs return late, each by so much.
func (s *servers) slowed() []string {
	if s.o.slow == 0 {
		return nil
	}
	const calls = "pwrite64,fsync,fdatasync,openat"
	return []string{"strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + calls,
		"-e", fmt.Sprintf("inject=fsync,fdatasync,pwrite64:delay_exit=%d", s.o.slow.Microseconds())}
}

// playSlow has runs go on above a slow disk. All lives, so no lease may end; what
// waits for the disk is bounded by who waits for its answer.
func (t *theatre) playSlow() {
	var mu sync.Mutex
	expired := 0
	stop, err := t.client.Watch(func(e client.Event) {
		var m gateway.ShardMoved
		if e.Kind == "shard.taken" || e.Kind == "shard.released" {
			if json.Unmarshal(e.Data, &m) == nil && m.Why == "expired" {
				mu.Lock()
				expired++
				mu.Unlock()
			}
		}
	})
	if err != nil {
		t.found.add("%v", err)
		return
	}
	defer stop()
	base := t.memory()
	began := time.Now()
	most := base
	if t.o.broken {
		go t.faint()
	}
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(10 * poll):
				most = max(most, t.memory())
			}
		}
	})
	t.volley(t.o.runs)
	close(over)
	wait.Wait()
	t.indexed()
	mu.Lock()
	defer mu.Unlock()
	fmt.Printf("%d runs above a disk that takes %v longer for each write and sync: %v; %d leases ended meanwhile; the largest node had %d MiB, and %d at the beginning; of at most %d appends under way\n",
		t.o.runs, t.o.slow, time.Since(began).Round(time.Millisecond), expired, most>>20, base>>20, jetstream.InFlightMax)
	t.judgeSlow(expired, base, most)
}

// judgeSlow: nobody may be taken for dead because of the disk, and what waits for it is
// bounded. A node of no size was not measured.
func (t *theatre) judgeSlow(expired int, base, most int64) {
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

// memory is that of the largest node.
func (t *theatre) memory() (most int64) {
	for _, m := range t.nodes.list {
		most = max(most, rss(m.cmd.Process.Pid))
	}
	return most
}
