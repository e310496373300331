package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/internal/shard"
	"github.com/troupe-run/troupe/mailbox"
)

// holding is which logs this node acts on. With an embedded server the lock of
// the state directory is the lease of all of them: nobody waits for a TTL after
// a kill on one machine. On a server that others share each shard has its own.
type holding struct {
	keeper  atomic.Pointer[shard.Keeper]
	pools   pools
	busy    []atomic.Int64 // work under way, by slot
	reading *reading
	taking  *takeUps
	buckets *bus.Buckets
}

// pools are those that this node takes shards of. A slot is the number of a
// shard among those of all of them.
type pools []shard.Pool

// slot is where an address lives; not ok in a pool of others.
func (p pools) slot(at mailbox.Address) (slot int, ok bool) {
	name := cmp.Or(at.Pool(), bus.DefaultPool)
	for _, pool := range p {
		if pool.Name == name {
			return slot + mailbox.Shard(at, pool.Shards), true
		}
		slot += pool.Shards
	}
	return 0, false
}

func (p pools) slots() (n int) {
	for _, pool := range p {
		n += pool.Shards
	}
	return n
}

// hold fills in what decides where this node acts. In a cluster it begins to
// hold shards only by keepShards, when there is somebody to act on them.
func (h *Host) hold(ctx context.Context, b *bus.Buckets, cfg *actors.Config) error {
	if h.embedded != nil || h.cfg.Still {
		lease, err := gateway.Own(ctx, b, fmt.Sprintf("%s pid %d", h.cfg.Name, os.Getpid()))
		if err != nil {
			return err
		}
		cfg.Lease = lease
		cfg.Serves = func(string) bool { return true } // this node is all pools
		return nil
	}
	if err := h.openPools(ctx); err != nil {
		return err
	}
	l := &h.holding
	l.buckets = b
	l.busy, l.reading = make([]atomic.Int64, l.pools.slots()), newReading(l.pools)
	cfg.Post = ours{h.logs(), l.reading}
	cfg.Holds = func(at mailbox.Address) (uint64, bool) {
		k := l.keeper.Load()
		s, ok := l.pools.slot(at)
		if k == nil || !ok || !l.reading.open[s].Load() {
			return 0, false
		}
		return k.Holds(s)
	}
	count := func(of []atomic.Int64) func(mailbox.Address, int) {
		return func(at mailbox.Address, change int) {
			if s, ok := l.pools.slot(at); ok {
				of[s].Add(int64(change))
			}
		}
	}
	cfg.Alive, cfg.Busy = count(l.reading.alive), count(l.busy)
	cfg.Serves = func(pool string) bool { return len(h.serving(pool)) > 0 }
	return nil
}

// openPools opens the pools that this node serves, and makes what is missing.
func (h *Host) openPools(ctx context.Context) error {
	for _, name := range h.cfg.Pools {
		size := sizeOf(name)
		shards, err := h.post.Make(ctx, name, size.Shards, size.Streams)
		if err != nil {
			return err
		}
		h.holding.pools = append(h.holding.pools, shard.Pool{Name: name, Shards: shards})
	}
	return nil
}

// keepShards begins to hold shards, where there are others to share them with.
func (h *Host) keepShards(ctx context.Context) error {
	if h.holding.buckets == nil {
		return nil
	}
	js, err := jetstream.New(h.leases)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	buckets, err := h.holding.buckets.Over(ctx, js, h.names)
	if err != nil {
		return err
	}
	lines := h.holding.reading.draw()
	k, err := shard.Start(ctx, shard.Config{JS: js, Buckets: buckets, Names: h.names, Pools: h.holding.pools, TTL: h.cfg.LeaseTTL,
		Node: shard.Node{Name: cmp.Or(h.cfg.Name, h.cfg.Machine, "node"), Host: h.cfg.Machine, PID: os.Getpid(), Version: gateway.Version(),
			Profile: string(h.proof.Profile), Unproven: strings.Join(h.proof.Open(), ", "), Rules: h.cfg.Rules},
		Load: h.load, Moved: h.movedShard,
		Busy: func(s int) bool { return h.holding.busy[s].Load() > 0 },
		Quiet: func(s int, epoch uint64, done func()) {
			h.node.HandOver(fmt.Sprintf("shard %d", s), func(at mailbox.Address, lease uint64) bool {
				slot, ok := h.holding.pools.slot(at)
				return ok && lease == epoch && slot == s
			}, done)
		},
		Changed: h.changed, Logger: h.cfg.Logger})
	if err != nil {
		return err
	}
	h.holding.keeper.Store(k)
	h.holding.taking = h.newTakeUps()
	for _, l := range lines {
		l.look() // for what was taken before anybody could act on it
		h.writing.Go(func() { h.follow(l) })
	}
	h.writing.Go(h.watchPools)
	return nil
}

