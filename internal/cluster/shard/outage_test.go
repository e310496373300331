package shard_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
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

// cuttableWire is the connection between nodes and the server, and can be cut.
type cuttableWire struct {
	e     *embedded.Server
	mu    sync.Mutex
	cut   bool
	flow  chan struct{} // closed while bytes come through
	conns map[net.Conn]struct{}
	wait  sync.WaitGroup
}

// errCut is the error of a connection through a wire that is cut.
var errCut = errors.New("the wire is cut")

// newWire lays a wire to a server.
func newWire(t *testing.T, e *embedded.Server) *cuttableWire {
	t.Helper()
	w := &cuttableWire{e: e, flow: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(w.flow)
	t.Cleanup(func() {
		w.setCut(true)
		w.wait.Wait()
	})
	return w
}

// InProcessConn connects to the server through the wire.
func (w *cuttableWire) InProcessConn() (net.Conn, error) {
	far, err := w.e.InProcessConn()
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	if !w.trackConns(near, far) {
		return nil, errCut
	}
	w.copyDelayed(near, far)
	w.copyDelayed(far, near)
	return client, nil
}

// queued is how many writes a wire holds back, like the buffers of a real one.
const queued = 10_000

// copyDelayed is one direction. Data that is sent while the wire is held waits in it.
func (w *cuttableWire) copyDelayed(to, from net.Conn) {
	queue := make(chan []byte, queued)
	w.wait.Go(func() {
		defer close(queue)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				queue <- data[:n]
			}
			if err != nil { // the end of the connection
				return
			}
		}
	})
	w.wait.Go(func() {
		for data := range queue {
			<-w.flowChannel()
			if _, err := to.Write(data); err != nil {
				_, _ = to.Close(), from.Close() // ends the other goroutine
			}
		}
		_ = to.Close()
	})
}

func (w *cuttableWire) flowChannel() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flow
}

// holdData delays all data from now on, without an error; let releases it.
func (w *cuttableWire) holdData() (let func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flow = make(chan struct{})
	return sync.OnceFunc(func() { close(w.flow) })
}

// trackConns notes two ends, unless the wire is cut.
func (w *cuttableWire) trackConns(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		if w.cut {
			_ = c.Close()
		} else {
			w.conns[c] = struct{}{}
		}
	}
	return !w.cut
}

// setCut cuts the wire, or mends it.
func (w *cuttableWire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for c := range w.conns {
			_ = c.Close()
		}
		clear(w.conns)
	}
}

