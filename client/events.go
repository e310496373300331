package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
)

// ErrStop ends Events from within each, without an error.
var ErrStop = errors.New("client: stop")

// watchAhead is how many live events wait while past events are fetched.
const watchAhead = 65536

// toldMax is how many delivered live events are remembered, to recognize them in the logs,
// before the logs are read again.
const toldMax = 4096

// fetchInterval is the pause between two fetches for live events that came without their texts: each fetch costs the node a
// replay of the logs of the run.
const fetchInterval = 250 * time.Millisecond

// Cursor maps each log of a run to the index of the last entry whose events were seen. To users it is opaque.
type Cursor map[string]uint64

// CursorEntries is the cursor key for the number of entries read so far. A node skips logs that have not grown.
const CursorEntries = "*"

// EventsRequest asks for the events after a cursor.
type EventsRequest struct {
	RunID string `json:"run_id"`
	From  Cursor `json:"from,omitempty"`
	// Newest asks for no events, but for the cursor of all entries that the logs have now. A node reads none of them.
	Newest bool `json:"newest,omitempty"`
}

// EventsPage holds as many events as fit a reply. If More is set, ask again from Cursor.
type EventsPage struct {
	Events []json.RawMessage `json:"events"`
	Cursor Cursor            `json:"cursor"`
	More   bool              `json:"more"`
}

// Events calls each for the events of a run after a cursor, in order per log and without a
// gap; with follow it continues until the run is over, ctx ends or each returns an error.
// Token deltas are delivered only while following, and may be lost.
//
// Only events that were fetched from the logs are known to be complete. After anything that
// may have lost a live event (a reconnect, a slow reader, another activation of the actor),
// and at the end of the run, Events fetches from the logs again before it delivers anything
// newer.
func (c *Client) Events(ctx context.Context, run string, from Cursor, follow bool, each func(Event, []byte) error) error {
	w := newEventWatcher(c, run, each)
	maps.Copy(w.sure, from)
	if follow {
		feed, err := followRun(ctx, c, run)
		if err != nil {
			return err
		}
		defer feed.close()
		return w.follow(ctx, feed, w.fetchPast)
	}
	return w.follow(ctx, nil, w.fetchPast)
}

// EventsFromNow is Events with follow, from the newest entries of the logs on. It calls begun with their cursor before it
// calls each. The node need not replay the logs of the run before it delivers an event.
func (c *Client) EventsFromNow(ctx context.Context, run string, begun func(Cursor), each func(Event, []byte) error) error {
	w := newEventWatcher(c, run, each)
	feed, err := followRun(ctx, c, run)
	if err != nil {
		return err
	}
	defer feed.close()
	return w.follow(ctx, feed, func(ctx context.Context) error {
		var page EventsPage
		if err := c.askNode(ctx, "events", EventsRequest{RunID: run, Newest: true}, &page); err != nil {
			return err
		}
		maps.Copy(w.sure, page.Cursor)
		begun(page.Cursor)
		return nil
	})
}

