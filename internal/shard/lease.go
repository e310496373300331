package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
)

// announce writes the key that says that this node lives.
func (k *Keeper) announce(ctx context.Context) error {
	revision, err := k.cfg.Buckets.Nodes.Create(ctx, k.cfg.Node.ID, encode(k.cfg.Node), jetstream.KeyTTL(k.cfg.TTL))
	if err != nil {
		return fmt.Errorf("shard: announce %s: %w", k.cfg.Node.ID, err)
	}
	k.own = revision
	return nil
}

// renewNode says again that this node lives. A key that has expired meanwhile
// is made anew: others then give back what is ours as it becomes idle.
func (k *Keeper) renewNode(ctx context.Context) {
	k.mu.RLock()
	node, own := k.cfg.Node, k.own
	k.mu.RUnlock()
	revision, err := bus.Renew(ctx, k.cfg.JS, k.cfg.Names.NodeBucket(), node.ID, encode(node), own, k.cfg.TTL)
	if errors.Is(err, bus.ErrRevision) {
		var e jetstream.KeyValueEntry
		if e, err = k.cfg.Buckets.Nodes.Get(ctx, node.ID); err == nil {
			revision = e.Revision()
		} else if errors.Is(err, jetstream.ErrKeyNotFound) {
			revision, err = k.cfg.Buckets.Nodes.Create(ctx, node.ID, encode(node), jetstream.KeyTTL(k.cfg.TTL))
		}
	}
	if err != nil {
		k.cfg.Logger.Warn("the node could not say that it lives; it is tried again", "node", node.ID, "error", err)
		return
	}
	k.mu.Lock()
	k.own = revision
	k.mu.Unlock()
}

// take acquires a lease that nobody holds. The revision of the write is the epoch.
func (k *Keeper) take(ctx context.Context, shard int) bool {
	sent := time.Now()
	ctx, cancel := context.WithDeadline(ctx, sent.Add(k.cfg.TTL/renewParts))
	defer cancel()
	revision, err := k.cfg.Buckets.Shards.Create(ctx, k.key(shard), k.value(), jetstream.KeyTTL(k.cfg.TTL))
	if err != nil {
		// It may have landed, and nobody told us: then its value says that it is ours.
		var ours bool
		if revision, ours = k.ours(ctx, shard); !ours {
			if !errors.Is(err, jetstream.ErrKeyExists) {
				k.cfg.Logger.Warn("a lease was not taken; it is tried again", "shard", shard, "error", err)
			}
			return false
		}
	}
	k.mu.Lock()
	k.held[shard] = held{epoch: revision, revision: revision, until: sent.Add(k.cfg.TTL)}
	k.others[shard] = k.cfg.Node.ID
	k.mu.Unlock()
	return true
}

// ours reads a lease from the leader: our nonce there means that it is held.
func (k *Keeper) ours(ctx context.Context, shard int) (revision uint64, ok bool) {
	e, err := k.cfg.Buckets.Shards.Get(ctx, k.key(shard))
	if err != nil {
		return 0, false
	}
	var l lease
	if json.Unmarshal(e.Value(), &l) != nil {
		return 0, false
	}
	return e.Revision(), l.Nonce == k.nonce && l.Node == k.cfg.Node.ID
}

// renewAll renews all leases, some at a time, and drops those that are lost.
func (k *Keeper) renewAll(ctx context.Context) {
	k.renewNode(ctx)
	k.mu.RLock()
	shards := make([]int, 0, len(k.held))
	for s := range k.held {
		shards = append(shards, s)
	}
	k.mu.RUnlock()
	slices.Sort(shards)
	var wait sync.WaitGroup
	gone := make([]bool, len(shards))
	turn := make(chan struct{}, renewersAt)
	for i, s := range shards {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			gone[i] = !k.renew(ctx, s)
		})
	}
	wait.Wait()
	var lost []int
	for i, s := range shards {
		if gone[i] && k.letGo(s) {
			lost = append(lost, s)
		}
	}
	k.tell(nil, lost)
}

// renew renews one lease. It is lost when another node has it, or when no
// answer came until others may have taken it.
func (k *Keeper) renew(ctx context.Context, shard int) bool {
	k.mu.RLock()
	h := k.held[shard]
	k.mu.RUnlock()
	sent := time.Now()
	try, cancel := context.WithDeadline(ctx, sent.Add(k.cfg.TTL/renewParts))
	defer cancel()
	revision, err := bus.Renew(try, k.cfg.JS, k.cfg.Names.ShardBucket(), k.key(shard), k.value(), h.revision, k.cfg.TTL)
	if err != nil {
		// No verdict: what the leader has under the key decides.
		found, ours := k.ours(ctx, shard)
		if !ours && (errors.Is(err, bus.ErrRevision) || !sent.Before(h.until)) {
			k.cfg.Logger.Warn("a lease is lost", "shard", shard, "error", err)
			return false
		}
		if ours {
			h.revision = found // it is renewed at the next turn, which keeps the clock honest
			k.mu.Lock()
			k.held[shard] = h
			k.mu.Unlock()
		}
		return time.Now().Before(h.until)
	}
	k.mu.Lock()
	k.held[shard] = held{epoch: h.epoch, revision: revision, until: sent.Add(k.cfg.TTL)}
	k.mu.Unlock()
	return true
}

// letGo stops holding a shard here; the lease itself stays until free or its end.
func (k *Keeper) letGo(shard int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.held[shard]
	delete(k.held, shard)
	delete(k.giving, shard)
	return ok
}

// free takes a lease of ours out of the bucket, so that nobody waits for its end.
func (k *Keeper) free(ctx context.Context, shard int) {
	revision, ours := k.ours(ctx, shard)
	if !ours {
		return
	}
	err := k.cfg.Buckets.Shards.Delete(ctx, k.key(shard), jetstream.LastRevision(revision))
	if err != nil {
		k.cfg.Logger.Warn("a lease was not given back; it ends by itself", "shard", shard, "error", err)
	}
}

// Leave takes no more shards and gives away what it has, each shard once it is
// quiet; others see the node as one that leaves.
func (k *Keeper) Leave() {
	k.mu.Lock()
	k.going = true
	k.mu.Unlock()
	k.wake()
}

// Held lists the shards that this node holds.
func (k *Keeper) Held() []int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := make([]int, 0, len(k.held))
	for s := range k.held {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}

func (k *Keeper) wake() {
	select {
	case k.poke <- struct{}{}:
	default: // it is awake
	}
}

// Close gives all leases back. The caller has stopped acting on them.
func (k *Keeper) Close(ctx context.Context) {
	k.stop()
	<-k.over
	held := k.Held()
	var wait sync.WaitGroup
	for _, s := range held {
		k.letGo(s)
		wait.Go(func() { k.free(ctx, s) })
	}
	wait.Wait()
	if err := k.cfg.Buckets.Nodes.Delete(ctx, k.cfg.Node.ID); err != nil {
		k.cfg.Logger.Warn("the node did not say that it goes; its key ends by itself", "error", err)
	}
}
