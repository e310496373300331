package shard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
)

// announce writes the key that says that this node lives.
func (k *Keeper) announce(ctx context.Context) error {
	sent := time.Now()
	revision, err := k.cfg.Buckets.Nodes.Create(ctx, k.cfg.Node.ID, encode(k.cfg.Node), jetstream.KeyTTL(k.cfg.TTL))
	if err != nil {
		return fmt.Errorf("shard: announce %s: %w", k.cfg.Node.ID, err)
	}
	k.own, k.heard = revision, sent
	return nil
}

// renewNode says again that this node lives. A key that has expired meanwhile
// is made anew: others then give back what is ours as it becomes idle.
func (k *Keeper) renewNode(ctx context.Context) {
	k.naming.Lock()
	defer k.naming.Unlock()
	ctx, cancel := k.soon(ctx)
	defer cancel()
	k.mu.RLock()
	node, own := k.cfg.Node, k.own
	k.mu.RUnlock()
	k.cfg.Load(&node)
	sent := time.Now()
	revision, err := bus.Renew(ctx, k.cfg.JS, k.cfg.Names.NodeBucket(), node.ID, encode(node), own, k.cfg.TTL)
	if errors.Is(err, bus.ErrRevision) {
		var e jetstream.KeyValueEntry
		if e, err = k.cfg.Buckets.Nodes.Get(ctx, node.ID); err == nil {
			revision, sent = e.Revision(), k.heard // it is there, and not renewed
		} else if errors.Is(err, jetstream.ErrKeyNotFound) {
			k.mu.Lock()
			k.calm = time.Now().Add(calmParts * k.cfg.TTL)
			k.mu.Unlock()
			revision, err = k.cfg.Buckets.Nodes.Create(ctx, node.ID, encode(node), jetstream.KeyTTL(k.cfg.TTL))
		}
	}
	if err != nil {
		k.cfg.Logger.Warn("the node could not say that it lives; it is tried again", "node", node.ID, "error", err)
		return
	}
	k.mu.Lock()
	k.own, k.heard = revision, sent
	k.mu.Unlock()
}

// take acquires a lease that nobody holds. The revision of the write is the epoch.
func (k *Keeper) take(ctx context.Context, shard int) bool {
	sent := time.Now()
	revision, err := k.cfg.Buckets.Shards.Create(ctx, k.key(shard), k.value(), jetstream.KeyTTL(k.cfg.TTL))
	if errors.Is(err, jetstream.ErrKeyExists) {
		// An earlier one may have landed, and nobody told us: then its value says that
		// it is ours. How long it still lasts nobody knows, so it is renewed.
		found, ours, unread := k.ours(ctx, shard)
		if !ours || unread != nil {
			return false
		}
		sent = time.Now()
		revision, err = bus.Renew(ctx, k.cfg.JS, k.cfg.Names.ShardBucket(), k.key(shard), k.value(), found, k.cfg.TTL)
	}
	if err != nil {
		k.cfg.Logger.Warn("a lease was not taken; it is tried again", "shard", k.slots[shard], "error", err)
		return false
	}
	k.mu.Lock()
	k.held[shard] = held{epoch: revision, revision: revision, until: sent.Add(k.cfg.TTL)}
	k.others[shard] = k.cfg.Node.ID
	delete(k.former, shard)
	k.mu.Unlock()
	return true
}

// ours reads a lease from the leader: our nonce there means that it is held.
func (k *Keeper) ours(ctx context.Context, shard int) (revision uint64, ok bool, err error) {
	e, err := k.cfg.Buckets.Shards.Get(ctx, k.key(shard))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("shard: read the lease of %s: %w", k.slots[shard], err)
	}
	var l lease
	if json.Unmarshal(e.Value(), &l) != nil {
		return 0, false, nil // somebody else's
	}
	return e.Revision(), l.Nonce == k.nonce && l.Node == k.cfg.Node.ID, nil
}

