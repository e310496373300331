package shard_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

const (
	patience = 2 * time.Minute
	shards   = 16
	// TTLs of leases: short where a test waits for the end of one, long where none may
	// end by itself, however slow the machine is.
	short, long = shard.TTLMin, 5 * shard.TTLMin
)

// startServer starts NATS in the process.
func startServer(t *testing.T) *embedded.Server {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StateDir: t.TempDir(), DontListen: true, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// connectJetStream connects as a node does, without keeping leases.
func connectJetStream(t *testing.T, e *embedded.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// leaseNode is a node that keeps leases, and nothing else.
type leaseNode struct {
	*shard.Keeper
	nc   *nats.Conn
	mu   sync.Mutex
	busy map[int]bool
	rest map[int]func() // of busy shards that are to be quiet
	took map[int]bool   // shards that were gained
	gave func()         // is called when some are lost
	log  safeBuffer
}

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

// linesWith counts the lines that have a text.
func (b *safeBuffer) linesWith(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (m *leaseNode) recordChanges(gained, lost []int) {
	m.mu.Lock()
	gave := m.gave
	for _, s := range gained {
		m.took[s] = true
	}
	m.mu.Unlock()
	if len(lost) > 0 && gave != nil {
		gave()
	}
}

// drainSlot calls done immediately for an idle shard, and later for a busy one.
func (m *leaseNode) drainSlot(s int, _ uint64, done func()) {
	m.mu.Lock()
	busy := m.busy[s]
	if busy {
		m.rest[s] = done
	}
	m.mu.Unlock()
	if !busy {
		done()
	}
}

// finishWork ends all work in progress.
func (m *leaseNode) finishWork() {
	m.mu.Lock()
	rest := m.rest
	m.rest = map[int]func(){}
	clear(m.busy)
	m.mu.Unlock()
	for _, done := range rest {
		done()
	}
}

func (m *leaseNode) isBusy(s int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.busy[s]
}

func startLeaseNode(t *testing.T, e *embedded.Server, name string, ttl time.Duration, busy ...int) *leaseNode {
	t.Helper()
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return startLeaseNodeOver(t, nc, name, ttl, busy...)
}

// openBuckets opens the buckets, and creates missing ones.
func openBuckets(t *testing.T, nc *nats.Conn) *bus.Buckets {
	t.Helper()
	b, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startLeaseNodeOver is join over a connection.
func startLeaseNodeOver(t *testing.T, nc *nats.Conn, name string, ttl time.Duration, busy ...int) *leaseNode {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names, err := names.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	m := &leaseNode{nc: nc, busy: map[int]bool{}, rest: map[int]func(){}, took: map[int]bool{}}
	for _, s := range busy {
		m.busy[s] = true
	}
	m.Keeper, err = shard.Start(t.Context(), shard.Config{JS: js, Buckets: openBuckets(t, nc), Names: names, Node: shard.Node{Name: name},
		Pools: []shard.Pool{{Name: "default", Shards: shards}}, TTL: ttl, IsBusy: m.isBusy, DrainShard: m.drainSlot, ShardsChanged: m.recordChanges,
		Logger: slog.New(slog.NewTextHandler(&m.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *leaseNode) closeKeeper(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m.Close(ctx)
}

// waitUntil waits for a condition that the cluster reaches without help.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it never came to this: %s", what)
		}
	}
}

// isHeldByBest reports whether each shard is held by the node that ranks first for it, and by no
// other. A node may have no shards: the ranking depends on the ids, which are random.
func isHeldByBest(members ...*leaseNode) func() bool {
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.ID()
	}
	return func() bool {
		for s := range shards {
			best := shard.BestNode("default", s, ids)
			for _, m := range members {
				if _, ok := m.Holds(s); ok != (m.ID() == best) {
					return false
				}
			}
		}
		return true
	}
}

// allShards lists every shard.
func allShards() []int {
	all := make([]int, shards)
	for s := range shards {
		all[s] = s
	}
	return all
}

// heldEpochs returns the epoch of each shard that the node holds.
func (m *leaseNode) heldEpochs() map[int]uint64 {
	epochs := map[int]uint64{}
	for _, s := range m.HeldShards() {
		epochs[s], _ = m.Holds(s)
	}
	return epochs
}

// allMustRest reports whether the work of every shard was asked to come to rest.
func (m *leaseNode) allMustRest() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.rest) == shards
}

// TestNodesShareTheShards: who comes gets a share, who leaves gives it back.
func TestNodesShareTheShards(t *testing.T) { bustest.Bubble(t, nodesShareTheShards) }

func nodesShareTheShards(t *testing.T) {
	e := startServer(t)
	a := startLeaseNode(t, e, "a", long)
	waitUntil(t, "the first node holds all", isHeldByBest(a))
	b, c := startLeaseNode(t, e, "b", long), startLeaseNode(t, e, "c", long)
	waitUntil(t, "three nodes hold a part each", isHeldByBest(a, b, c))
	waitUntil(t, "each knows of all three", func() bool { return len(a.Nodes()) == 3 && len(b.Nodes()) == 3 && len(c.Nodes()) == 3 })
	b.closeKeeper(t)
	waitUntil(t, "two nodes hold all", isHeldByBest(a, c))
	a.closeKeeper(t)
	c.closeKeeper(t)
	// The first node gave away its shards one at a time; each line of the log sums up what changed since the last one.
	if n := a.log.linesWith("shards changed"); n == 0 || n >= shards/2 {
		t.Errorf("%d lines about shards", n)
	}
}

// TestTheShardsOfADeadNodeAreTakenUnderAHigherEpoch: when its leases expire, without
// intervention (F2); and the dead node stops by its own clock.
//
//behaviour:shows F2
func TestTheShardsOfADeadNodeAreTakenUnderAHigherEpoch(t *testing.T) {
	bustest.Bubble(t, theShardsOfADeadNodeAreTakenUnderAHigherEpoch)
}

func theShardsOfADeadNodeAreTakenUnderAHigherEpoch(t *testing.T) {
	e := startServer(t)
	a := startLeaseNode(t, e, "a", short)
	waitUntil(t, "the first node holds all", isHeldByBest(a))
	before := a.heldEpochs()
	a.nc.Close() // it is cut off, and does not know why
	b := startLeaseNode(t, e, "b", short)
	waitUntil(t, "the other node holds all", isHeldByBest(b))
	for s := range shards {
		if epoch, _ := b.Holds(s); epoch <= before[s] {
			t.Errorf("shard %d: epoch %d after %d", s, epoch, before[s])
		}
		if _, ok := a.Holds(s); ok {
			t.Errorf("shard %d: the node that was cut off still believes in its lease", s)
		}
	}
	b.closeKeeper(t)
	a.closeKeeper(t)
}

// TestBusyShardStays: a shard moves only while no work is in progress in it.
func TestBusyShardStays(t *testing.T) { bustest.Bubble(t, busyShardStays) }

func busyShardStays(t *testing.T) {
	e := startServer(t)
	a := startLeaseNode(t, e, "a", long, allShards()...)
	waitUntil(t, "the first node holds all", isHeldByBest(a))
	b := startLeaseNode(t, e, "b", long)
	waitUntil(t, "the first node knows of the second", func() bool { return len(a.Nodes()) == 2 })
	if n := len(b.HeldShards()); n != 0 {
		t.Errorf("the second node holds %d shards that were busy", n)
	}
	a.finishWork()
	waitUntil(t, "what became idle moved", isHeldByBest(a, b))
	if err := b.RequestLeave(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the node that was asked to leave has given all", isHeldByBest(b))
	if err := b.RequestLeave(t.Context(), "a", false); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the node that may stay has a part again", isHeldByBest(a, b))
	a.StartDrain()
	waitUntil(t, "the node that leaves has given all", isHeldByBest(b))
	b.closeKeeper(t)
	a.closeKeeper(t)
}

// TestLeavingNodeWaitsForBusyShards: it keeps its lease until the work in
// the shard has come to its end.
func TestLeavingNodeWaitsForBusyShards(t *testing.T) {
	bustest.Bubble(t, leavingNodeWaitsForBusyShards)
}

func leavingNodeWaitsForBusyShards(t *testing.T) {
	e := startServer(t)
	a := startLeaseNode(t, e, "a", long, allShards()...)
	waitUntil(t, "the first node holds all", isHeldByBest(a))
	b := startLeaseNode(t, e, "b", long)
	a.StartDrain()
	waitUntil(t, "the others see it leave", func() bool {
		for _, n := range b.Nodes() {
			if n.Name == "a" && n.Leaving {
				return true
			}
		}
		return false
	})
	if n := len(a.HeldShards()); n != shards {
		t.Errorf("it gave %d shards that were busy", shards-n)
	}
	waitUntil(t, "all of them are asked to come to rest", a.allMustRest)
	a.finishWork()
	waitUntil(t, "the other one has all", isHeldByBest(b))
	b.closeKeeper(t)
	a.closeKeeper(t)
}

// TestLeavingNodeReleasesItsLeases: its keeper is closed while it gives shards away. No
// other node has to wait for a lease to expire.
func TestLeavingNodeReleasesItsLeases(t *testing.T) {
	bustest.Bubble(t, leavingNodeReleasesItsLeases)
}

func leavingNodeReleasesItsLeases(t *testing.T) {
	e := startServer(t)
	a, b := startLeaseNode(t, e, "a", long), startLeaseNode(t, e, "b", long)
	waitUntil(t, "both hold a part", isHeldByBest(a, b))
	ended := make(chan struct{})
	a.mu.Lock()
	a.gave = sync.OnceFunc(func() {
		go func() {
			defer close(ended)
			a.closeKeeper(t)
		}()
		<-time.After(20 * time.Millisecond) // the keeper has been told
	})
	a.mu.Unlock()
	a.StartDrain()
	<-ended
	leases := openBuckets(t, b.nc).Shards
	for s := range shards {
		held, err := leases.Get(t.Context(), fmt.Sprintf("default.%d", s))
		if err == nil && strings.Contains(string(held.Value()), a.ID()) {
			t.Errorf("the lease of %d is left behind", s)
		}
	}
	b.closeKeeper(t)
}
