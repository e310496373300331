package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/control"
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

// queueEvent queues one event for observers. The actors do not wait for observers. If the server
// is in this process and the event has no subscriber, the server would drop it: then queueEvent
// does not encode, mask and queue the event.
func (n *Node) queueEvent(e event.Published) {
	n.watch.observe(e)
	if n.spans != nil {
		n.spans.Observe(e)
	}
	if n.embedded != nil && !hasSubscriber(n, e) {
		return
	}
	n.publisher.add(e)
}

// hasSubscriber reports whether anybody would receive an event from the server in this process.
func hasSubscriber(n *Node, e event.Published) bool {
	subject, err := n.names.EventSubject(e.Run, e.Agent, e.Kind)
	return err != nil || n.embedded.HasInterest(subject) || omitsTexts(n) && n.embedded.HasInterest(n.names.ContentSubject(subject))
}

// Values of Config.EventsContent.
const (
	EventsFull         = "full"
	EventsWithoutTexts = event.WithoutTexts
)

// ErrEventsContent says that Config.EventsContent has another value than EventsFull and EventsWithoutTexts.
var ErrEventsContent = errors.New("node: events_content is full or none")

func checkEventsContent(v string) error {
	if v != "" && v != EventsFull && v != EventsWithoutTexts {
		return fmt.Errorf("%w, not %.20q", ErrEventsContent, v)
	}
	return nil
}

// omitsTexts reports whether observers receive events without texts.
func omitsTexts(n *Node) bool {
	if n.cfg.EventsContent == "" {
		return n.embedded == nil
	}
	return n.cfg.EventsContent == EventsWithoutTexts
}

// eventMessage is an event as it is published.
type eventMessage struct {
	subject string
	data    []byte
}

// encodeEvent returns the messages of an event: in full for clients, then without texts for observers. A
// node that shows observers the texts publishes one message for both. A piece of a reply is nothing but
// text: observers receive none.
func encodeEvent(n *Node, e event.Published) ([]eventMessage, error) {
	subject, err := n.names.EventSubject(e.Run, e.Agent, e.Kind)
	if err != nil {
		return nil, err
	}
	raw, err := control.EncodeEvent(e)
	if err != nil {
		return nil, err
	}
	full := eventMessage{subject, n.mask.MaskBytes(raw)}
	if !omitsTexts(n) {
		return []eventMessage{full}, nil
	}
	full.subject = n.names.ContentSubject(subject)
	if _, isText := e.Data.(event.Delta); isText {
		return []eventMessage{full}, nil
	}
	if raw, err = control.EncodeEventWithoutTexts(e); err != nil {
		return nil, err
	}
	return []eventMessage{full, {subject, n.mask.MaskBytes(raw)}}, nil
}

// sendEvents sends events to observers. It encodes all of them before it sends the first: the
// connection flushes as soon as data is written.
func (n *Node) sendEvents(list []event.Published) {
	ready := make([]eventMessage, 0, 2*len(list))
	failed := func(id string, err error) { n.cfg.Logger.Warn("an event was not published", "event", id, "error", err) }
	for _, e := range list {
		messages, err := encodeEvent(n, e)
		if err != nil {
			failed(e.ID, err)
			continue
		}
		ready = append(ready, messages...)
	}
	for _, m := range ready {
		if err := n.eventConn.Publish(m.subject, m.data); err != nil {
			failed(m.subject, err)
		}
	}
}
