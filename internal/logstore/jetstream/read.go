package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/mailbox"
)

// Tail implements mailbox.Post for the base pool: one ordered reader per stream, so deliver is
// called from as many goroutines. Message.At is the unmodified stamp of the store: a reader
// that needs time not to go backwards must ensure that itself. stop must not be called from
// within deliver.
func (p *Post) Tail(ctx context.Context, deliver func(mailbox.Message)) (func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	var readers []*follower
	all := func(m mailbox.Message) bool { deliver(m); return true }
	for _, s := range p.base.streams {
		last, err := s.lastSequence(ctx)
		if err == nil {
			f := s.follow([]string{p.cfg.Names.AllBoxes()}, last+1, all)
			readers = append(readers, f)
			err = f.attachConsumer(ctx)
		}
		if err != nil {
			cancel()
			for _, f := range readers {
				f.endDelivery()
			}
			return nil, fmt.Errorf("jetstream: tail: %w", err)
		}
	}
	var ended sync.WaitGroup
	for _, f := range readers {
		ended.Go(func() {
			defer f.endDelivery()
			// The reader ends with ctx or with the Post, and the caller knows of both.
			_ = f.stayAttached(ctx, nil)
		})
	}
	return func() {
		cancel()
		ended.Wait()
	}, nil
}

