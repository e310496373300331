package jetstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	// consumerIdle is how long the server keeps a consumer without a subscription.
	consumerIdle = 30 * time.Second
	// attachPause is the pause after a failed attempt to attach again.
	attachPause = 250 * time.Millisecond
	// beatsMissed is how many heartbeats may be missed.
	beatsMissed = 2

	headerLastConsumer = "Nats-Last-Consumer"
	headerStalled      = "Nats-Consumer-Stalled"
)

// follower reads a part of one stream in order through a disposable push consumer: after any
// failure (a gap, a missing heartbeat, a consumer deleted by the server, a reconnect), it
// creates a new consumer from the first message not yet delivered. So no message is lost,
// doubled or reordered.
//
// deliver runs under mu, from the one goroutine of the subscription.
type follower struct {
	readers *readers
	stream  *poolStream
	filter  []string
	newest  bool // only the newest entry of each log
	deliver func(mailbox.Message) (more bool)
	broken  chan string
	done    chan struct{}

	mu     sync.Mutex
	sub    *nats.Subscription
	name   string // of the consumer
	next   uint64 // stream sequence of the first message not yet delivered
	seen   uint64 // consumer sequence of the last message
	active bool   // a message arrived since this was last set to false
	ended  bool
	asked  string // name and seen at the previous call of drained
	at     uint64
}

// readers are the followers that are attached now.
type readers struct {
	cfg     *Config
	closing context.Context // done when Close begins

	mu       sync.Mutex
	attached map[*follower]struct{}
}

func (r *readers) add(f *follower) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attached[f] = struct{}{}
}

func (r *readers) remove(f *follower) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attached, f)
}

// reattach makes every follower attach again.
func (r *readers) reattach(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.attached {
		f.breakOff(why)
	}
}

// follow returns a follower of the stream, which reads nothing yet.
func (s *poolStream) follow(filter []string, next uint64, deliver func(mailbox.Message) bool) *follower {
	return &follower{
		readers: s.pool.pools.readers, stream: s, filter: filter, next: next, deliver: deliver,
		broken: make(chan string, 1), done: make(chan struct{}),
	}
}

// breakOff makes the follower attach again.
func (f *follower) breakOff(why string) {
	select {
	case f.broken <- why:
	default:
	}
}

// attachConsumer creates a consumer from next on. Messages that the previous consumer still had in
// flight are not delivered any more.
func (f *follower) attachConsumer(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return nil
	}
	f.dropConsumer()
	nc := f.readers.cfg.Reader
	inbox, name := nc.NewInbox()+"."+rand.Text(), nuid.Next()
	sub, err := nc.Subscribe(inbox, func(m *nats.Msg) { f.handleMessage(name, m) })
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	// The server's flow control bounds what waits here.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	f.sub, f.name, f.seen, f.active = sub, name, 0, true
	cfg := jetstream.ConsumerConfig{
		Name:              name,
		DeliverSubject:    inbox,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.next,
		AckPolicy:         jetstream.AckNonePolicy,
		FlowControl:       true,
		IdleHeartbeat:     f.readers.cfg.Heartbeat,
		InactiveThreshold: consumerIdle,
		MemoryStorage:     true,
		Replicas:          1,
	}
	if len(f.filter) == 1 {
		cfg.FilterSubject = f.filter[0]
	} else {
		cfg.FilterSubjects = f.filter
	}
	if f.newest {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverLastPerSubjectPolicy, 0
	}
	within, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	if err := f.createConsumer(within, cfg); err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	return nil
}

// createConsumer repeats its request until the server answers: a cluster loses requests while it elects a leader. All requests
// name the same consumer, so it does not matter if several arrive.
func (f *follower) createConsumer(ctx context.Context, cfg jetstream.ConsumerConfig) error {
	for {
		within, cancel := context.WithTimeout(ctx, f.readers.cfg.Heartbeat)
		_, err := f.stream.CreatePushConsumer(within, cfg)
		lost := within.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !lost {
			return err
		}
	}
}

// dropConsumer deletes the consumer. mu is held.
func (f *follower) dropConsumer() {
	if f.sub == nil {
		return
	}
	_ = f.sub.Unsubscribe() // an error means that there is no connection, and so no subscription
	// The server deletes a consumer without a subscription by itself, so an error loses nothing.
	_ = f.readers.cfg.Reader.Publish(f.readers.cfg.APIPrefix+"CONSUMER.DELETE."+f.stream.CachedInfo().Config.Name+"."+f.name, nil)
	f.sub, f.name = nil, ""
}

// endDelivery stops the delivery, which has ended when endDelivery returns.
func (f *follower) endDelivery() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.dropConsumer()
}

