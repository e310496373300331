package node

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/control/runevent"
)

// eventOutlet publishes the events of a node to observers: in full for clients, and without texts where the operator
// wants it.
type eventOutlet struct {
	node      *Node
	publisher *eventPublisher
}

func newEventOutlet(n *Node) *eventOutlet {
	o := &eventOutlet{node: n}
	o.publisher = newEventPublisher(o.sendEvents, n.cfg.Logger)
	return o
}

// queueEvent queues one event for observers. The actors do not wait for observers. If the server
// is in this process and the event has no subscriber, the server would drop it: then queueEvent
// does not encode, mask and queue the event.
func (o *eventOutlet) queueEvent(e event.Published) {
	o.node.watch.observe(e)
	if o.node.spans != nil {
		o.node.spans.Observe(e)
	}
	if o.node.embedded != nil && !o.hasSubscriber(e) {
		return
	}
	o.publisher.add(e)
}

// hasSubscriber reports whether anybody would receive an event from the server in this process.
func (o *eventOutlet) hasSubscriber(e event.Published) bool {
	subject, err := o.node.names.EventSubject(e.Run, e.Agent, e.Kind)
	return err != nil || o.node.embedded.HasInterest(subject) || o.omitsTexts() && o.node.embedded.HasInterest(o.node.names.ContentSubject(subject))
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
func (o *eventOutlet) omitsTexts() bool {
	if o.node.cfg.EventsContent == "" {
		return o.node.embedded == nil
	}
	return o.node.cfg.EventsContent == EventsWithoutTexts
}

// eventMessage is an event as it is published.
type eventMessage struct {
	subject string
	data    []byte
}

// encodeEvent returns the messages of an event: in full for clients, then without texts for observers. A
// node that shows observers the texts publishes one message for both. A piece of a reply is nothing but
// text: observers receive none.
func (o *eventOutlet) encodeEvent(e event.Published) ([]eventMessage, error) {
	subject, err := o.node.names.EventSubject(e.Run, e.Agent, e.Kind)
	if err != nil {
		return nil, err
	}
	raw, err := runevent.Encode(e)
	if err != nil {
		return nil, err
	}
	full := eventMessage{subject, o.node.mask.MaskBytes(raw)}
	if !o.omitsTexts() {
		return []eventMessage{full}, nil
	}
	full.subject = o.node.names.ContentSubject(subject)
	if _, isText := e.Data.(event.Delta); isText {
		return []eventMessage{full}, nil
	}
	if raw, err = runevent.EncodeWithoutTexts(e); err != nil {
		return nil, err
	}
	return []eventMessage{full, {subject, o.node.mask.MaskBytes(raw)}}, nil
}

// sendEvents sends events to observers. It encodes all of them before it sends the first: the
// connection flushes as soon as data is written.
func (o *eventOutlet) sendEvents(list []event.Published) {
	ready := make([]eventMessage, 0, 2*len(list))
	failed := func(id string, err error) {
		o.node.cfg.Logger.Warn("an event was not published", "event", id, "error", err)
	}
	for _, e := range list {
		messages, err := o.encodeEvent(e)
		if err != nil {
			failed(e.ID, err)
			continue
		}
		ready = append(ready, messages...)
	}
	for _, m := range ready {
		if err := o.node.eventConn.Publish(m.subject, m.data); err != nil {
			failed(m.subject, err)
		}
	}
}
