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
// the pause and the settings that it announces. What providers report about their rates is the
// same for all nodes and outlives them: it has one key for each throttle (<throttle>.rates). A pause is a duration
// from the broker's stamp of its entry, so no two clocks are compared. If the bucket cannot be reached, each node
// runs into the limits by itself: at most as many more refusals as there are nodes.
type throttleSync struct {
	js         jetstream.JetStream
	bucket     jetstream.KeyValue // nil: a node that is alone has kept no notice yet
	buckets    bus.BucketConfig   // creates the bucket with the first notice
	name       string             // of the bucket
	id         string             // of this node
	localNode  func() *actors.Node
	countNodes func() int // that are live
	warn       func(what string, err error)

	mu      sync.Mutex
	pending map[string]pendingNotice // to be published, by throttle
	wakeup  chan struct{}

	kept map[string]keptRates // what the bucket has of rates, by throttle
}

// keptRates are rates in the bucket, which expire.
type keptRates struct {
	throttle.Rates
	since time.Time
}

// pendingNotice is a notice, and the end of the pause that it announces.
type pendingNotice struct {
	notice    throttle.Notice
	pauseEnds time.Time
}

// Intervals of the sharing.
const (
	noticeTimeout  = 2 * time.Second // one attempt to write a notice
	noticeInterval = time.Second     // until the next attempt, and between two counts of live nodes
	noticeRewatch  = time.Minute     // after which the bucket is read again, in case its watch has stalled
)

// Reports about rates in the bucket.
const (
	ratesOwner = "rates" // in the place of a node in their keys
	ratesTTL   = 24 * time.Hour
	// ratesKept is how many throttles have one: clients can name models without end, and the bucket is for notices
	// about pauses, too.
	ratesKept = 256
)

// newThrottleSync prepares the sharing. The actors call queueNotice.
func (n *Node) newThrottleSync(b *bus.Buckets) (*throttleSync, error) {
	js, err := jetstream.New(n.logConn)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	var id [8]byte
	rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	g := &throttleSync{js: js, bucket: b.Throttles, buckets: bus.BucketConfig{Names: n.names}, name: n.names.ThrottleBucket(), id: hex.EncodeToString(id[:]), countNodes: n.logOwner.CountSharers, pending: map[string]pendingNotice{}, kept: map[string]keptRates{},
		localNode: func() *actors.Node { return n.actorNode }, wakeup: make(chan struct{}, 1),
		warn: func(what string, err error) { n.cfg.Logger.Warn(what, "error", err) }}
	return g, nil
}

// queueNotice queues a notice about what a provider has said here. It does not block.
func (g *throttleSync) queueNotice(name string, n throttle.Notice) {
	if names.CheckToken(name) != nil {
		return // other nodes could not have this name
	}
	g.mu.Lock()
	if g.pending[name].notice.Why == throttle.OK && n.Why == "" {
		n.Why = throttle.OK // the end of an overload has not been sent yet
	}
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
		if g.bucket != nil && (watch == nil || time.Since(read) > noticeRewatch) {
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
		err := g.keepRates(ctx, name, s.notice.Rates)
		if err == nil {
			err = g.writeNotice(ctx, name, s)
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

// writeNotice writes what this node announces about a throttle, for as long as it applies.
func (g *throttleSync) writeNotice(ctx context.Context, name string, s pendingNotice) error {
	n, ttl := s.notice, bus.TTLMin
	n.Rates = throttle.Rates{} // they have their own key
	if g.countNodes() < 2 {
		n.Settings = throttle.Rates{} // no other node needs them; later nodes get the next ones
	}
	if left := time.Until(s.pauseEnds); n.PauseMS > 0 && left > 0 {
		n.PauseMS, ttl = left.Milliseconds(), left+bus.TTLMin
	} else if n.PauseMS > 0 {
		n.PauseMS, n.Why = 0, "" // the pause is over; only the settings are left
	}
	if n.Settings != (throttle.Rates{}) {
		ttl = max(ttl, time.Duration(throttle.DefaultLimits().SettingsTTL)*time.Millisecond)
	}
	if n == (throttle.Notice{}) {
		return nil
	}
	return g.put(ctx, name+"."+g.id, n, ttl)
}

// keepRates writes what a provider reports about its rates, unless the bucket has it.
func (g *throttleSync) keepRates(ctx context.Context, name string, r throttle.Rates) error {
	known, ok := g.kept[name]
	if r == (throttle.Rates{}) || ok && known.Rates == r && time.Since(known.since) < ratesTTL/2 || !ok && len(g.kept) >= ratesKept {
		return nil
	}
	if err := g.put(ctx, name+"."+ratesOwner, throttle.Notice{Rates: r}, ratesTTL); err != nil {
		return err
	}
	g.kept[name] = keptRates{r, time.Now()}
	return nil
}

func (g *throttleSync) put(ctx context.Context, key string, n throttle.Notice, ttl time.Duration) error {
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	soon, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	if g.bucket == nil {
		if g.bucket, err = g.buckets.OpenThrottles(soon, g.js); err != nil {
			return err
		}
	}
	return bus.PutWithTTL(soon, g.js, g.name, key, data, ttl)
}

// applyNotice passes on each notice of another node once. It shortens the pause of an older
// notice by the age of that notice.
func (g *throttleSync) applyNotice(ctx context.Context, e jetstream.KeyValueEntry, seen map[string]uint64, old bool) {
	name, who, ok := strings.Cut(e.Key(), ".")
	if e.Operation() != jetstream.KeyValuePut {
		delete(seen, e.Key()) // the notice has expired
		if who == ratesOwner {
			delete(g.kept, name)
		}
		return
	}
	if !ok || who == g.id || seen[e.Key()] >= e.Revision() {
		return
	}
	seen[e.Key()] = e.Revision()
	var n throttle.Notice
	if err := json.Unmarshal(e.Value(), &n); err != nil {
		g.warn("a throttle message of another node does not decode", err)
		return
	}
	if who == ratesOwner {
		if g.kept[name].Rates == n.Rates {
			return // this node has written it
		}
		g.kept[name] = keptRates{n.Rates, e.Created()}
	}
	if old && n.PauseMS > 0 {
		n.PauseMS = max(0, n.PauseMS-g.entryAge(ctx, e.Created()).Milliseconds())
	}
	g.localNode().ApplyNotice(name, n)
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