// lastSequence asks the leader for the last sequence of a stream.
func (s *poolStream) lastSequence(ctx context.Context) (uint64, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// lastOf asks the leader for the last place of one log; 0: there is no entry.
func (s *poolStream) lastOf(ctx context.Context, subject string) (uint64, error) {
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

// Read implements mailbox.Post. The leader reports the end of the log, and Read reads up to
// that end, whichever server the consumer is on.
func (p *Post) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	subject, stream, err := p.pools.findHome(ctx, at)
	if err != nil {
		return fmt.Errorf("jetstream: read: %w", err)
	}
	after, all, err := stream.readFew(ctx, subject, at, after, through, each)
	if err != nil || all {
		return err
	}
	end, err := stream.lastOf(ctx, subject)
	if err == nil && end == 0 {
		// There are entries, but no last one: it was purged, or it is corrupt.
		end, err = stream.lastSequence(ctx)
	}
	if err != nil {
		return fmt.Errorf("jetstream: read %s: %w", at, err)
	}
	if through > 0 {
		end = min(end, through)
	}
	if end <= after {
		return nil
	}
	part := readRange{stream: stream, filter: subject, next: after + 1, end: end}
	part.want = func(m mailbox.Message) (take, more bool) { return m.Place <= end, m.Place < end }
	part.over = func(ctx context.Context) bool { // the rest was purged
		last, err := stream.lastOf(ctx, subject)
		return err == nil && last < end
	}
	if err := part.read(ctx, each); err != nil {
		return fmt.Errorf("jetstream: read %s: %w", at, err)
	}
	return nil
}

// fewEntries is how many entries are requested one by one before a consumer is created. Most
// logs that a shell reads are new and have two entries: a consumer for each took two fifths
// of the time of a run of 1,000 short agents.
const fewEntries = 4

// readFew reads the first entries of a log by requests to the leader; all says that no
// entries follow them.
func (s *poolStream) readFew(ctx context.Context, subject string, at mailbox.Address, after, through uint64,
	each func(mailbox.Message) error) (last uint64, all bool, err error) {
	for range fewEntries {
		m, err := s.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && through > 0 && m.Sequence > through {
			return after, true, nil
		}
		if err != nil {
			return after, false, fmt.Errorf("jetstream: read %s: %w", at, err)
		}
		if err := each(storedMessage(at, m.Sequence, m.Time.UnixNano(), m.Header, m.Data)); err != nil {
			return after, false, err
		}
		if after = m.Sequence; after == through {
			return after, true, nil
		}
	}
	return after, false, nil
}

// readRange describes what a read selects from a stream.
type readRange struct {
	stream *poolStream
	filter string
	next   uint64
	end    uint64 // the last place that may belong to the part
	// want reports whether a message belongs to the part, and whether others follow.
	want func(mailbox.Message) (take, more bool)
	// over is called now and then, and reports whether the missing messages were removed.
	over func(context.Context) bool
}

// readAhead is how many messages a reader may be ahead of its caller.
const readAhead = 64

// read calls each on the caller's goroutine, so that the caller can recover from a panic in
// it. If the consumer has no more messages but some are still missing, because they are
// corrupt there or were purged, read asks the leader for the rest.
func (part *readRange) read(ctx context.Context, each func(mailbox.Message) error) error {
	for {
		short, err := part.readOn(ctx, each)
		if err != nil || !short {
			return err
		}
		if again, err := part.readRest(ctx, each); err != nil || !again {
			return err
		}
	}
}

// readOn reads through a consumer; short says that some messages are missing.
func (part *readRange) readOn(ctx context.Context, each func(mailbox.Message) error) (short bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages := make(chan mailbox.Message, readAhead)
	ended := make(chan error, 1)
	f := part.stream.follow([]string{part.filter}, part.next, func(m mailbox.Message) bool {
		take, more := part.want(m)
		if take {
			select {
			case messages <- m:
			case <-ctx.Done():
				return false
			}
		}
		return more
	})
	go func() {
		err := f.runUntil(ctx, func(ctx context.Context) bool {
			short = part.over(ctx) || f.checkDrained(ctx)
			return short
		})
		close(messages)
		ended <- err
	}()
	for m := range messages {
		part.next = m.Place + 1
		if err := each(m); err != nil {
			cancel()
			<-ended //nolint:errcheck // the error of each comes first
			return false, err
		}
	}
	err = <-ended
	return short, err
}

// readRest reads the remainder of a part by requests to the leader; again says that the stream
// has no leader now.
func (part *readRange) readRest(ctx context.Context, each func(mailbox.Message) error) (again bool, err error) {
	for part.next <= part.end {
		m, err := part.stream.GetMsg(ctx, part.next, jetstream.WithGetMsgSubject(part.filter))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound), err == nil && m.Sequence > part.end:
			return false, nil
		case bus.IsUnavailable(err) && ctx.Err() == nil:
			return true, nil
		case err != nil:
			return false, err
		}
		part.next = m.Sequence + 1
		at, ok := part.stream.pool.parseSubject(m.Subject)
		if !ok {
			continue // not the subject of a log
		}
		if err := each(storedMessage(at, m.Sequence, m.Time.UnixNano(), m.Header, m.Data)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// storedMessage is a message with the server's stamp, which is in Unix nanoseconds, or with the stamp of the store that
// held an imported entry first.
func storedMessage(to mailbox.Address, place uint64, stamp int64, header nats.Header, data []byte) mailbox.Message {
	m := mailbox.Message{To: to, Place: place, At: stamp / int64(time.Millisecond), Nanos: stamp % int64(time.Millisecond), Data: data}
	if given, err := strconv.ParseInt(header.Get(stampHeader), 10, 64); err == nil && given >= 0 {
		m.At, m.Nanos, m.Imported = given/int64(time.Millisecond), given%int64(time.Millisecond), true
	}
	return m
}

// ReadRun implements mailbox.Store: one consumer per stream that has entries
// of the run.
func (p *Post) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	filter, err := p.cfg.Names.RunSubjects(run)
	if err != nil {
		return fmt.Errorf("jetstream: read: %w", err)
	}
	pools, err := p.pools.all(ctx)
	if err != nil {
		return err
	}
	for _, pl := range pools {
		for _, s := range pl.streams {
			if err := s.readSome(ctx, filter, each); err != nil {
				return fmt.Errorf("jetstream: read run %s: %w", run, err)
			}
		}
	}
	return nil
}

// readSome reads what the stream now holds under a filter.
func (s *poolStream) readSome(ctx context.Context, filter string, each func(mailbox.Message) error) error {
	count, end, err := s.countEntries(ctx, filter)
	if err != nil || count == 0 {
		return err
	}
	var seen atomic.Uint64
	part := readRange{stream: s, filter: filter, next: 1, end: end}
	part.want = func(m mailbox.Message) (take, more bool) {
		if m.Place > end {
			return false, false
		}
		return true, seen.Add(1) < count && m.Place < end
	}
	part.over = func(ctx context.Context) bool { // some entries were purged
		left, _, err := s.countEntries(ctx, filter)
		return err == nil && left <= seen.Load()
	}
	return part.read(ctx, each)
}

// Purge implements mailbox.Post.
func (p *Post) Purge(ctx context.Context, at mailbox.Address, before uint64) error {
	subject, stream, err := p.pools.findHome(ctx, at)
	if err != nil {
		return fmt.Errorf("jetstream: purge: %w", err)
	}
	options := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject)}
	if before > 0 {
		options = append(options, jetstream.WithPurgeSequence(before))
	}
	if err := stream.Purge(ctx, options...); err != nil {
		return fmt.Errorf("jetstream: purge %s: %w", at, err)
	}
	return nil
}