// runUntil attaches and stays attached until deliver wants no more messages, ctx ends or idle,
// which is called when no message arrived for a while, reports that the read is over. It
// returns only the error of the first attach.
func (f *follower) runUntil(ctx context.Context, idle func(context.Context) bool) error {
	defer f.endDelivery()
	if err := f.attachConsumer(ctx); err != nil {
		return err
	}
	return f.stayAttached(ctx, idle)
}

func (f *follower) stayAttached(ctx context.Context, idle func(context.Context) bool) error {
	f.readers.add(f)
	defer f.readers.remove(f)
	beat := time.NewTicker(f.readers.cfg.Heartbeat)
	defer beat.Stop()
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	missed := 0
	for {
		why := ""
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.readers.closing.Done():
			return mailbox.ErrClosed
		case <-f.done:
			return nil
		case why = <-f.broken:
		case <-again.C:
			why = "not attached"
		case <-beat.C:
			if f.wasActive() {
				missed = 0
			} else if missed++; missed >= beatsMissed {
				why = "no heartbeat"
			}
			if idle != nil && idle(ctx) {
				return nil
			}
		}
		if why == "" {
			continue
		}
		missed = 0
		f.readers.cfg.Logger.Warn("reader attaches anew", "stream", f.stream.CachedInfo().Config.Name, "why", why)
		if err := f.attachConsumer(ctx); err != nil {
			f.readers.cfg.Logger.Warn("reader cannot attach", "error", err)
			again.Reset(attachPause)
		}
	}
}

func (f *follower) wasActive() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	active := f.active
	f.active = false
	return active
}

// checkDrained reports whether no message arrived since the previous call, and the consumer has
// sent none that was not seen. The consumer's count of pending messages proves nothing,
// because it includes corrupt ones.
func (f *follower) checkDrained(ctx context.Context) bool {
	f.mu.Lock()
	name, seen, still := f.name, f.seen, f.asked == f.name && f.at == f.seen
	f.asked, f.at = f.name, f.seen
	f.mu.Unlock()
	if name == "" || !still {
		return false
	}
	c, err := f.stream.PushConsumer(ctx, name)
	return err == nil && c.CachedInfo().Delivered.Consumer <= seen // otherwise the follower attaches again
}

// handleMessage handles a message that the consumer called name sends.
func (f *follower) handleMessage(name string, m *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || name != f.name {
		return
	}
	f.active = true
	// A stored message has a reply subject of its own kind; any other message is from the
	// server. Headers prove nothing: a stored message may have any.
	if !strings.HasPrefix(m.Reply, "$JS.ACK.") {
		f.handleControl(m)
		return
	}
	stamp, err := parseStamp(m.Reply)
	if err != nil || stamp.consumer != f.seen+1 {
		f.breakOff("gap")
		f.name = "" // ignore further messages of this consumer
		return
	}
	f.seen = stamp.consumer
	if stamp.stream < f.next {
		return // a consumer on a lagging follower starts early
	}
	f.next = stamp.stream + 1
	at, ok := f.stream.pool.parseSubject(m.Subject)
	if !ok {
		// The subject is not that of a log: the entry would break the order of the address it
		// names.
		f.readers.cfg.Logger.Warn("entry on a subject that is no log", "subject", m.Subject)
		return
	}
	if !f.deliver(storedMessage(at, stamp.stream, stamp.at, m.Header, m.Data)) {
		f.ended = true
		close(f.done)
	}
}

// handleControl handles heartbeats and flow control. mu is held.
func (f *follower) handleControl(m *nats.Msg) {
	answer := m.Reply
	if answer == "" {
		answer = m.Header.Get(headerStalled)
		last, err := strconv.ParseUint(m.Header.Get(headerLastConsumer), 10, 64)
		if err == nil && last != f.seen {
			f.breakOff("gap at the end")
			f.name = ""
			return
		}
	}
	if answer != "" {
		// A failure causes a missing heartbeat, which is handled.
		_ = f.readers.cfg.Reader.Publish(answer, nil)
	}
}

// messageStamp is the store's metadata of a message.
type messageStamp struct {
	stream, consumer uint64
	at               int64 // nanoseconds
}

// parseStamp reads the reply subject of a stored message:
// $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>[.<token>]
func parseStamp(reply string) (messageStamp, error) {
	const first, least, domains = 5, 9, 2
	var field [12]string
	n := 0
	for part := range strings.SplitSeq(reply, ".") {
		if n == len(field) {
			break
		}
		field[n] = part
		n++
	}
	at := first
	if n > least {
		at += domains
	}
	var s messageStamp
	var err error
	for i, to := range []*uint64{&s.stream, &s.consumer, nil} {
		if to == nil {
			s.at, err = strconv.ParseInt(field[at+i], 10, 64)
		} else {
			*to, err = strconv.ParseUint(field[at+i], 10, 64)
		}
		if err != nil {
			return messageStamp{}, fmt.Errorf("jetstream: reply %q: %w", reply, err)
		}
	}
	return s, nil
}
