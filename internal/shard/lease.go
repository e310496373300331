package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// A lease is two records. The lease of a shard names its holder and the session of the
// holder; it is written once, when the shard is taken, and has no TTL. The key of the
// node names the same session, has a TTL, and is renewed. A lease is valid while the key
// of its holder is there with its session. So a node renews all its shards by one write,
// however many it holds. A node whose key has expired begins another session: all its
// leases are over, and it takes its shards again like anybody else, by a compare-and-set
// of the lease. The revision of that write is the epoch; a renewal does not change it.

// take acquires a shard that nobody holds. The revision of the write is the epoch.
func (k *Keeper) take(ctx context.Context, shard int) bool {
	k.mu.RLock()
	session, live := k.session, k.isLive()
	_, recorded := k.leases[k.slots[shard]]
	k.mu.RUnlock()
	if !live {
		return false
	}
	var epoch uint64
	var err error = jetstream.ErrKeyExists
	if !recorded {
		epoch, err = k.cfg.Buckets.Shards.Create(ctx, k.key(shard), k.value(session))
	}
	if errors.Is(err, jetstream.ErrKeyExists) {
		epoch, err = k.takeOver(ctx, shard, session)
	}
	if errors.Is(err, errHeld) {
		return false
	}
	if err != nil {
		k.cfg.Logger.Warn("a lease was not taken; it is tried again", "shard", k.slots[shard], "error", err)
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != session {
		return false // it names a session that has ended meanwhile
	}
	k.held[shard] = held{epoch: epoch, session: session}
	k.leases[k.slots[shard]] = record{lease{Node: k.cfg.Node.ID, Session: session}, epoch}
	delete(k.former, shard)
	delete(k.doubt, shard)
	return true
}

// errHeld: somebody holds the shard.
var errHeld = errors.New("shard: the shard is held")

// takeOver replaces a lease whose holder has gone. Everything is read from the leader:
// the view may be behind.
func (k *Keeper) takeOver(ctx context.Context, shard int, session string) (epoch uint64, err error) {
	e, err := k.cfg.Buckets.Shards.Get(ctx, k.key(shard))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return k.cfg.Buckets.Shards.Create(ctx, k.key(shard), k.value(session))
	}
	if err != nil {
		return 0, err
	}
	var l lease
	if json.Unmarshal(e.Value(), &l) == nil {
		if l.Node == k.cfg.Node.ID && l.Session == session {
			return e.Revision(), nil // an earlier attempt landed, and its answer was lost
		}
		if valid, err := k.isValid(ctx, l); err != nil || valid {
			return 0, errors.Join(err, errWhen(valid))
		}
	}
	return k.cfg.Buckets.Shards.Update(ctx, k.key(shard), k.value(session), e.Revision())
}

func errWhen(held bool) error {
	if held {
		return errHeld
	}
	return nil
}

// isValid asks the leader whether the holder of a lease is there, in the same session. A
// lease of a newer form is valid: this program cannot judge it.
func (k *Keeper) isValid(ctx context.Context, l lease) (bool, error) {
	if l.Form > Form {
		return true, nil
	}
	if l.Node == "" {
		return false, nil
	}
	e, err := k.cfg.Buckets.Nodes.Get(ctx, l.Node)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var n Node
	return json.Unmarshal(e.Value(), &n) == nil && n.Session == l.Session, nil
}

// ours reads a lease from the leader: our session there means that it is held.
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
	k.mu.RLock()
	defer k.mu.RUnlock()
	return e.Revision(), l.Session == k.session && l.Node == k.cfg.Node.ID, nil
}

// verifyAt is how many leases are read back at each renewal. Reading costs no write.
const verifyAt = 16

// verify reads some of the leases back, others at each renewal: nobody would tell if
// their bucket was made anew. Those that are not ours any more are doubted, and dropped
// by the next plan.
func (k *Keeper) verify(ctx context.Context) {
	list := k.Held()
	if len(list) == 0 {
		return
	}
	from := k.verified % len(list)
	list = append(list[from:], list[:from]...)[:min(verifyAt, len(list))]
	k.verified = from + len(list)
	ctx, cancel := k.soon(ctx)
	defer cancel()
	for _, s := range each(list, func(s int) bool { _, ours, err := k.ours(ctx, s); return err == nil && !ours }) {
		k.mu.Lock()
		k.doubt[s] = struct{}{}
		k.mu.Unlock()
	}
}

// dropLost stops holding what is lost: by the end of the session, or because another
// node has it or nobody. It returns what was lost, and what is gained again: where the
// session was renewed late, nobody else had its shards, and what was in doubt is ours. No
// entry that came meanwhile has woken anybody.
func (k *Keeper) dropLost(ctx context.Context) (again, lost []int) {
	k.mu.RLock()
	doubtful := slices.Collect(maps.Keys(k.doubt))
	k.mu.RUnlock()
	ctx, cancel := k.soon(ctx)
	defer cancel()
	var gone, sure []int
	for _, s := range doubtful {
		_, ours, err := k.ours(ctx, s)
		if err != nil {
			continue // it stays in doubt
		}
		if ours {
			sure = append(sure, s)
		} else {
			gone = append(gone, s)
		}
		k.mu.Lock()
		delete(k.doubt, s)
		k.mu.Unlock()
	}
	k.mu.Lock()
	for s, h := range k.held {
		if h.session != k.session && !slices.Contains(gone, s) {
			gone = append(gone, s)
		}
	}
	k.mu.Unlock()
	if lost = k.letAllGo(gone, Expired); len(lost) > 0 {
		k.cfg.Logger.Warn("leases are lost", "shards", k.named(lost))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range lost {
		k.former[s] = struct{}{}
	}
	again = slices.DeleteFunc(sure, func(s int) bool { _, held := k.held[s]; return !held })
	if k.lapsed {
		again = slices.Sorted(maps.Keys(k.held))
	}
	k.lapsed = false
	return again, lost
}

// letGo stops holding a shard here; the lease itself stays until free, or until the
// session ends.
func (k *Keeper) letGo(shard int) (epoch uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, ok := k.held[shard]
	delete(k.held, shard)
	delete(k.giving, shard)
	delete(k.better, shard)
	return h.epoch, ok
}