// connectNode connects through a wire, as to a server elsewhere.
func (w *cuttableWire) connectNode(t *testing.T) *nats.Conn {
	t.Helper()
	user, password := w.e.Credential(bus.RoleNode)
	nc, err := bus.Connect(bus.Options{User: user, Password: password,
		Extra: []nats.Option{nats.InProcessServer(w), nats.ReconnectWait(10 * time.Millisecond), nats.ReconnectJitter(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// shardHolders says who holds each shard.
func shardHolders(members ...*leaseNode) map[int]string {
	holders := map[int]string{}
	for _, m := range members {
		for _, s := range m.HeldShards() {
			if _, ok := m.Holds(s); ok {
				holders[s] = m.ID()
			}
		}
	}
	return holders
}

// TestNodesKeepTheirShardsThroughAnOutage: no node could be reached for longer than the TTL,
// so none is known to be dead. The node that returns first does not take the shards of the
// other.
//
//behaviour:shows F2
func TestNodesKeepTheirShardsThroughAnOutage(t *testing.T) {
	bustest.Bubble(t, nodesKeepTheirShardsThroughAnOutage)
}

func nodesKeepTheirShardsThroughAnOutage(t *testing.T) {
	e := startServer(t)
	first, second := newWire(t, e), newWire(t, e)
	a, b := startLeaseNodeOver(t, first.connectNode(t), "a", short), startLeaseNodeOver(t, second.connectNode(t), "b", short)
	waitUntil(t, "both hold a part", isHeldByBest(a, b))
	before := shardHolders(a, b)
	first.setCut(true)
	second.setCut(true)
	waitUntil(t, "nobody believes in a lease", func() bool { return len(shardHolders(a, b)) == 0 })
	watcher, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	waitUntil(t, "the sessions of the nodes have ended, and with them their leases", func() bool { return len(nodeKeys(t, watcher)) == 0 })
	a.mu.Lock()
	clear(a.took)
	a.mu.Unlock()
	first.setCut(false)
	waitUntil(t, "the first one has its part again", func() bool { return maps.Equal(shardHolders(a), shardsOf(before, a.ID())) })
	second.setCut(false)
	waitUntil(t, "both hold a part again", isHeldByBest(a, b))
	if after := shardHolders(a, b); !maps.Equal(after, before) {
		t.Errorf("shards moved:\n%v\n%v", before, after)
	}
	a.mu.Lock()
	for s := range a.took {
		if before[s] != a.ID() {
			t.Errorf("shard %d was taken from a node that lives", s)
		}
	}
	a.mu.Unlock()
	a.closeKeeper(t)
	b.closeKeeper(t)
}

// shardsOf is the part of one holder.
func shardsOf(holders map[int]string, id string) map[int]string {
	part := map[int]string{}
	for s, holder := range holders {
		if holder == id {
			part[s] = holder
		}
	}
	return part
}

// nodeKeys are those of the nodes.
func nodeKeys(t *testing.T, nc *nats.Conn) []string {
	t.Helper()
	found, err := openBuckets(t, nc).Nodes.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(chanValues(found.Keys()))
}

func chanValues[T any](c <-chan T) func(func(T) bool) {
	return func(yield func(T) bool) {
		for v := range c {
			if !yield(v) {
				return
			}
		}
	}
}

// TestLostReplyCostsNoLease: a request is lost with its connection, and the
// server is back long before the leases expire. No lease is lost, because no node waits
// longer for a reply than until the next renewal.
func TestLostReplyCostsNoLease(t *testing.T) {
	bustest.Bubble(t, lostReplyCostsNoLease)
}

func lostReplyCostsNoLease(t *testing.T) {
	e := startServer(t)
	w := newWire(t, e)
	a := startLeaseNodeOver(t, w.connectNode(t), "a", long)
	waitUntil(t, "it holds all", isHeldByBest(a))
	epochs := a.heldEpochs()
	let := w.holdData()
	<-time.After(long * 3 / 10) // all leases were to be renewed meanwhile
	w.setCut(true)
	let()
	w.setCut(false)
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for s, epoch := range epochs {
			if now, ok := a.Holds(s); !ok || now != epoch {
				t.Fatalf("shard %d: epoch %d, %v, and it was %d", s, now, ok, epoch)
			}
		}
	}
	a.closeKeeper(t)
}

// TestRecreatedBucketsAreDetected: an operator removed the buckets of leases and nodes,
// they start at revision 1 again, and no event reports that a node has died meanwhile. The
// other nodes regain their own shards, and take those of the dead node (PROTOCOL P5).
func TestRecreatedBucketsAreDetected(t *testing.T) {
	bustest.Bubble(t, recreatedBucketsAreDetected)
}

func recreatedBucketsAreDetected(t *testing.T) {
	e := startServer(t)
	a, b, dead := startLeaseNode(t, e, "a", short), startLeaseNode(t, e, "b", short), startLeaseNode(t, e, "dead", short)
	waitUntil(t, "all hold a part", isHeldByBest(a, b, dead))
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names, err := names.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	dead.nc.Close()
	for _, bucket := range []string{names.ShardBucket(), names.NodeBucket()} {
		if err := js.DeleteKeyValue(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
	}
	openBuckets(t, nc)
	waitUntil(t, "two hold all", isHeldByBest(a, b))
	c := startLeaseNode(t, e, "c", short)
	waitUntil(t, "the one that came has a part too", isHeldByBest(a, b, c))
	for _, m := range []*leaseNode{a, b, c, dead} {
		m.closeKeeper(t)
	}
}

// TestAShardThatWasTakenAgainIsNotGivenForAnOldReason: a shard was to be given away, its
// lease was lost before its work ended, and it was taken again. The end of the old work
// must not release the new lease.
func TestAShardThatWasTakenAgainIsNotGivenForAnOldReason(t *testing.T) {
	bustest.Bubble(t, aShardThatWasTakenAgainIsNotGivenForAnOldReason)
}

func aShardThatWasTakenAgainIsNotGivenForAnOldReason(t *testing.T) {
	e := startServer(t)
	a := startLeaseNode(t, e, "a", long, allShards()...)
	waitUntil(t, "it holds all", isHeldByBest(a))
	b := startLeaseNode(t, e, "b", long)
	if err := b.RequestLeave(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "all are to come to rest", a.allMustRest)
	b.closeKeeper(t)
	if err := a.RequestLeave(t.Context(), "a", false); err != nil {
		t.Fatal(err)
	}
	leases := openBuckets(t, a.nc).Shards
	before := map[int]uint64{}
	for s := range shards {
		before[s], _ = a.Holds(s)
		if err := leases.Delete(t.Context(), fmt.Sprintf("default.%d", s)); err != nil {
			t.Fatal(err)
		}
	}
	taken := map[int]uint64{}
	waitUntil(t, "it holds all again", func() bool {
		for s := range shards {
			taken[s], _ = a.Holds(s)
		}
		return isHeldByBest(a)() && !slices.ContainsFunc(allShards(), func(s int) bool { return taken[s] == before[s] })
	})
	a.finishWork()
	for end := time.Now().Add(shard.TTLMin); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for s, epoch := range taken {
			if now, ok := a.Holds(s); !ok || now != epoch {
				t.Fatalf("shard %d: epoch %d, %v, and it was %d", s, now, ok, epoch)
			}
		}
	}
	a.closeKeeper(t)
}
