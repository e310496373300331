package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
)

// renewer writes this node's own key, which renews all its leases.
type renewer struct {
	cfg     *Config
	state   *keeperState
	writing sync.Mutex // held while the key is written
}

// announceNode writes the key that shows that this node is alive, and begins a session. It
// returns how long the write took.
func (r *renewer) announceNode(ctx context.Context) (took time.Duration, err error) {
	r.state.RLock()
	node, clock := r.state.self, r.state.session.clock
	r.state.RUnlock()
	node.Session = newNonce()
	sent := clock()
	revision, err := r.cfg.Buckets.Nodes.Create(ctx, node.ID, mustEncode(node), jetstream.KeyTTL(r.cfg.TTL))
	if err != nil {
		return 0, fmt.Errorf("shard: announce %s: %w", node.ID, err)
	}
	r.state.Lock()
	defer r.state.Unlock()
	took = clock().mono - sent.mono
	r.state.self.Session = node.Session
	r.state.session.begin(node.Session, revision, sent.add(r.cfg.TTL))
	return took, nil
}

// checkTTL rejects a TTL that cannot hold on this server, by how long its writes take,
// and warns of one that may not hold.
func (r *renewer) checkTTL(ctx context.Context, took time.Duration) error {
	ttl := r.cfg.TTL
	for i := 1; i < ttlMeasures && ttl < ttlWritesMin*took; i++ { // the first write may have met a slow moment
		began := readClock()
		r.renewNode(ctx)
		took = min(took, readClock().mono-began.mono)
	}
	if err := ttlFits(ttl, took); err != nil {
		return err
	}
	if ttl < ttlWritesMin*took {
		r.cfg.Logger.Warn("the TTL of leases is short for this server: a node that lives may be taken for dead", "ttl", ttl, "one write takes", took,
			"better", (ttlWritesMin*took).Round(time.Second)+time.Second)
	}
	status, err := r.cfg.Buckets.Shards.Status(ctx)
	if err != nil {
		return fmt.Errorf("shard: how leases are stored: %w", err)
	}
	if copies := replicasOf(status); copies > 1 && ttl < TTLReplicated {
		r.cfg.Logger.Warn("the TTL of leases is short for replicated servers: each election looks like the death of all nodes", "ttl", ttl, "copies", copies,
			"better", TTLDefault)
	}
	return nil
}

// ttlFits fails if one write takes so long that the TTL cannot hold.
func ttlFits(ttl, took time.Duration) error {
	if ttl < ttlWritesLeast*took {
		return fmt.Errorf("%w: %s, and one write to the leases takes %s: it must be %d times that at least", ErrTTL, ttl, took.Round(time.Millisecond), ttlWritesLeast)
	}
	return nil
}

// replicasOf returns how many servers store a bucket.
func replicasOf(status jetstream.KeyValueStatus) int {
	s, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return 0
	}
	return s.StreamInfo().Config.Replicas
}

// withdrawNode removes the key of a node that fails to start.
func (r *renewer) withdrawNode(ctx context.Context) error {
	if err := r.cfg.Buckets.Nodes.Purge(ctx, r.cfg.Node.ID, jetstream.PurgeTTL(bus.MarkerTTL)); err != nil {
		return fmt.Errorf("shard: withdraw %s: %w", r.cfg.Node.ID, err)
	}
	return nil
}

// publishChanges writes the key at once when this node begins or stops to leave, or
// when its record has other news.
func (r *renewer) publishChanges(ctx context.Context) {
	r.state.Lock()
	leaving, self := r.state.isLeaving(), &r.state.self
	changed, news := self.Leaving != leaving, r.state.unpublished
	self.Leaving, r.state.unpublished = leaving, false
	r.state.Unlock()
	if news {
		r.renewNode(ctx)
	}
	if changed {
		text := "leaving: other nodes take the shards of this node"
		if !leaving {
			text = "staying: this node takes shards again"
		}
		r.cfg.Logger.Info(text, "node", r.cfg.Node.ID)
		r.renewNode(ctx)
	}
}

// renewNode writes again that this node is alive, which renews all its leases.
func (r *renewer) renewNode(ctx context.Context) {
	r.writing.Lock()
	defer r.writing.Unlock()
	ctx, cancel := r.cfg.roundTimeout(ctx)
	defer cancel()
	err := r.renewOnce(ctx)
	if errors.Is(err, errAdopted) {
		err = r.renewOnce(ctx)
	}
	if err != nil {
		r.cfg.Logger.Warn("the node could not renew its leases; it is tried again", "node", r.cfg.Node.ID, "error", err)
	}
}

// errAdopted: the key of this node had another revision, and the renewal is to be sent again.
var errAdopted = errors.New("shard: the key of the node has another revision")

func (r *renewer) renewOnce(ctx context.Context) error {
	r.state.Lock()
	r.state.self.Beat++
	node, revision, clock := r.state.self, r.state.session.revision, r.state.session.clock
	r.state.Unlock()
	r.cfg.SetLoad(&node)
	sent := clock()
	revision, err := bus.RenewKey(ctx, r.cfg.JS, r.cfg.Names.NodeBucket(), node.ID, mustEncode(node), revision, r.cfg.TTL)
	switch {
	case err == nil:
		r.extendSession(revision, sent)
	case errors.Is(err, bus.ErrRevision):
		return r.adoptRevision(ctx, err)
	default:
		r.state.Lock()
		r.state.session.unknown = unknownRenewal{node.Beat, sent} // it may have landed, or land later
		r.state.Unlock()
	}
	return err
}

// adoptRevision decides after a conflict by what the leader has: a key with our session means that
// an earlier renewal landed; no key means that the session has ended.
func (r *renewer) adoptRevision(ctx context.Context, cause error) error {
	e, err := r.cfg.Buckets.Nodes.Get(ctx, r.cfg.Node.ID)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return r.beginSession(ctx)
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	var found Node
	if json.Unmarshal(e.Value(), &found) != nil {
		return fmt.Errorf("shard: the key of node %s does not decode: %w", r.cfg.Node.ID, cause)
	}
	r.state.Lock()
	unknown, same := r.state.session.unknown, e.Revision() == r.state.session.revision
	r.state.Unlock()
	switch {
	case same:
		return cause // another write is in progress: no verdict
	case found.Beat == unknown.beat:
		r.extendSession(e.Revision(), unknown.sent)
	default: // it is unknown when it was sent
		r.state.Lock()
		r.state.session.revision = e.Revision()
		r.state.Unlock()
	}
	return errAdopted
}

func (r *renewer) extendSession(revision uint64, sent clockReading) {
	r.state.Lock()
	defer r.state.Unlock()
	r.state.session.extend(revision, sent.add(r.cfg.TTL))
}

// beginSession begins another session after the last one has ended: nothing is held any
// more, and until leaseSession.calm the node takes only its former shards.
func (r *renewer) beginSession(ctx context.Context) error {
	r.state.Lock()
	r.state.session.end(time.Now().Add(calmParts * r.cfg.TTL))
	r.state.Unlock()
	r.cfg.Logger.Warn("the leases of the node have ended: its key expired", "node", r.cfg.Node.ID)
	_, err := r.announceNode(ctx)
	return err
}

func mustEncode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("shard: a value of ours does not encode: " + err.Error())
	}
	return data
}