// Drain brings what is under way to its end and gives all logs away: to other
// nodes, where there are any, or to the next owner of the state directory.
// After it only Close makes sense. It returns early when ctx ends; what is
// still under way then is lost to whoever comes next.
func (h *Host) Drain(ctx context.Context) error {
	done := make(chan struct{})
	if k := h.holding.keeper.Load(); k != nil {
		k.Leave() // so that others take over as shards become quiet
	}
	h.node.HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("host: drain: %w", ctx.Err())
	}
}

// cluster is what the doors know of the nodes; nil where there is only this one.
func (h *Host) cluster() *gateway.Cluster {
	k := h.holding.keeper.Load()
	if k == nil {
		return nil
	}
	return &gateway.Cluster{Ask: k.Ask, TTL: cmp.Or(h.cfg.LeaseTTL, shard.TTLDefault), Nodes: func() []client.NodeInfo {
		list := []client.NodeInfo{}
		for _, n := range k.Nodes() {
			i := tellNode(n)
			if n.ID == k.ID() {
				i.Proof, i.Journal = &h.proof, h.journal.info()
				i.Live, i.Resting = h.census.count()
				i.LiveRuns, i.QueuedRuns = h.runsHere.count()
			}
			list = append(list, i)
		}
		return list
	}}
}

// tellNode is a node as clients see it.
func tellNode(n shard.Seen) client.NodeInfo {
	i := client.NodeInfo{ID: n.ID, Name: n.Name, Host: n.Host, PID: n.PID, Version: n.Version, State: "live",
		Started: time.UnixMilli(n.Started).UTC().Format(time.RFC3339), Heard: n.Heard.UTC().Format(time.RFC3339Nano), HeardMS: time.Since(n.Came).Milliseconds(),
		Live: n.Live, Busy: n.Busy, Resting: n.Resting, Profile: n.Profile, Unproven: n.Unproven, Rules: max(n.Rules, 1), Avoids: n.Avoids, Unreadable: n.Unreadable, Shards: []int{}, Pools: map[string][]int{}}
	if n.Leaving {
		i.State = "leaving"
	}
	for _, name := range n.Pools {
		i.Pools[name] = []int{}
	}
	for _, s := range n.Holds {
		i.Pools[s.Pool] = append(i.Pools[s.Pool], s.N)
		if s.Pool == bus.DefaultPool {
			i.Shards = append(i.Shards, s.N)
		}
	}
	return i
}

// load is what this node tells of itself.
func (h *Host) load(n *shard.Node) {
	n.Live, n.Resting = h.census.count()
	n.Busy = 0
	for s := range h.holding.busy {
		n.Busy += h.holding.busy[s].Load()
	}
}

// giveShards gives the leases back, so that others need not wait for their end.
func (h *Host) giveShards() {
	k := h.holding.keeper.Load()
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	k.Close(ctx)
}

// movedShard tells the operator of a shard that came or went, and why.
func (h *Host) movedShard(node string, m shard.Move) {
	data := gateway.ShardMoved{Pool: m.Pool, Shard: m.N, Why: string(m.Why), Epoch: m.Epoch, Other: m.Other}
	h.publish(gateway.Moved(node, h.cfg.Name, m.Taken, data, time.Now()))
}
