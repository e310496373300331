package cluster

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
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
)

// poolList are the pools whose shards this node takes. A slot is the number of a shard
// among the shards of all of them.
type poolList []shard.Pool

// slotOf returns the slot of an address; not ok if its pool is not served here.
func (p poolList) slotOf(at mailbox.Address) (slot int, ok bool) {
	name := cmp.Or(at.Pool(), names.DefaultPool)
	for _, pool := range p {
		if pool.Name == name {
			return slot + mailbox.Shard(at, pool.Shards), true
		}
		slot += pool.Shards
	}
	return 0, false
}

func (p poolList) countSlots() (n int) {
	for _, pool := range p {
		n += pool.Shards
	}
	return n
}

// ConfigureActors sets the functions of cfg that decide where this node acts. In a cluster the node
// begins to hold shards only in KeepShards, once its actors can act on them. After an error it may be called again.
func (o *Owner) ConfigureActors(ctx context.Context, b *bus.Buckets, cfg *actors.Config) error {
	if o.cfg.Alone {
		lease, err := RecordOwner(ctx, b, fmt.Sprintf("%s pid %d", o.cfg.Name, os.Getpid()))
		if err != nil {
			return err
		}
		cfg.Lease = lease
		cfg.Serves = func(string) bool { return true } // this node is all pools
		return nil
	}
	if err := o.openPools(ctx); err != nil {
		return err
	}
	l := o
	l.buckets = b
	l.busy, l.reading = make([]atomic.Int64, l.pools.countSlots()), newReadSet(l.pools)
	cfg.Post = ownLogs{o.cfg.Logs, o.cfg.Streams, l.reading}
	cfg.Holds = func(at mailbox.Address) (uint64, bool) {
		k := l.keeper.Load()
		s, ok := l.pools.slotOf(at)
		if k == nil || !ok || !l.reading.isRead[s].Load() {
			return 0, false
		}
		return k.Holds(s)
	}
	count := func(of []atomic.Int64) func(mailbox.Address, int) {
		return func(at mailbox.Address, change int) {
			if s, ok := l.pools.slotOf(at); ok {
				of[s].Add(int64(change))
			}
		}
	}
	cfg.Alive, cfg.Busy = count(l.reading.shells), count(l.busy)
	cfg.Serves = func(pool string) bool { return len(o.ServingNodes(pool)) > 0 }
	return nil
}

// RecordOwner records that this process alone owns all logs. The revision of that write orders its
// activations after those of all earlier owners.
func RecordOwner(ctx context.Context, b *bus.Buckets, owner string) (revision uint64, err error) {
	revision, err = b.Shards.PutString(ctx, "all", owner)
	if err != nil {
		return 0, fmt.Errorf("cluster: own the shards: %w", err)
	}
	return revision, nil
}

// openPools opens the pools that this node serves, and creates missing ones.
func (o *Owner) openPools(ctx context.Context) error {
	o.pools = nil // a caller tries again
	for _, name := range o.cfg.Pools {
		size := SizeOf(name)
		shards, err := o.cfg.Streams.Make(ctx, name, size.Shards, size.Streams)
		if err != nil {
			return err
		}
		o.pools = append(o.pools, shard.Pool{Name: name, Shards: shards})
	}
	return nil
}

// KeepShards begins to hold shards, if there are other nodes to share them with. After an error it may be called again.
func (o *Owner) KeepShards(ctx context.Context) error {
	if o.buckets == nil {
		return nil
	}
	js, err := jetstream.New(o.cfg.Leases)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	buckets, err := o.buckets.OnConnection(ctx, js, o.cfg.Names)
	if err != nil {
		return err
	}
	lines := o.reading.groupByStream()
	k, err := shard.Start(ctx, shard.Config{JS: js, Buckets: buckets, Names: o.cfg.Names, Pools: o.pools, TTL: o.cfg.LeaseTTL,
		Node: shard.Node{Name: cmp.Or(o.cfg.Name, o.cfg.Machine, "node"), Host: o.cfg.Machine, PID: os.Getpid(), Version: control.Version(),
			Settings: o.cfg.Settings, Profile: string(o.cfg.Proof.Profile), Unproven: strings.Join(o.cfg.Proof.UnprovenChecks(), ", ")},
		SetLoad: o.reportLoad, ShardMoved: o.publishMove,
		IsBusy: func(s int) bool { return o.busy[s].Load() > 0 },
		DrainShard: func(s int, epoch uint64, done func()) {
			o.cfg.Node().HandOver(fmt.Sprintf("shard %d", s), func(at mailbox.Address, lease uint64) bool {
				slot, ok := o.pools.slotOf(at)
				return ok && lease == epoch && slot == s
			}, done)
		},
		ShardsChanged: streamReader{o}.applyLeases, Logger: o.cfg.Logger})
	if err != nil {
		return err
	}
	o.keeper.Store(k)
	o.taking = unfinishedFinder{o}.newShardTakeover()
	for _, l := range lines {
		l.wakeReader() // for shards gained before there was an actor to act on them
		o.cfg.Work.Go(func() { streamReader{o}.followStream(l) })
	}
	o.cfg.Work.Go(poolWatch{o}.run)
	return nil
}

