package host

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/gateway"
)

const (
	// tellPause is how long an event waits for others. A server copies each to every
	// observer, and wakes a writer for each of them: what comes together, it writes at once.
	tellPause = 50 * time.Millisecond
	// tellAhead is how many events may wait while the connection takes none. Those
	// beyond it are not told; who follows a run has them from the logs.
	tellAhead = 4096
	// tellText is about how many bytes of a streamed reply are put together in one event.
	tellText = 16 << 10
)

// telling is the events that wait to be told, in order per log.
type telling struct {
	tell   func([]life.Event)
	logger *slog.Logger

	mu      sync.Mutex
	waiting []life.Event
	newest  map[string]int // in waiting, by log
	lost    int
	closed  bool        // nobody is told any more
	timer   *time.Timer // set while something waits

	turn sync.Mutex // one burst at a time
}

func newTelling(tell func([]life.Event), logger *slog.Logger) *telling {
	return &telling{tell: tell, logger: logger, newest: map[string]int{}}
}

// add takes an event, and never blocks. The end of a run does not wait.
func (t *telling) add(e life.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return // the logs have it
	}
	pause := tellPause
	if e.Kind == "run.finished" {
		pause = 0
	}
	switch {
	case t.timer == nil:
		t.timer = time.AfterFunc(pause, t.burst)
	case pause == 0:
		t.timer.Reset(0)
	}
	log, _, _ := strings.Cut(e.ID, "#")
	if i, ok := t.newest[log]; ok && joined(&t.waiting[i], e) {
		return
	}
	if len(t.waiting) >= tellAhead {
		t.lost++
		return
	}
	t.newest[log] = len(t.waiting)
	t.waiting = append(t.waiting, e)
}

// joined puts an event that is in no log into the one before it, if that is of the
// same stream: pieces of text follow each other, and progress goes over what was.
func joined(before *life.Event, e life.Event) bool {
	if e.Seq > 0 || before.Kind != e.Kind || stream(before.ID) != stream(e.ID) {
		return false
	}
	switch d := e.Data.(type) {
	case actors.Delta:
		was, ok := before.Data.(actors.Delta)
		if !ok || len(was.Text)+len(d.Text) > tellText {
			return false
		}
		e.Data = actors.Delta{Text: was.Text + d.Text}
	case actors.Progress:
	default:
		return false
	}
	*before = e
	return true
}

// stream is the id of an event without its last number.
func stream(id string) string { return id[:max(0, strings.LastIndexByte(id, '.'))] }

// burst tells all that waits.
func (t *telling) burst() {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.mu.Lock()
	list, lost := t.waiting, t.lost
	t.waiting, t.lost, t.timer = nil, 0, nil
	clear(t.newest)
	t.mu.Unlock()
	t.tell(list)
	if lost > 0 {
		t.logger.Warn("events were not told: the connection takes none", "lost", lost)
	}
}

// close tells what waits, and nothing after that.
func (t *telling) close() {
	t.mu.Lock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.burst()
}

// publish takes one event for observers. Nothing waits for them.
func (h *Host) publish(e life.Event) { h.telling.add(e) }

// tell sends events to observers. All are ready before the first is sent: the
// connection is flushed as soon as something is written.
func (h *Host) tell(list []life.Event) {
	type message struct {
		subject string
		data    []byte
	}
	ready := make([]message, 0, len(list))
	failed := func(id string, err error) { h.cfg.Logger.Warn("an event was not published", "event", id, "error", err) }
	for _, e := range list {
		subject, err := h.names.Event(e.Run, e.Agent, e.Kind)
		if err != nil {
			failed(e.ID, err)
			continue
		}
		raw, err := gateway.Encode(e, h.cfg.Bare)
		if err != nil {
			failed(e.ID, err)
			continue
		}
		ready = append(ready, message{subject, h.exits.bytes(raw)})
	}
	for _, m := range ready {
		if err := h.teller.Publish(m.subject, m.data); err != nil {
			failed(m.subject, err)
		}
	}
}
