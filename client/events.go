package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/nats-io/nats.go"
)

// ErrStop ends Events from within each, without an error.
var ErrStop = errors.New("client: stop")

// watchAhead is how many live events wait while the past is fetched.
const watchAhead = 65536

// toldMax is how many live events are remembered, to be told from what the
// logs hold, before the logs are asked again.
const toldMax = 4096

// Events calls each for the events of a run after a cursor, in order per log
// and without a gap; with follow it goes on until the run is over, ctx ends or
// each returns an error. Token deltas come only while following, and may be
// lost.
//
// Only what was fetched from the logs is known to be whole. Whatever may have
// lost a live event (a reconnect, a reader too slow, another life of the node)
// has the logs asked again from there before anything newer is given on, and so
// has the end of the run.
func (c *Client) Events(ctx context.Context, run string, from Cursor, follow bool, each func(Event, []byte) error) error {
	w := watcher{client: c, run: run, sure: Cursor{}, told: map[string]struct{}{}, each: each}
	maps.Copy(w.sure, from)
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
		if err := c.flush(ctx); err != nil {
			return fmt.Errorf("client: events: %w", err)
		}
	}
	w.reconnects = c.nc.Stats().Reconnects
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
	each   func(Event, []byte) error
	// sure is up to where nothing is missing, told what was given on beyond it.
	sure       Cursor
	told       map[string]struct{}
	reconnects uint64 // of the connection, when the past was last fetched
	quiet      int    // pauses in a row in which nothing came
	over       bool
}

// past fetches what the logs hold beyond what is sure.
func (w *watcher) past(ctx context.Context) error {
	// Before the request: a reconnect during it may lose what comes after it.
	w.reconnects = w.client.nc.Stats().Reconnects
	for {
		var page EventsPage
		if err := w.client.ask(ctx, "events", EventsRequest{RunID: w.run, From: w.sure}, &page); Busy(err) && ctx.Err() == nil {
			continue // it has waited
		} else if err != nil {
			return err
		}
		for _, raw := range page.Events {
			e, ok := decode(raw)
			if _, told := w.told[e.ID]; told || !ok {
				delete(w.told, e.ID)
				continue
			}
			if err := w.give(e, raw); err != nil {
				return err
			}
		}
		for at, n := range page.Cursor {
			w.sure[at] = max(w.sure[at], n)
		}
		if !page.More {
			return nil
		}
	}
}

// live takes one event as it happens.
func (w *watcher) live(ctx context.Context, sub *nats.Subscription) error {
	soon, cancel := context.WithTimeout(ctx, min(pollPause<<w.quiet, pollPauseMax))
	defer cancel()
	m, err := sub.NextMsgWithContext(soon)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		w.quiet = min(w.quiet+1, quietMax)
		return w.past(ctx)
	case errors.Is(err, nats.ErrSlowConsumer):
		return w.past(ctx)
	case err != nil:
		return fmt.Errorf("client: events: %w", err)
	}
	w.quiet = 0
	return w.take(ctx, m.Data)
}

// take gives one live event on, unless it was given before, or something
// before it may be missing: then the logs have it too.
func (w *watcher) take(ctx context.Context, raw []byte) error {
	e, ok := decode(raw)
	if !ok {
		return nil // not an event of ours: whoever may publish there said it
	}
	if e.Seq == 0 {
		return w.each(e, raw) // a delta is in no log
	}
	if w.known(e) {
		return nil
	}
	lost := w.client.nc.Stats().Reconnects != w.reconnects
	if lost || e.Kind == kindFinished || e.Kind == kindResumed || len(w.told) >= toldMax {
		if err := w.past(ctx); err != nil || w.known(e) {
			return err
		}
	}
	w.told[e.ID] = struct{}{}
	return w.give(e, raw)
}

// Kinds before which the past is fetched once more: the end of the run, and
// the first word of an agent's next life.
const (
	kindFinished = "run.finished"
	kindResumed  = "agent.resumed"
)

func (w *watcher) known(e Event) bool {
	at, _, _ := strings.Cut(e.ID, "#")
	_, told := w.told[e.ID]
	return told || e.Seq <= w.sure[at]
}

func (w *watcher) give(e Event, raw []byte) error {
	w.over = w.over || e.Kind == kindFinished
	return w.each(e, raw)
}

func decode(raw []byte) (e Event, ok bool) {
	err := json.Unmarshal(raw, &e)
	return e, err == nil && e.ID != ""
}