// followRun subscribes to the live events of a run. The server has the subscription when it returns.
func followRun(ctx context.Context, c *Client, run string) (*eventFeed, error) {
	subject, err := c.names.RunEvents(run)
	if err != nil {
		return nil, err
	}
	feed, err := openFeed(c, subject, watchAhead)
	if err == nil {
		if err = flushSubscription(ctx, c.nc); err != nil {
			feed.close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("client: events: %w", err)
	}
	return feed, nil
}

func newEventWatcher(c *Client, run string, each func(Event, []byte) error) *eventWatcher {
	return &eventWatcher{client: c, run: run, sure: Cursor{}, told: map[string]struct{}{}, each: each, reconnects: c.nc.Stats().Reconnects}
}

// follow begins, and then handles live events until the run is over; without a feed it only begins.
func (w *eventWatcher) follow(ctx context.Context, feed *eventFeed, begin func(context.Context) error) error {
	err := begin(ctx)
	for err == nil && feed != nil && !w.over {
		err = w.handleLive(ctx, feed)
	}
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// EventReader reads the events of a run, as Client does.
type EventReader interface {
	Events(ctx context.Context, run string, from Cursor, follow bool, each func(Event, []byte) error) error
}

// DataOf decodes the data of an event. Fields that do not fit, as those of another release, stay zero.
func DataOf[T any](e Event) (data T) {
	_ = json.Unmarshal(e.Data, &data)
	return data
}

// flushSubscription waits until the server knows the subscription.
func flushSubscription(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

type eventWatcher struct {
	client *Client
	run    string
	each   func(Event, []byte) error
	// sure is the cursor up to which no event is missing; told holds the events that were
	// delivered beyond it.
	sure       Cursor
	told       map[string]struct{}
	reconnects uint64 // of the connection, when the past was last fetched
	quiet      int    // pauses in a row in which nothing came
	over       bool
	// pending: an event came without its texts, which the logs have. fetchAt is when they may be fetched.
	pending bool
	fetchAt time.Time
}

// fetchPast fetches the events that the logs hold beyond sure.
func (w *eventWatcher) fetchPast(ctx context.Context) error { return w.fetch(ctx, true) }

// fetch fetches the events that the logs hold beyond sure. While the node replays the logs of a long run, it waits if it
// is to be patient, and otherwise leaves them for the next time.
func (w *eventWatcher) fetch(ctx context.Context, patient bool) error {
	// The count is taken before the request: a reconnect during the request may lose later
	// events.
	w.reconnects = w.client.nc.Stats().Reconnects
	w.pending = false
	defer func() { w.fetchAt = time.Now().Add(fetchInterval) }()
	for {
		var page EventsPage
		if err := w.client.askNode(ctx, "events", EventsRequest{RunID: w.run, From: w.sure}, &page); Busy(err) && ctx.Err() == nil {
			if !patient {
				return nil
			}
			continue // askNode has waited before it returned
		} else if err != nil {
			return err
		}
		for _, raw := range page.Events {
			e, ok := decodeEvent(raw)
			if _, told := w.told[e.ID]; told || !ok {
				delete(w.told, e.ID)
				continue
			}
			if err := w.deliverEvent(e, raw); err != nil {
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

// handleLive handles one event as it happens.
func (w *eventWatcher) handleLive(ctx context.Context, feed *eventFeed) error {
	wait := min(pollPause<<w.quiet, pollPauseMax)
	if w.pending {
		wait = min(wait, time.Until(w.fetchAt))
	}
	if wait <= 0 {
		return w.fetchPast(ctx)
	}
	soon, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	e, raw, err := feed.next(soon)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTimeout):
		w.quiet = min(w.quiet+1, quietMax)
		return w.fetch(ctx, false)
	case errors.Is(err, errDropped):
		return w.fetchPast(ctx)
	case err != nil:
		return fmt.Errorf("client: events: %w", err)
	}
	w.quiet = 0
	if e.Content == event.WithoutTexts {
		w.noteWithoutTexts(e)
		return nil
	}
	return w.deliverLive(ctx, e, raw)
}

// noteWithoutTexts has an event that came without its texts fetched, with all that come until then. No log holds a delta.
func (w *eventWatcher) noteWithoutTexts(e Event) {
	w.pending = w.pending || e.Seq > 0 && !w.wasDelivered(e)
}

// deliverLive delivers a live event unless it was delivered before. If an earlier event may be
// missing, it reads the logs instead, which hold this event, too.
func (w *eventWatcher) deliverLive(ctx context.Context, e Event, raw []byte) error {
	if e.Seq == 0 {
		return w.each(e, raw) // no log holds a delta
	}
	if w.wasDelivered(e) {
		return nil
	}
	// The watcher also fetches past events before the end of the run, and before the first
	// event of an agent's next activation.
	lost := w.client.nc.Stats().Reconnects != w.reconnects
	if lost || e.Kind == event.KindRunFinished || e.Kind == event.KindAgentResumed || len(w.told) >= toldMax {
		if err := w.fetchPast(ctx); err != nil || w.wasDelivered(e) {
			return err
		}
	}
	w.told[e.ID] = struct{}{}
	return w.deliverEvent(e, raw)
}

func (w *eventWatcher) wasDelivered(e Event) bool {
	at, _, _ := strings.Cut(e.ID, "#")
	_, told := w.told[e.ID]
	return told || e.Seq <= w.sure[at]
}

func (w *eventWatcher) deliverEvent(e Event, raw []byte) error {
	w.over = w.over || e.Kind == event.KindRunFinished
	return w.each(e, raw)
}

func decodeEvent(raw []byte) (e Event, ok bool) {
	err := json.Unmarshal(raw, &e)
	return e, err == nil && e.ID != ""
}
