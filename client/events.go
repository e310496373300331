package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// ErrStop ends Events from within each, without an error.
var ErrStop = errors.New("client: stop")

// watchAhead is how many live events wait while the past is fetched.
const watchAhead = 65536

// Events calls each for the events of a run after a cursor, in order per log
// and without a gap; with follow it goes on until the run is over, ctx ends or
// each returns an error. Token deltas come only while following, and may be
// lost.
func (c *Client) Events(ctx context.Context, run string, from Cursor, follow bool, each func(Event, []byte) error) error {
	w := watcher{client: c, run: run, seen: Cursor{}, each: each}
	for at, n := range from {
		w.seen[at] = n
	}
	var sub *nats.Subscription
	if follow {
		subject, err := c.names.RunEvents(run)
		if err != nil {
			return err
		}
		if sub, err = c.nc.SubscribeSync(subject); err != nil {
			return fmt.Errorf("client: events: %w", err)
		}
		defer unsubscribe(sub)
		if err := sub.SetPendingLimits(watchAhead, -1); err != nil {
			return fmt.Errorf("client: events: %w", err)
		}
		// The server must have the subscription before the past is fetched.
		if err := c.nc.FlushTimeout(replyTimeout); err != nil {
			return fmt.Errorf("client: events: %w", err)
		}
	}
	err := w.past(ctx)
	for err == nil && follow && !w.over {
		err = w.live(ctx, sub)
	}
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// flush waits until the server knows of what was subscribed.
func (c *Client) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	return c.nc.FlushWithContext(ctx)
}

type watcher struct {
	client *Client
	run    string
	seen   Cursor
	each   func(Event, []byte) error
	over   bool
}

// past fetches what the logs hold beyond the cursor.
func (w *watcher) past(ctx context.Context) error {
	for {
		var page EventsPage
		if err := w.client.ask(ctx, "events", EventsRequest{RunID: w.run, From: w.seen}, &page); err != nil {
			return err
		}
		for _, raw := range page.Events {
			if err := w.take(raw); err != nil {
				return err
			}
		}
		for at, n := range page.Cursor {
			w.seen[at] = max(w.seen[at], n)
		}
		if !page.More {
			return nil
		}
	}
}

// live takes one event as it happens. After a loss the past is fetched again.
func (w *watcher) live(ctx context.Context, sub *nats.Subscription) error {
	soon, cancel := context.WithTimeout(ctx, pollPause)
	defer cancel()
	m, err := sub.NextMsgWithContext(soon)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrSlowConsumer):
		return w.past(ctx)
	case err != nil:
		return fmt.Errorf("client: events: %w", err)
	}
	return w.take(m.Data)
}

// take gives one event on, unless it was given before.
func (w *watcher) take(raw []byte) error {
	var e Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil // not an event of ours: whoever may publish there said it
	}
	if e.Seq > 0 {
		at, n, i := place(e.ID)
		if n < w.seen[at] || n == w.seen[at] && w.told(at, n, i) {
			return nil
		}
		w.seen[at] = n
		w.mark(at, n, i)
	}
	if e.Kind == "run.finished" {
		w.over = true
	}
	return w.each(e, raw)
}

// told: events of one entry come one by one, so the cursor alone does not tell
// them apart. A cursor from outside means that all of its entry was seen.
func (w *watcher) told(at string, n uint64, i int) bool {
	mark, ok := w.seen[at+"#i"]
	return !ok || uint64(i) < mark
}

func (w *watcher) mark(at string, _ uint64, i int) { w.seen[at+"#i"] = uint64(i) + 1 }

// place reads an event's id: <address>#<n>.<i>.
func place(id string) (at string, n uint64, i int) {
	at, rest, _ := strings.Cut(id, "#")
	ns, is, _ := strings.Cut(rest, ".")
	n, _ = strconv.ParseUint(ns, 10, 64) // zero for a delta, which has no place
	i, _ = strconv.Atoi(is)
	return at, n, i
}