// Drain finishes the work in progress and gives up all logs: to other nodes, if there are
// any, or to the next owner of the state directory. After Drain only Close makes sense.
// Drain returns early when ctx ends; the next owner then loses the work that was still in
// progress.
func (o *Owner) Drain(ctx context.Context) error {
	done := make(chan struct{})
	if k := o.keeper.Load(); k != nil {
		k.StartDrain() // so that others take over as shards become quiet
	}
	o.cfg.Node().HandOver("all", func(mailbox.Address, uint64) bool { return true }, func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cluster: drain: %w", ctx.Err())
	}
}

// ClusterView is what the control service knows about the nodes; nil if there is only this one.
func (o *Owner) ClusterView() *control.Cluster {
	k := o.keeper.Load()
	if k == nil {
		return nil
	}
	return &control.Cluster{
		Ask: k.RequestLeave, HoldJob: k.HoldJob, TTL: cmp.Or(o.cfg.LeaseTTL, shard.TTLDefault),
		Nodes: func() []client.NodeInfo { return describeNodes(o, k.ID(), k.Nodes()) },
		ReadNodes: func(ctx context.Context) ([]client.NodeInfo, error) {
			nodes, err := k.ReadNodes(ctx)
			return describeNodes(o, k.ID(), nodes), err
		},
	}
}

// describeNodes converts nodes to the form that clients see. What only the node itself knows is in its own entry.
func describeNodes(o *Owner, self string, nodes []shard.SeenNode) []client.NodeInfo {
	list := []client.NodeInfo{}
	for _, n := range nodes {
		i := describeNode(n, cmp.Or(o.cfg.LeaseTTL, shard.TTLDefault))
		if n.ID == self {
			i.Proof, i.LogHealth = o.cfg.Proof, o.cfg.LogHealth()
			i.Live, i.Resting = o.actors.readCounts()
			i.LiveRuns, i.QueuedRuns = o.admission.countRuns()
		}
		list = append(list, i)
	}
	return list
}

// silentPart is the part of the lease time after which a node without a heartbeat is silent: nodes renew their
// keys four times in it, so two renewals are missing.
const silentPart = 0.6

// describeNode converts a node to the form that clients see.
func describeNode(n shard.SeenNode, ttl time.Duration) client.NodeInfo {
	i := client.NodeInfo{ID: n.ID, Name: n.Name, Host: n.Host, PID: n.PID, Version: n.Version, State: "live",
		Started: time.UnixMilli(n.Started).UTC().Format(time.RFC3339), Heard: n.Heard.UTC().Format(time.RFC3339Nano), HeardMS: time.Since(n.Came).Milliseconds(),
		Live: n.Live, Busy: n.Busy, Resting: n.Resting, Profile: n.Profile, Unproven: n.Unproven, HTTP: n.HTTP, Settings: n.Settings, Avoids: n.Avoids, Unreadable: n.Unreadable, Shards: []int{}, Pools: map[string][]int{}}
	if n.Leaving {
		i.State = "leaving"
	}
	if float64(time.Since(n.Came)) > silentPart*float64(ttl) {
		i.State = "silent"
	}
	for _, name := range n.Pools {
		i.Pools[name] = []int{}
	}
	for _, s := range n.Holds {
		i.Pools[s.Pool] = append(i.Pools[s.Pool], s.N)
		if s.Pool == names.DefaultPool {
			i.Shards = append(i.Shards, s.N)
		}
	}
	return i
}

// reportLoad sets the load that this node reports about itself.
func (o *Owner) reportLoad(n *shard.Node) {
	n.Live, n.Resting = o.actors.readCounts()
	n.HTTP = o.cfg.HTTPURL()
	n.Busy = 0
	for s := range o.busy {
		n.Busy += o.busy[s].Load()
	}
}

// Close releases the leases, so that other nodes need not wait for them to expire.
func (o *Owner) Close() {
	k := o.keeper.Load()
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	k.Close(ctx)
}

// publishMove logs which shard this node gained or lost, and why.
func (o *Owner) publishMove(node string, m shard.ShardMove) {
	data := event.ShardMoved{Pool: m.Pool, Shard: m.N, Why: string(m.Why), Epoch: m.Epoch, Other: m.Other}
	o.cfg.Publish(control.ShardMovedEvent(node, o.cfg.Name, m.Taken, data, time.Now()))
}
