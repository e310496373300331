package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/failpoint"
)

// Leaks.
const (
	warmUp       = 60              // runs before the base is measured
	leakSlack    = 5               // goroutines and descriptors that a node may have more than then
	leakPatience = 3 * time.Minute // runs that are over may be remembered for a while
)

// nodeUsage is what one node and the server hold.
type nodeUsage struct {
	goroutines, descriptors, rss int
}

// leakCheck is the scenario that measures whether ended runs leave anything behind.
type leakCheck struct{ *testCluster }

// run starts and ends runs, and measures whether anything of them is left.
func (t *leakCheck) run() {
	t.load.runBatch(warmUp)
	base, consumers := t.measureUsages(), t.countConsumers()
	fmt.Printf("base: %v, %d consumers\n", base, consumers)
	t.load.runBatch(t.o.leaks)
	var now map[string]nodeUsage
	var left int
	err := waitUntil(leakPatience, func() bool {
		now, left = t.measureUsages(), t.countConsumers()
		return len(grownNodes(base, now)) == 0 && left <= consumers
	})
	fmt.Printf("after %d runs: %v, %d consumers\n", len(t.load.runs), now, left)
	if err != nil {
		t.found.add("after %d runs more is held than before: %v, %d consumers instead of %d", len(t.load.runs), grownNodes(base, now), left, consumers)
	}
}

// grownNodes are the nodes that hold more than they did.
func grownNodes(base, now map[string]nodeUsage) map[string]nodeUsage {
	more := map[string]nodeUsage{}
	for name, b := range base {
		n := now[name]
		if n.goroutines > b.goroutines+leakSlack || n.descriptors > b.descriptors+leakSlack {
			more[name] = n
		}
	}
	return more
}

// measureUsages measures all nodes.
func (t *leakCheck) measureUsages() map[string]nodeUsage {
	all := map[string]nodeUsage{}
	for _, m := range t.nodes.list {
		all[m.name] = t.usageOf(m)
	}
	return all
}

// usageOf asks one node for its number of goroutines, and the system for the rest.
func (t *leakCheck) usageOf(m *nodeProcess) (u nodeUsage) {
	path := filepath.Join(t.files.trapsDir(m.name), failpoint.StatsFile)
	_ = os.Remove(path) // of the time before
	t.nodes.signalNode(m, syscall.SIGUSR1)
	if err := waitUntil(trapPatience, func() bool { _, err := os.Stat(path); return err == nil }); err != nil {
		t.found.add("%s does not say how many goroutines it has: %v", m.name, err)
		return u
	}
	data, err := os.ReadFile(path)
	if err == nil {
		u.goroutines, err = strconv.Atoi(string(data))
	}
	pid := strconv.Itoa(m.cmd.Process.Pid)
	list, listed := os.ReadDir(filepath.Join("/proc", pid, "fd"))
	if err != nil || listed != nil {
		t.found.add("%s cannot be measured: %v %v", m.name, err, listed)
	}
	u.descriptors = len(list)
	u.rss = int(residentMemory(m.cmd.Process.Pid) >> 10)
	return u
}

// countConsumers returns the number of consumers on the server.
func (t *leakCheck) countConsumers() (n int) {
	err := t.withJetStream(func(js jetstream.JetStream) error {
		list := js.ListStreams(context.Background())
		for info := range list.Info() {
			n += info.State.Consumers
		}
		return list.Err()
	})
	if err != nil {
		t.found.add("the consumers cannot be counted: %v", err)
	}
	return n
}

// withJetStream connects to the server for one call.
func (t *testCluster) withJetStream(use func(jetstream.JetStream) error) error {
	nc, err := bus.Connect(t.broker.options(bus.RoleNode, ""))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return use(js)
}

func (u nodeUsage) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d MB", u.goroutines, u.descriptors, u.rss>>10)
}
