package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
)

// eventFeed are the live events of one subject. A node that publishes events to observers without their texts publishes
// them to clients on a second subject: the feed has both, and leaves out those without texts.
type eventFeed struct {
	client   *Client
	messages chan *nats.Msg
	subs     []*nats.Subscription
	dropped  int // messages that did not fit, when it was last asked
}

// openFeed subscribes. At most ahead messages wait.
func (c *Client) openFeed(subject string, ahead int) (*eventFeed, error) {
	f := &eventFeed{client: c, messages: make(chan *nats.Msg, ahead)}
	for _, s := range []string{subject, c.names.ContentSubject(subject)} {
		sub, err := c.nc.ChanSubscribe(s, f.messages)
		if err != nil {
			f.close()
			return nil, err
		}
		f.subs = append(f.subs, sub)
	}
	return f, nil
}

// errLate says that no event has come in time, errDropped that events were lost.
var (
	errLate    = errors.New("client: no event")
	errDropped = errors.New("client: events were dropped")
)

// next returns the next event.
func (f *eventFeed) next(ctx context.Context) (e Event, raw []byte, err error) {
	for {
		if n := f.countDropped(); n != f.dropped {
			f.dropped = n
			return Event{}, nil, errDropped
		}
		select {
		case m := <-f.messages:
			if e, ok := decodeEvent(m.Data); ok && e.Content != event.WithoutTexts {
				return e, m.Data, nil
			}
		case <-ctx.Done():
			return Event{}, nil, errLate
		}
		if f.client.nc.IsClosed() {
			return Event{}, nil, nats.ErrConnectionClosed
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

func (f *eventFeed) close() {
	for _, s := range f.subs {
		dropSubscription(s)
	}
}

// watchSubject calls each for the events of a subject, one after another.
func (c *Client) watchSubject(subject string, each func(Event)) (stop func(), err error) {
	var one sync.Mutex
	var subs []*nats.Subscription
	stop = func() {
		for _, s := range subs {
			dropSubscription(s)
		}
	}
	for _, s := range []string{subject, c.names.ContentSubject(subject)} {
		sub, err := c.nc.Subscribe(s, func(m *nats.Msg) {
			e, ok := decodeEvent(m.Data)
			if !ok || e.Content == event.WithoutTexts {
				return
			}
			one.Lock()
			defer one.Unlock()
			each(e)
		})
		if err != nil {
			stop()
			return nil, fmt.Errorf("client: watch %s: %w", s, err)
		}
		subs = append(subs, sub)
	}
	if err := c.nc.FlushTimeout(replyTimeout); err != nil {
		stop()
		return nil, fmt.Errorf("client: watch %s: %w", subject, err)
	}
	return stop, nil
}
