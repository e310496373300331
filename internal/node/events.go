package node

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent/event"
)

const (
	// publishPause is how long an event waits for others, and busyPause how long it waits after
	// a burst of more than burstMax events. A server copies each event to every observer and
	// wakes a writer for each copy, but writes events that arrive together at once.
	publishPause = 2 * time.Millisecond
	busyPause    = 50 * time.Millisecond
	burstMax     = 32
	// waitingMax is how many events may wait while the connection accepts none. Events beyond
	// it are not published; a client that follows a run reads them from the logs.
	waitingMax = 4096
	// mergedTextMax is about how many bytes of a streamed reply are joined in one event.
	mergedTextMax = 16 << 10
)

// eventPublisher holds the events that wait to be published, in order per log.
type eventPublisher struct {
	sendEvents func([]event.Published)
	logger     *slog.Logger

	mu      sync.Mutex
	waiting []event.Published
	newest  map[string]int // in waiting, by log
	lost    int
	added   int         // events since the last burst
	busy    bool        // the last burst was large
	closed  bool        // no more events are published
	timer   *time.Timer // set while events wait

	dropped atomic.Int64 // events that were lost since the start

	sending sync.Mutex // one burst at a time
}

func newEventPublisher(tell func([]event.Published), logger *slog.Logger) *eventPublisher {
	return &eventPublisher{sendEvents: tell, logger: logger, newest: map[string]int{}}
}

// add queues an event, and never blocks. An event that ends a wait is published without a pause.
func (t *eventPublisher) add(e event.Published) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return // the logs contain it
	}
	t.added++
	pause := publishPause
	if t.busy {
		pause = busyPause
	}
	ends := e.Kind == event.KindRunFinished || e.Kind == event.KindRunParked
	if ends {
		pause = 0
	}
	switch {
	case t.timer == nil:
		t.timer = time.AfterFunc(pause, t.publishWaiting)
	case pause == 0:
		t.timer.Reset(0)
	}
	log, _, _ := strings.Cut(e.ID, "#")
	if i, ok := t.newest[log]; ok && mergeStreamed(&t.waiting[i], e) {
		return
	}
	// Clients wait for the end of a run: of such an event a node has one for each of its runs.
	if len(t.waiting) >= waitingMax && (!ends || len(t.waiting) >= 2*waitingMax) {
		t.lost++
		t.dropped.Add(1)
		return
	}
	t.newest[log] = len(t.waiting)
	t.waiting = append(t.waiting, e)
}

// mergeStreamed merges an event that is in no log into the one before it, if that belongs to the
// same stream: pieces of text are appended, and progress replaces earlier progress.
func mergeStreamed(before *event.Published, e event.Published) bool {
	if e.Seq > 0 || before.Kind != e.Kind || streamID(before.ID) != streamID(e.ID) {
		return false
	}
	switch d := e.Data.(type) {
	case event.Delta:
		was, ok := before.Data.(event.Delta)
		if !ok || len(was.Text)+len(d.Text) > mergedTextMax {
			return false
		}
		e.Data = event.Delta{Text: was.Text + d.Text}
	case event.Progress:
	default:
		return false
	}
	*before = e
	return true
}

// streamID returns the id of an event without its last number.
func streamID(id string) string { return id[:max(0, strings.LastIndexByte(id, '.'))] }

// publishWaiting publishes all waiting events.
func (t *eventPublisher) publishWaiting() {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	list, lost := t.waiting, t.lost
	t.busy = t.added > burstMax
	t.waiting, t.lost, t.added, t.timer = nil, 0, 0, nil
	clear(t.newest)
	t.mu.Unlock()
	t.sendEvents(list)
	if lost > 0 {
		t.logger.Warn("events were not published: the connection does not accept them", "lost", lost)
	}
}

// close publishes the waiting events, and none after them.
func (t *eventPublisher) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.publishWaiting()
}
