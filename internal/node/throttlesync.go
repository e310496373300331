package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/throttle"
)

// throttleSync shares the rate limits of providers between nodes. Each node has its own keys
// (<throttle>.<node>), so no node overwrites the notice of another, and each key expires with
// the pause that it announces. A pause is a duration from the broker's stamp of its entry,
// so no two clocks are compared. If the bucket cannot be reached, each node runs into the
// limits by itself: at most as many more refusals as there are nodes.
type throttleSync struct {
	js         jetstream.JetStream
	bucket     jetstream.KeyValue
	name       string // of the bucket
	id         string // of this node
	localNode  func() *actors.Node
	countNodes func() int // that are live
	warn       func(what string, err error)

	mu      sync.Mutex
	pending map[string]pendingNotice // to be published, by throttle
	wakeup  chan struct{}
}

// pendingNotice is a notice, and the end of the pause that it announces.
type pendingNotice struct {
	notice    throttle.Notice
	pauseEnds time.Time
}

// Intervals of the sharing.
const (
	noticeTimeout  = 2 * time.Second  // one attempt to write a notice
	noticeInterval = time.Second      // until the next attempt, and between two counts of live nodes
	noticeRewatch  = time.Minute      // after which the bucket is read again, in case its watch has stalled
	rateMemory     = 10 * time.Minute // of rates
)

// newThrottleSync prepares the sharing. The actors call told.
func (h *Node) newThrottleSync(b *bus.Buckets) (*throttleSync, error) {
	js, err := jetstream.New(h.logConn)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	var id [8]byte
	rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	g := &throttleSync{js: js, bucket: b.Gates, name: h.names.ThrottleBucket(), id: hex.EncodeToString(id[:]), countNodes: h.logOwner.CountSharers, pending: map[string]pendingNotice{},
		localNode: func() *actors.Node { return h.actorNode }, wakeup: make(chan struct{}, 1),
		warn: func(what string, err error) { h.cfg.Logger.Warn(what, "error", err) }}
	return g, nil
}

// queueNotice queues a notice about what a provider has said here. It does not block.
func (g *throttleSync) queueNotice(name string, n throttle.Notice) {
	if names.CheckToken(name) != nil {
		return // other nodes could not have this name
	}
	g.mu.Lock()
	g.pending[name] = pendingNotice{n, time.Now().Add(time.Duration(n.PauseMS) * time.Millisecond)}
	g.mu.Unlock()
	select {
	case g.wakeup <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// run writes and reads notices until ctx ends.
func (g *throttleSync) run(ctx context.Context) {
	seen := map[string]uint64{} // revisions, by key
	tick := time.NewTicker(noticeInterval)
	defer tick.Stop()
	var watch jetstream.KeyWatcher
	var updates <-chan jetstream.KeyValueEntry
	var read time.Time
	old := false // the entries were there before the watch
	stop := func() {
		if watch != nil {
			_ = watch.Stop() // its consumer is ephemeral
			watch, updates = nil, nil
		}
	}
	defer func() { stop() }()
	for {
		if watch == nil || time.Since(read) > noticeRewatch {
			stop()
			read = time.Now()
			if w, err := g.bucket.WatchAll(ctx); err == nil {
				watch, updates, old = w, w.Updates(), true
			}
		}
		select {
		case <-ctx.Done():
			return
		case e, open := <-updates:
			switch {
			case !open:
				stop()
			case e == nil:
				old = false
			default:
				g.applyNotice(ctx, e, seen, old)
			}
		case <-g.wakeup:
			g.writePending(ctx)
		case <-tick.C:
			g.localNode().ShareLimits(g.countNodes())
			g.writePending(ctx)
		}
	}
}

// writePending writes the pending notices, and keeps those that it could not write for the next
// attempt.
func (g *throttleSync) writePending(ctx context.Context) {
	g.mu.Lock()
	said := g.pending
	g.pending = map[string]pendingNotice{}
	g.mu.Unlock()
	for name, s := range said {
		n, ttl := s.notice, bus.TTLMin
		if left := time.Until(s.pauseEnds); n.PauseMS > 0 && left > 0 {
			n.PauseMS, ttl = left.Milliseconds(), left+bus.TTLMin
		} else if n.PauseMS > 0 {
			n.PauseMS = 0 // the pause is over; only the rates are left
			if n.Why = throttle.OK; n.Requests == 0 && n.Tokens == 0 {
				continue
			}
		}
		if n.Requests > 0 || n.Tokens > 0 {
			ttl = max(ttl, rateMemory)
		}
		data, err := json.Marshal(n)
		if err == nil {
			soon, cancel := context.WithTimeout(ctx, noticeTimeout)
			err = bus.PutWithTTL(soon, g.js, g.name, name+"."+g.id, data, ttl)
			cancel()
		}
		if err != nil && ctx.Err() == nil {
			g.warn("the state of a throttle was not sent to the other nodes; retrying", err)
			g.mu.Lock()
			if _, newer := g.pending[name]; !newer {
				g.pending[name] = s
			}
			g.mu.Unlock()
		}
	}
}

// applyNotice passes on each notice of another node once. It shortens the pause of an older
// notice by the age of that notice.
func (g *throttleSync) applyNotice(ctx context.Context, e jetstream.KeyValueEntry, seen map[string]uint64, old bool) {
	if e.Operation() != jetstream.KeyValuePut {
		delete(seen, e.Key()) // the notice has expired
		return
	}
	name, who, ok := strings.Cut(e.Key(), ".")
	if !ok || who == g.id || seen[e.Key()] >= e.Revision() {
		return
	}
	seen[e.Key()] = e.Revision()
	var n throttle.Notice
	if err := json.Unmarshal(e.Value(), &n); err != nil {
		g.warn("a throttle message of another node does not decode", err)
		return
	}
	if old && n.PauseMS > 0 {
		n.PauseMS = max(0, n.PauseMS-g.entryAge(ctx, e.Created()).Milliseconds())
	}
	g.localNode().HearNotice(name, n)
}

// entryAge returns how long ago the broker stamped an entry, by the broker's own clock. An entry
// of unknown age counts as new, so its pause is the longer one.
func (g *throttleSync) entryAge(ctx context.Context, stamped time.Time) time.Duration {
	soon, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	s, err := g.js.Stream(soon, "KV_"+g.name)
	if err != nil || s.CachedInfo().TimeStamp.IsZero() {
		return 0
	}
	return max(0, s.CachedInfo().TimeStamp.Sub(stamped))
}
