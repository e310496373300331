package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
)

// subscribeBoth subscribes to a subject of events, and to the one on which clients receive them with their texts.
func subscribeBoth(c *Client, subject string, subscribe func(subject string) (*nats.Subscription, error)) (subs []*nats.Subscription, err error) {
	subjects := []string{subject, c.names.ContentSubject(subject)}
	if c.noTexts { // see eventWatcher.noteWithoutTexts
		subjects = subjects[:1]
	}
	for _, s := range subjects {
		sub, err := subscribe(s)
		if err != nil {
			dropAll(subs)
			return nil, fmt.Errorf("client: subscribe to %s: %w", s, err)
		}
		subs = append(subs, sub)
	}
	return subs, nil
}

func dropAll(subs []*nats.Subscription) {
	for _, s := range subs {
		dropSubscription(s)
	}
}

// eventFeed are the live events of one subject. A node that publishes events to observers without their texts publishes
// them to clients on a second subject: the feed has both, and leaves out those without texts if the client may read texts.
type eventFeed struct {
	client   *Client
	messages chan *nats.Msg
	subs     []*nats.Subscription
	dropped  int // messages that did not fit, when it was last asked
}

// openFeed subscribes. At most pendingMax messages wait.
func openFeed(c *Client, subject string, pendingMax int) (f *eventFeed, err error) {
	f = &eventFeed{client: c, messages: make(chan *nats.Msg, pendingMax)}
	f.subs, err = subscribeBoth(c, subject, func(s string) (*nats.Subscription, error) { return c.nc.ChanSubscribe(s, f.messages) })
	return f, err
}

// errTimeout says that no event has come in time, errDropped that events were lost.
var (
	errTimeout = errors.New("client: no event")
	errDropped = errors.New("client: events were dropped")
)

// next returns the next event. A client that may read no texts gets events without them.
func (f *eventFeed) next(ctx context.Context) (e Event, raw []byte, err error) {
	for {
		if f.client.nc.IsClosed() { // the library does not close the channel then
			return Event{}, nil, nats.ErrConnectionClosed
		}
		if n := f.countDropped(); n != f.dropped {
			f.dropped = n
			return Event{}, nil, errDropped
		}
		select {
		case m := <-f.messages:
			if e, ok := decodeEvent(m.Data); ok && (e.Content != event.WithoutTexts || f.client.noTexts) {
				return e, m.Data, nil
			}
		case <-ctx.Done():
			return Event{}, nil, errTimeout
		}
	}
}

func (f *eventFeed) countDropped() (sum int) {
	for _, s := range f.subs {
		n, err := s.Dropped()
		if err == nil { // otherwise the connection is closed, which next reports
			sum += n
		}
	}
	return sum
}

func (f *eventFeed) close() { dropAll(f.subs) }

// watchSubject calls each for the events of a subject, one after another.
func watchSubject(c *Client, subject string, each func(Event)) (stop func(), err error) {
	var mu sync.Mutex // each subscription has a goroutine of its own
	subs, err := subscribeBoth(c, subject, func(s string) (*nats.Subscription, error) {
		return c.nc.Subscribe(s, func(m *nats.Msg) {
			e, ok := decodeEvent(m.Data)
			if !ok || e.Content == event.WithoutTexts {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			each(e)
		})
	})
	if err != nil {
		return nil, err
	}
	if err := c.nc.FlushTimeout(replyTimeout); err != nil {
		dropAll(subs)
		return nil, fmt.Errorf("client: watch %s: %w", subject, err)
	}
	return func() { dropAll(subs) }, nil
}
