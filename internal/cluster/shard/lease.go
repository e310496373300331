package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
)

// A lease is two records. The lease of a shard names its holder and the session of the
// holder; it is written once, when the shard is taken, and has no TTL. The key of the
// node names the same session, has a TTL, and is renewed. A lease is valid while the key
// of its holder exists with its session. So a node renews all its shards with one write,
// however many it holds. A node whose key has expired begins another session: all its
// leases are over, and it takes its shards again like any other node, by a compare-and-set
// of the lease. The revision of that write is the epoch; a renewal does not change it.

// leaseStore reads and writes the leases of shards.
type leaseStore struct {
	cfg      *Config
	state    *keeperState
	verified int // where the next verification begins; only Keeper.renewLoop uses it
}

// errHeld: a node holds the shard.
var errHeld = errors.New("shard: the shard is held")

// takeLease acquires a shard that no node holds. The revision of the write is the epoch.
func (l *leaseStore) takeLease(ctx context.Context, slot int) bool {
	s := l.cfg.slots[slot]
	l.state.RLock()
	session, live := l.state.session.id, l.state.session.isLive()
	_, recorded := l.state.view.leases[s]
	l.state.RUnlock()
	if !live {
		return false
	}
	var epoch uint64
	var err error = jetstream.ErrKeyExists
	if !recorded {
		epoch, err = l.cfg.Buckets.Shards.Create(ctx, s.String(), l.encodeLease(session))
	}
	if errors.Is(err, jetstream.ErrKeyExists) {
		epoch, err = l.takeOver(ctx, s.String(), session)
	}
	if errors.Is(err, errHeld) {
		return false
	}
	if err != nil {
		l.cfg.Logger.Warn("cannot acquire shard lease; retrying", "shard", s, "error", err)
		return false
	}
	l.state.Lock()
	defer l.state.Unlock()
	if l.state.session.id != session {
		return false // the lease names a session that has ended meanwhile
	}
	l.state.holdings.add(slot, heldLease{epoch: epoch, session: session})
	l.state.view.leases[s] = leaseRecord{lease{Node: l.cfg.Node.ID, Session: session}, epoch}
	return true
}

// takeOver replaces a lease whose holder is gone. It reads everything from the leader,
// because the view may be behind.
func (l *leaseStore) takeOver(ctx context.Context, key, session string) (epoch uint64, err error) {
	e, err := l.cfg.Buckets.Shards.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return l.cfg.Buckets.Shards.Create(ctx, key, l.encodeLease(session))
	}
	if err != nil {
		return 0, err
	}
	var found lease
	if json.Unmarshal(e.Value(), &found) == nil {
		if found.Node == l.cfg.Node.ID && found.Session == session {
			return e.Revision(), nil // an earlier attempt landed, and its answer was lost
		}
		valid, err := l.isValid(ctx, found)
		if err != nil {
			return 0, err
		}
		if valid {
			return 0, errHeld
		}
	}
	return l.cfg.Buckets.Shards.Update(ctx, key, l.encodeLease(session), e.Revision())
}

// isValid asks the leader whether the holder of a lease is alive in the same session. A
// lease of a newer form counts as valid: this program cannot judge it.
func (l *leaseStore) isValid(ctx context.Context, of lease) (bool, error) {
	if of.Form > Form {
		return true, nil
	}
	if of.Node == "" {
		return false, nil
	}
	e, err := l.cfg.Buckets.Nodes.Get(ctx, of.Node)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var n Node
	return json.Unmarshal(e.Value(), &n) == nil && n.Session == of.Session, nil
}

// isOurs reads a lease from the leader: this node's current session in it means that this
// node holds the shard.
func (l *leaseStore) isOurs(ctx context.Context, slot int) (revision uint64, ok bool, err error) {
	s := l.cfg.slots[slot]
	e, err := l.cfg.Buckets.Shards.Get(ctx, s.String())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("shard: read the lease of %s: %w", s, err)
	}
	var found lease
	if json.Unmarshal(e.Value(), &found) != nil {
		return 0, false, nil // another program wrote it
	}
	l.state.RLock()
	defer l.state.RUnlock()
	return e.Revision(), found.Session == l.state.session.id && found.Node == l.cfg.Node.ID, nil
}

// verifiedPerRenewal is how many leases are read back at each renewal. Reading costs no write.
const verifiedPerRenewal = 16

// verifyLeases reads some of the leases back, different ones at each renewal, because no watch
// reports that the bucket was created anew. A lease that no longer belongs to this node is
// put in doubt, and the next plan drops it.
func (l *leaseStore) verifyLeases(ctx context.Context) {
	l.state.RLock()
	list := l.state.holdings.heldSlots()
	l.state.RUnlock()
	if len(list) == 0 {
		return
	}
	from := l.verified % len(list)
	list = append(list[from:], list[:from]...)[:min(verifiedPerRenewal, len(list))]
	l.verified = from + len(list)
	ctx, cancel := l.cfg.roundTimeout(ctx)
	defer cancel()
	foreign := eachShard(list, func(s int) bool { _, ours, err := l.isOurs(ctx, s); return err == nil && !ours })
	l.state.Lock()
	defer l.state.Unlock()
	for _, s := range foreign {
		l.state.holdings.doubt[s] = struct{}{}
	}
}

// releaseTries is how often release tries: a renewal that was in progress may have been
// stored in between.
const releaseTries = 3

// releaseLease deletes a lease of this node, so that no other node waits for its end. It is
// false if the lease may still exist.
func (l *leaseStore) releaseLease(ctx context.Context, slot int) bool {
	var err error
	for range releaseTries {
		var gone bool
		if gone, err = l.releaseOnce(ctx, slot); gone || err != nil && !bus.IsConflict(err) {
			break
		}
	}
	if err != nil {
		l.cfg.Logger.Warn("a lease was not released; retrying until it expires", "shard", l.cfg.slots[slot], "error", err)
	}
	return err == nil
}

// releaseOnce tries once, with its own timeout: a request that is sent while there is no
// leader is never answered.
func (l *leaseStore) releaseOnce(ctx context.Context, slot int) (gone bool, err error) {
	ctx, cancel := l.cfg.roundTimeout(ctx)
	defer cancel()
	revision, ours, err := l.isOurs(ctx, slot)
	if err != nil || !ours {
		return !ours && err == nil, err
	}
	err = l.cfg.Buckets.Shards.Delete(ctx, l.cfg.slots[slot].String(), jetstream.LastRevision(revision))
	return err == nil, err
}

func (l *leaseStore) encodeLease(session string) []byte {
	return mustEncode(lease{Node: l.cfg.Node.ID, Session: session, Form: Form})
}
