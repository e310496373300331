package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Limits of sending.
const (
	attemptsMax = 4                      // of a batch
	retryPause  = 500 * time.Millisecond // after the first attempt; it doubles
	pauseMax    = 10 * time.Second       // that a receiver may ask for
	closeMax    = 2 * time.Second        // of Close
)

var (
	errQueueFull = errors.New("telemetry: more spans than the receiver takes")
	errClosing   = errors.New("telemetry: the node ends")
)

// sender sends batches of spans, one at a time.
type sender struct {
	cfg    *Config
	target target
	queue  *spanQueue
	runs   *runCache
	post   func(ctx context.Context, body []byte) (rejected int64, err error)

	closing chan struct{} // closed when the last batches are to be sent
	closed  sync.Once
	done    chan struct{}
	failing bool  // the operator knows that spans are dropped
	sentAt  int64 // how many spans had been sent then
}

func newSender(cfg *Config, t target, q *spanQueue) *sender {
	c := newHTTPClient(t)
	return &sender{cfg: cfg, target: t, queue: q, runs: newRunCache(cfg, t), post: c.post, closing: make(chan struct{}), done: make(chan struct{})}
}

// run sends spans until finish, or until ctx ends.
func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case <-s.queue.news:
			s.wait(ctx, s.target.flushEvery) // for others of the same batch
		case <-s.closing:
		case <-ctx.Done():
			return
		}
		s.drain(ctx)
		select {
		case <-s.closing:
			s.drain(ctx)
			return
		default:
		}
	}
}

// wait waits, and reports whether it has waited to the end.
func (s *sender) wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.closing:
	case <-ctx.Done():
	}
	return false
}

// finish has what waits sent, for closeMax at most.
func (s *sender) finish() {
	s.closed.Do(func() { close(s.closing) })
	t := time.NewTimer(closeMax)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
}

// drain sends all that waits.
func (s *sender) drain(ctx context.Context) {
	for ctx.Err() == nil {
		list := s.queue.take(s.target.batchMax)
		if len(list) == 0 {
			break
		}
		s.sendBatch(ctx, list)
		s.report()
	}
	s.report()
}

// report logs once that spans are dropped, and once that they are not any more.
func (s *sender) report() {
	err := s.queue.takeError()
	switch {
	case err != nil && !s.failing:
		s.failing, s.sentAt = true, s.queue.exported.Load()
		s.cfg.Logger.Warn("spans are dropped; troupe_spans_dropped_total counts them", "receiver", s.target.shownURL(), "error", err)
	case err == nil && s.failing && s.queue.exported.Load() > s.sentAt:
		s.failing = false
		s.cfg.Logger.Info("spans are sent again", "receiver", s.target.shownURL(), "dropped", s.queue.dropped.Load())
	}
}

// sendBatch encodes and sends spans, in several attempts.
func (s *sender) sendBatch(ctx context.Context, list []span) {
	spans := s.encode(ctx, list)
	if len(spans) == 0 {
		return
	}
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{Resource: s.target.resource(s.cfg),
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: scope(s.cfg.Version), Spans: spans}}}}})
	if err != nil {
		s.queue.lose(len(spans), fmt.Errorf("telemetry: encode: %w", err))
		return
	}
	pause := retryPause
	for attempt := 1; ; attempt++ {
		rejected, err := s.post(ctx, body)
		if err == nil {
			rejected = min(rejected, int64(len(spans)))
			s.queue.exported.Add(int64(len(spans)) - rejected)
			if rejected > 0 {
				s.queue.lose(int(rejected), errRejected)
			}
			return
		}
		var again *retryableError
		if !errors.As(err, &again) || attempt == attemptsMax || s.failing { // one attempt shows whether it works again
			s.queue.lose(len(spans), err)
			return
		}
		if !s.wait(ctx, max(pause, min(again.after, pauseMax))) {
			s.queue.lose(len(spans), errors.Join(errClosing, err))
			return
		}
		pause *= 2
	}
}

// encode encodes the spans of runs that are sampled.
func (s *sender) encode(ctx context.Context, list []span) []*tracepb.Span {
	spans := make([]*tracepb.Span, 0, len(list))
	for _, one := range list {
		if one.trace != nil { // of a request, which is sampled
			spans = append(spans, runFacts{trace: *one.trace, openedMS: one.startMS}.encode(one, s.cfg.Mask.MaskText))
			continue
		}
		run, err := s.runs.find(ctx, one.run)
		if err != nil {
			s.queue.lose(1, err)
			continue
		}
		if run.trace.sampled {
			spans = append(spans, run.encode(one, s.cfg.Mask.MaskText))
		}
	}
	return spans
}
