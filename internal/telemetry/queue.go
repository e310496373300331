package telemetry

import (
	"sync"
	"sync/atomic"
)

// queueBytesMax is about how many bytes of spans may wait.
const queueBytesMax = 16 << 20

// spanQueue holds the spans that wait to be sent. A span beyond its limits is dropped and counted.
type spanQueue struct {
	most int // spans

	mu      sync.Mutex
	waiting []span
	bytes   int
	news    chan struct{} // has a token when spans wait
	lastErr error         // why spans were dropped

	exported, dropped atomic.Int64
}

func newSpanQueue(most int) *spanQueue { return &spanQueue{most: most, news: make(chan struct{}, 1)} }

// add adds spans, and does not block.
func (q *spanQueue) add(list ...span) {
	if len(list) == 0 {
		return
	}
	q.mu.Lock()
	for i, s := range list {
		if len(q.waiting) >= q.most || q.bytes >= queueBytesMax {
			q.dropped.Add(int64(len(list) - i))
			q.lastErr = errQueueFull
			break
		}
		q.waiting = append(q.waiting, s)
		q.bytes += s.size()
	}
	q.mu.Unlock()
	select {
	case q.news <- struct{}{}:
	default:
	}
}

// take takes at most n spans.
func (q *spanQueue) take(n int) []span {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.waiting))
	list := q.waiting[:n:n]
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	for _, s := range list {
		q.bytes -= s.size()
	}
	return list
}

// lose counts spans that are not sent.
func (q *spanQueue) lose(n int, why error) {
	q.dropped.Add(int64(n))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lastErr = why
}

// takeError returns why spans were dropped since its last call; nil if none were dropped.
func (q *spanQueue) takeError() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.lastErr
	q.lastErr = nil
	return err
}

func (q *spanQueue) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// spanBytes is the approximate size of a span without its texts.
const spanBytes = 512

// size is about how many bytes the span takes.
func (s *span) size() int {
	n := spanBytes + len(s.errorText)
	for _, a := range s.attributes {
		if text, ok := a.value.(string); ok {
			n += len(text)
		}
	}
	return n
}
