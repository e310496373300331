package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
)

// instant is a moment by two clocks. The monotonic clock of Linux stands still while the
// machine sleeps, and the wall clock may be set back.
type instant struct {
	mono time.Duration
	wall time.Time
}

var began = time.Now()

// clock reads both clocks.
func clock() instant {
	now := time.Now()
	return instant{now.Sub(began), now.Round(0)}
}

func (i instant) add(d time.Duration) instant { return instant{i.mono + d, i.wall.Add(d)} }

// isPast reports whether either clock has reached an end.
func (i instant) isPast(end instant) bool { return i.mono >= end.mono || !i.wall.Before(end.wall) }

// attempt is a renewal whose outcome nobody knows.
type attempt struct {
	beat uint64
	sent instant
}

// isLive reports whether the session lasts: others may have taken what this node held
// from its end on, which is counted from before the renewal was sent. mu is held.
func (k *Keeper) isLive() bool { return !k.clock().isPast(k.until) }

// announce writes the key that says that this node lives, and begins a session.
func (k *Keeper) announce(ctx context.Context) error {
	k.mu.RLock()
	node := k.cfg.Node
	k.mu.RUnlock()
	node.Session = nonce()
	sent := k.clock()
	revision, err := k.cfg.Buckets.Nodes.Create(ctx, node.ID, encode(node), jetstream.KeyTTL(k.cfg.TTL))
	if err != nil {
		return fmt.Errorf("shard: announce %s: %w", node.ID, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrote = k.clock().mono - sent.mono
	k.cfg.Node.Session, k.session = node.Session, node.Session
	k.own, k.until, k.unknown = revision, sent.add(k.cfg.TTL), attempt{}
	return nil
}

// checkTTL refuses a TTL that cannot hold on this server, by what its writes take, and
// warns of one that may not.
func (k *Keeper) checkTTL(ctx context.Context) error {
	took, ttl := k.wrote, k.cfg.TTL
	for i := 1; i < ttlMeasures && ttl < ttlWritesMin*took; i++ { // it may have been a slow moment
		began := k.clock()
		k.renewNode(ctx)
		took = min(took, k.clock().mono-began.mono)
	}
	if err := ttlFits(ttl, took); err != nil {
		return err
	}
	if ttl < ttlWritesMin*took {
		k.cfg.Logger.Warn("the TTL of leases is short for this server: a node that lives may be taken for dead", "ttl", ttl, "one write takes", took,
			"better", (ttlWritesMin*took).Round(time.Second)+time.Second)
	}
	status, err := k.cfg.Buckets.Shards.Status(ctx)
	if err != nil {
		return fmt.Errorf("shard: how leases are stored: %w", err)
	}
	if copies := copiesOf(status); copies > 1 && ttl < TTLReplicated {
		k.cfg.Logger.Warn("the TTL of leases is short for replicated servers: each election looks like the death of all nodes", "ttl", ttl, "copies", copies,
			"better", TTLDefault)
	}
	return nil
}

// ttlFits fails if a TTL cannot hold where one write takes so long.
func ttlFits(ttl, took time.Duration) error {
	if ttl < ttlWritesLeast*took {
		return fmt.Errorf("%w: %s, and one write to the leases takes %s: it must be %d times that at least", ErrTTL, ttl, took.Round(time.Millisecond), ttlWritesLeast)
	}
	return nil
}

// copiesOf is how many servers store a bucket.
func copiesOf(status jetstream.KeyValueStatus) int {
	s, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return 0
	}
	return s.StreamInfo().Config.Replicas
}

// withdraw removes the key of a node that does not begin.
func (k *Keeper) withdraw(ctx context.Context) error {
	if err := k.cfg.Buckets.Nodes.Purge(ctx, k.cfg.Node.ID, jetstream.PurgeTTL(bus.MarkerTTL)); err != nil {
		return fmt.Errorf("shard: withdraw %s: %w", k.cfg.Node.ID, err)
	}
	return nil
}

// renewAll renews the session and with it all leases, and reads some of them back.
func (k *Keeper) renewAll(ctx context.Context) {
	k.renewNode(ctx)
	k.verify(ctx)
}

// renewNode says again that this node lives, which renews all its leases.
func (k *Keeper) renewNode(ctx context.Context) {
	k.naming.Lock()
	defer k.naming.Unlock()
	ctx, cancel := k.soon(ctx)
	defer cancel()
	err := k.renewOnce(ctx)
	if errors.Is(err, errAdopted) {
		err = k.renewOnce(ctx)
	}
	if err != nil {
		k.cfg.Logger.Warn("the node could not renew its leases; it is tried again", "node", k.cfg.Node.ID, "error", err)
	}
}

// errAdopted: another revision of our own key was found, and the renewal is to be sent
// again.
var errAdopted = errors.New("shard: the key of the node has another revision")

func (k *Keeper) renewOnce(ctx context.Context) error {
	k.mu.Lock()
	k.cfg.Node.Beat++
	node, own := k.cfg.Node, k.own
	k.mu.Unlock()
	k.cfg.Load(&node)
	sent := k.clock()
	revision, err := bus.Renew(ctx, k.cfg.JS, k.cfg.Names.NodeBucket(), node.ID, encode(node), own, k.cfg.TTL)
	switch {
	case err == nil:
		k.renewed(revision, sent)
	case errors.Is(err, bus.ErrRevision):
		return k.adopt(ctx, err)
	default:
		k.mu.Lock()
		k.unknown = attempt{node.Beat, sent} // it may have landed, or land later
		k.mu.Unlock()
	}
	return err
}

// adopt decides after a conflict by what the leader has: our key with our session means
// that an earlier renewal landed, and no key that the session has ended.
func (k *Keeper) adopt(ctx context.Context, why error) error {
	e, err := k.cfg.Buckets.Nodes.Get(ctx, k.cfg.Node.ID)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return k.beginAnew(ctx)
	}
	if err != nil {
		return errors.Join(why, err)
	}
	var found Node
	if json.Unmarshal(e.Value(), &found) != nil {
		return fmt.Errorf("shard: the key of node %s does not decode: %w", k.cfg.Node.ID, why)
	}
	k.mu.Lock()
	unknown, same := k.unknown, e.Revision() == k.own
	k.mu.Unlock()
	switch {
	case same:
		return why // another write is under way: no verdict
	case found.Beat == unknown.beat:
		k.renewed(e.Revision(), unknown.sent)
	default: // when it was sent nobody knows
		k.mu.Lock()
		k.own = e.Revision()
		k.mu.Unlock()
	}
	return errAdopted
}

// renewed notes that the session lasts longer.
func (k *Keeper) renewed(revision uint64, sent instant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.own, k.unknown = revision, attempt{}
	if end := sent.add(k.cfg.TTL); end.mono > k.until.mono {
		// Whoever was told that the leases are over was told before this.
		k.lapsed = k.lapsed || !k.isLive()
		k.until = end
	}
}

// beginAnew begins another session after the end of the last one: nothing is held any
// more. For a while only what this node had is taken: it does not know whether the
// others are dead or were not heard either.
func (k *Keeper) beginAnew(ctx context.Context) error {
	k.mu.Lock()
	k.session = "" // what is held is of another one
	k.calm = time.Now().Add(calmParts * k.cfg.TTL)
	k.mu.Unlock()
	k.cfg.Logger.Warn("the leases of the node have ended: its key expired", "node", k.cfg.Node.ID)
	return k.announce(ctx)
}
