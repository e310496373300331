package shard

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
)

// freeTries is how often a lease is given back: a renewal that was under way may
// have landed in between.
const freeTries = 3

// freePause is how long a node that ends waits before it gives back again what
// it could not.
const freePause = 200 * time.Millisecond

// freeAll gives back leases, and those that could not be given back before: a
// Close ends what is asked by a plan. It returns how many may still be there.
func (k *Keeper) freeAll(ctx context.Context, shards []int) (left int) {
	k.mu.Lock()
	for s := range k.owed {
		if _, again := k.held[s]; !again {
			shards = append(shards, s)
		}
	}
	clear(k.owed)
	k.mu.Unlock()
	owed := each(shards, func(s int) bool { return !k.free(ctx, s) })
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range owed {
		k.owed[s] = struct{}{}
	}
	return len(owed)
}

// free takes a lease of ours out of the bucket, so that nobody waits for its end.
// It is false if it may still be there.
func (k *Keeper) free(ctx context.Context, shard int) bool {
	var err error
	for range freeTries {
		var gone bool
		if gone, err = k.freeOnce(ctx, shard); gone || err != nil && !bus.Conflict(err) {
			break
		}
	}
	if err != nil {
		k.cfg.Logger.Warn("a lease was not given back; it is tried again, or ends by itself", "shard", k.slots[shard], "error", err)
	}
	return err == nil
}

// freeOnce asks once: what is asked while nobody leads is never answered.
func (k *Keeper) freeOnce(ctx context.Context, shard int) (gone bool, err error) {
	ctx, cancel := k.soon(ctx)
	defer cancel()
	revision, ours, err := k.ours(ctx, shard)
	if err != nil || !ours {
		return !ours && err == nil, err
	}
	err = k.cfg.Buckets.Shards.Delete(ctx, k.key(shard), jetstream.LastRevision(revision))
	return err == nil, err
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
	k.Leave()
	k.say(ctx) // or the others would take it that these shards are better off elsewhere
	again := time.NewTicker(freePause)
	defer again.Stop()
	for k.freeAll(ctx, k.letAllGo(k.Held(), Drained)) > 0 && ctx.Err() == nil && !k.cfg.JS.Conn().IsClosed() {
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	ctx, cancel := k.soon(context.WithoutCancel(ctx))
	defer cancel()
	// Its id never comes back: the mark of its end must not stay for ever.
	if err := k.cfg.Buckets.Nodes.Purge(ctx, k.cfg.Node.ID, jetstream.PurgeTTL(bus.MarkerTTL)); err != nil {
		k.cfg.Logger.Warn("the node did not say that it goes; its key ends by itself", "error", err)
	}
}
