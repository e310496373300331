package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// testCluster is a cluster under test: the server and the provider double live as long as
// the scenario, and nodes are started and stopped.
type testCluster struct {
	o        options
	p        *provider
	files    testDir
	broker   broker
	client   *client.Client
	nodes    *nodes
	observer *observer
	unwatch  func()
	load     *load
	faults   []*fault // of nodes
	began    time.Time
	found    problems
	servers  *serverFaults // nil: nothing is done to the server
}

// scenario is the set of faults that a cluster suffers while runs continue.
type scenario interface{ run() }

// runCluster runs a scenario and judges it.
func runCluster(o options) (err error) {
	dir, err := os.MkdirTemp("", "troupe-chaos-")
	if err != nil {
		return err
	}
	defer cleanOnSignal(dir, o.keep)()
	defer func() {
		if o.keep || err != nil {
			fmt.Println("kept, with what the nodes said, the problems and the logs of their runs:", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	o.breakOnPurpose()
	if o.slow > 0 {
		if err := checkStrace(); err != nil {
			return reportMissing(o, err)
		}
	}
	if err := o.buildBinaries(dir); err != nil {
		return err
	}
	o.applyScenario()
	t := &testCluster{o: o, p: newProvider(o.turns), began: time.Now()}
	defer t.p.Close()
	if t.files, err = newTestDir(o, t.p, dir); err != nil {
		return err
	}
	if err := t.openServer(); err != nil {
		return errors.Join(err, t.closeAll())
	}
	t.selectScenario().run()
	err = t.nodes.stopAll()
	judge := newClusterJudge(t)
	judge.judgeAll()
	t.servers.judgeFaults()
	if o.keep {
		err = errors.Join(err, t.observer.writeSlowest(filepath.Join(dir, "slowest")))
	}
	verdict := judge.printSummary()
	return errors.Join(err, t.keepEvidence(), t.closeAll(), verdict)
}

// buildBinaries builds the programs that were not given.
func (o *options) buildBinaries(dir string) (err error) {
	if o.troupe, err = givenOrBuilt(o.troupe, dir, "troupe", "cli"); err != nil {
		return err
	}
	o.node, err = givenOrBuilt(o.node, dir, "troupe-node", "node", "-tags", "chaos")
	return err
}

// applyScenario sets the options that a scenario implies.
func (o *options) applyScenario() {
	if o.gap == 0 {
		o.gap = o.ttl
	}
	if o.tokens == 0 {
		o.tokens = runTokens
	}
	switch {
	case o.trees+o.races > 0:
		o.kills, o.runs = 0, 0
	case o.storms+o.watchers > 0:
		o.kills = 0
	case o.slow > 0 || o.full != "":
		o.kills, o.servers = 0, max(o.servers, 1)
	case o.leaks > 0:
		o.turns, o.kills = 1, 0
	}
	if o.busy > 0 {
		o.turns, o.runs, o.atOnce, o.kills = 1, o.busy, o.busy, 1-min(o.drains, 1)
	}
}

// openServer starts the server, the nodes and the observer.
func (t *testCluster) openServer() error {
	if t.o.servers > 0 {
		return t.openServers()
	}
	server, err := embedded.Start(embedded.Config{StateDir: filepath.Join(t.files.dir, "state"), Port: embedded.FreePort, Lazy: true})
	if err != nil {
		return err
	}
	t.broker = singleServer{server}
	return t.startNodes()
}

// startNodes starts the nodes, the client, the observer and the load.
func (t *testCluster) startNodes() (err error) {
	if t.client, err = client.Dial(t.broker.options(bus.RoleClient, ""), ""); err != nil {
		return err
	}
	t.observer = &observer{acts: map[string]map[string]string{}, orphans: map[string]*fault{}, told: map[string][]seenEvent{}}
	if t.unwatch, err = t.client.Watch(t.observer.noteEvent); err != nil {
		return err
	}
	t.nodes = &nodes{t: t}
	for range t.o.nodes {
		if err := t.nodes.startNode(); err != nil {
			return err
		}
	}
	t.load = newLoad(t)
	return t.spreadShards()
}

const (
	// spreadPatience is how long nodes may take to share the shards.
	spreadPatience = 60 * time.Second
	// spreadStill is for how long no shard must have moved.
	spreadStill = 2 * time.Second
	// spreadTries is how often nodes to which chance gave no shard are exchanged.
	spreadTries = 10
)

// spreadShards waits until every node holds some shards and no shard moves any more, so that later
// moves are caused by the scenario. Chance assigns shards to nodes; a node without any leaves
// in order and is replaced.
func (t *testCluster) spreadShards() error {
	for range spreadTries {
		empty, err := t.awaitShards()
		if err != nil || len(empty) == 0 {
			return err
		}
		for _, name := range empty {
			fmt.Printf("%s got no shard: another node takes its place\n", name)
			if err := t.nodes.exchangeNode(name); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("in %d tries there was always a node without a shard", spreadTries)
}

// awaitShards waits until no shard moves any more. empty are the nodes that hold none of a pool.
func (t *testCluster) awaitShards() (empty []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), spreadPatience+2*t.o.ttl)
	defer cancel()
	was, since := "", time.Now()
	for {
		list, err := t.client.Nodes(ctx)
		if err != nil && !client.Lost(err) {
			return nil, err
		}
		var held string
		held, empty = listShards(list)
		if held != was || len(list) != t.o.nodes {
			was, since = held, time.Now()
		}
		still := time.Since(since)
		if still > spreadStill && len(empty) == 0 || still > 2*t.o.ttl+spreadStill { // a new node has none yet
			return empty, nil
		}
		if err := sleepFor(ctx, poll); err != nil {
			return nil, fmt.Errorf("the nodes never shared the shards: %w: %s", err, held)
		}
	}
}

// listShards returns which node holds what, and the nodes that hold nothing of a pool.
func listShards(list []client.NodeInfo) (held string, empty []string) {
	for _, n := range list {
		held += fmt.Sprintln(n.ID, n.Pools)
		if len(n.Shards) == 0 || len(n.Pools[names.MachinePool(machine)]) == 0 {
			empty = append(empty, n.Name)
		}
	}
	return held, empty
}

// poll is the interval at which conditions are checked.
const poll = 50 * time.Millisecond

func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *testCluster) closeAll() error {
	if t.nodes != nil {
		t.nodes.killAll()
	}
	if t.unwatch != nil {
		t.unwatch()
	}
	if t.client != nil {
		t.client.Close()
	}
	err := t.servers.closeWriters()
	if t.broker == nil {
		return err
	}
	return errors.Join(err, t.broker.Close())
}

// selectScenario returns the scenario that the options select.
func (t *testCluster) selectScenario() scenario {
	switch {
	case t.o.trees > 0:
		return &treeCancels{t}
	case t.o.busy > 0:
		return &busyNode{t}
	case t.o.watchers > 0:
		return &watcherLoad{t}
	case t.o.races > 0:
		return &budgetRaces{t}
	case t.o.storms > 0:
		return &spawnStorms{t}
	case t.o.slow > 0:
		return &slowDisk{t}
	case t.o.full != "":
		return &fullStore{t}
	case t.o.poison:
		return &poisonedLogs{t}
	case t.o.leaks > 0:
		return &leakCheck{t}
	}
	return &nodeFaults{testCluster: t}
}
