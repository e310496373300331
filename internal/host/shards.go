package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
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
	busy    []atomic.Int64 // work under way, by shard
	reading *reading
	buckets *bus.Buckets
	moved   chan struct{} // shards were gained or lost
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
		return nil
	}
	h.holding.buckets = b
	h.holding.busy = make([]atomic.Int64, h.post.Shards())
	h.holding.reading = newReading(h.post.Shards())
	h.holding.moved = make(chan struct{}, 1)
	cfg.Post = ours{h.post, h.holding.reading}
	cfg.Holds = func(at mailbox.Address) (uint64, bool) {
		k := h.holding.keeper.Load()
		if k == nil || !h.holding.reading.open[mailbox.Shard(at, h.post.Shards())].Load() {
			return 0, false
		}
		return k.HoldsAddress(at)
	}
	cfg.Alive = func(at mailbox.Address, change int) {
		h.holding.reading.alive[mailbox.Shard(at, h.post.Shards())].Add(int64(change))
	}
	cfg.Busy = func(at mailbox.Address, change int) {
		h.holding.busy[mailbox.Shard(at, h.post.Shards())].Add(int64(change))
	}
	return nil
}

// keepShards begins to hold shards, where there are others to share them with.
func (h *Host) keepShards(ctx context.Context) error {
	if h.holding.buckets == nil {
		return nil
	}
	js, err := jetstream.New(h.owner)
	if err != nil {
		return fmt.Errorf("host: %w", err)
	}
	hostname, _ := os.Hostname() // shown only
	k, err := shard.Start(ctx, shard.Config{JS: js, Buckets: h.holding.buckets, Names: h.names, Shards: h.post.Shards(), TTL: h.cfg.LeaseTTL,
		Node: shard.Node{Name: cmp.Or(h.cfg.Name, hostname, "node"), Host: hostname, PID: os.Getpid(),
			Profile: string(h.proof.Profile), Unproven: strings.Join(h.proof.Open(), ", ")},
		Busy: func(s int) bool { return h.holding.busy[s].Load() > 0 },
		Quiet: func(s int, epoch uint64, done func()) {
			h.node.HandOver(fmt.Sprintf("shard %d", s), func(at mailbox.Address, lease uint64) bool {
				return lease == epoch && mailbox.Shard(at, h.post.Shards()) == s
			}, done)
		},
		Changed: h.changed, Actors: h.census.count, Logger: h.cfg.Logger})
	if err != nil {
		return err
	}
	h.holding.keeper.Store(k)
	h.changed(nil, nil) // what was taken before anybody could act on it
	h.writing.Go(h.follow)
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
	return &gateway.Cluster{Ask: k.Ask, Nodes: func() []client.NodeInfo {
		list := []client.NodeInfo{}
		for n, shards := range k.Nodes() {
			i := client.NodeInfo{ID: n.ID, Name: n.Name, Host: n.Host, PID: n.PID, Version: n.Version, State: "live",
				Started: time.UnixMilli(n.Started).UTC().Format(time.RFC3339), Shards: shards, Profile: n.Profile, Unproven: n.Unproven,
				Live: n.Live, Resting: n.Resting}
			if n.ID == k.ID() {
				i.Proof = &h.proof
				i.Live, i.Resting = h.census.count()
			}
			if n.Leaving {
				i.State = "leaving"
			}
			list = append(list, i)
		}
		slices.SortFunc(list, func(a, b client.NodeInfo) int { return strings.Compare(a.ID, b.ID) })
		return list
	}}
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