// renewAll renews all leases, some at a time, and drops those that are lost.
func (k *Keeper) renewAll(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { k.renewNode(ctx) })
	renewing, cancel := k.soon(ctx)
	defer cancel()
	errs := make([]error, len(k.slots))
	failed := each(k.soonest(), func(s int) bool { errs[s] = k.renew(renewing, s); return errs[s] != nil })
	// No verdict: what the leader has under the key decides.
	asking, enough := k.soon(ctx)
	defer enough()
	epochs := make([]uint64, len(k.slots))
	gone := each(failed, func(s int) (is bool) { epochs[s], is = k.isLost(asking, s, errs[s]); return is })
	wait.Wait()
	k.telling.Lock()
	defer k.telling.Unlock()
	lost := k.letAllGo(k.still(gone, epochs), Expired)
	k.mu.Lock()
	for _, s := range lost {
		k.former[s] = struct{}{}
	}
	var again []int
	for s, h := range k.held {
		if h.lapsed {
			h.lapsed = false
			k.held[s] = h
			again = append(again, s)
		}
	}
	k.mu.Unlock()
	slices.Sort(again)
	k.tell(again, lost)
}

// soonest lists the shards that this node holds, that whose lease ends first before
// the others: where there is no time to renew all, the next round begins with the rest.
func (k *Keeper) soonest() []int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	list := slices.Collect(maps.Keys(k.held))
	slices.SortFunc(list, func(a, b int) int { return cmp.Or(k.held[a].until.Compare(k.held[b].until), a-b) })
	return list
}

// renew renews one lease.
func (k *Keeper) renew(ctx context.Context, shard int) error {
	k.mu.RLock()
	h, ok := k.held[shard]
	k.mu.RUnlock()
	if !ok {
		return nil // it was given away meanwhile
	}
	sent := time.Now()
	revision, err := bus.Renew(ctx, k.cfg.JS, k.cfg.Names.ShardBucket(), k.key(shard), k.value(), h.revision, k.cfg.TTL)
	if err != nil {
		return err
	}
	k.mu.Lock()
	if now, ok := k.held[shard]; !ok || now.epoch != h.epoch {
		k.mu.Unlock()
		return nil
	}
	// Under the lock: whoever was told that the lease is over was told before this.
	lapsed := h.lapsed || !time.Now().Before(h.until)
	k.held[shard] = held{epoch: h.epoch, revision: revision, until: sent.Add(k.cfg.TTL), lapsed: lapsed}
	k.mu.Unlock()
	return nil
}

// isLost decides about a lease that could not be renewed: it is lost when
// another node has it or nobody, or when no answer came until others may have
// taken it. Where it is still ours, the next renewal keeps the clock honest.
func (k *Keeper) isLost(ctx context.Context, shard int, why error) (epoch uint64, lost bool) {
	found, ours, unread := k.ours(ctx, shard)
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.held[shard]
	if !ok {
		return 0, false // it was given away meanwhile
	}
	if ours {
		h.revision = found
		k.held[shard] = h
		return h.epoch, false
	}
	if unread != nil && time.Now().Before(h.until) {
		return h.epoch, false
	}
	k.cfg.Logger.Warn("a lease is lost", "shard", k.slots[shard], "error", errors.Join(why, unread))
	return h.epoch, true
}

// still are the shards that are held, and under these epochs.
func (k *Keeper) still(shards []int, epochs []uint64) (list []int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, s := range shards {
		if h, ok := k.held[s]; ok && h.epoch == epochs[s] {
			list = append(list, s)
		}
	}
	return list
}

// letGo stops holding a shard here; the lease itself stays until free or its end.
func (k *Keeper) letGo(shard int) (epoch uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.held[shard]
	delete(k.held, shard)
	delete(k.giving, shard)
	delete(k.better, shard)
	return h.epoch, ok
}

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
