package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

const (
	// eventsDefault is how many events an answer has unless the request says otherwise, eventsMax the
	// most.
	eventsDefault = 1000
	eventsMax     = 10000
	// eventsBytesMax is the size of the events of an answer past which no further one is added: a client that reads
	// slowly holds it in memory.
	eventsBytesMax = 2 << 20
	// lookInterval is how often a silent stream says that it lives, and how often the feed of a run checks whether
	// the run has ended: the event of its end may be lost.
	lookInterval = 15 * time.Second
	// reconnectMS is after how many milliseconds a browser should come back.
	reconnectMS = 1000
	// cursorNow is the cursor of a stream that begins with the newest entries.
	cursorNow = "now"
	// cursorEachMax is of how many logs a cursor is sent with each event. It has some bytes for each log, so of a run with
	// more of them a stream sends one each cursorInterval.
	cursorEachMax  = 200
	cursorInterval = time.Second
	// positionsUnchecked is how many logs a cursor may name unchecked: a stream keeps them as long as it lives.
	positionsUnchecked = 1000
)

// eventFilter selects events of a run.
type eventFilter struct {
	kinds []string // tool.started, or tool for all of its kind; none: all
	agent string   // an agent and all below it; "": all
}

func (f eventFilter) includes(e client.Event) bool {
	if f.agent != "" && e.Agent != f.agent && !spec.ID(e.Agent).IsBelow(spec.ID(f.agent)) {
		return false
	}
	group, _, _ := strings.Cut(e.Kind, ".")
	return len(f.kinds) == 0 || slices.Contains(f.kinds, e.Kind) || slices.Contains(f.kinds, group)
}

// EventList is a page of events. With its cursor, the next request returns those that follow.
type EventList struct {
	Events []json.RawMessage `json:"events"`
	Cursor string            `json:"cursor"`
	More   bool              `json:"more"`
}

// eventPaths serves the events of runs: in pages, and as streams.
type eventPaths struct {
	client  *client.Client
	streams slotShare // a slot for each stream
	feeds   feeds
	paused  pausedReaders
}

// newEventPaths serves events until base ends.
func newEventPaths(base context.Context, c *client.Client, streams slotShare) *eventPaths {
	return &eventPaths{client: c, streams: streams, feeds: feeds{client: c, ctx: base, runs: map[string]*runFeed{}}, paused: pausedReaders{client: c, ctx: base}}
}

// close waits for the end of the streams, whose context must have ended, and closes the readers of pages.
func (p *eventPaths) close() {
	p.feeds.ended.Wait()
	p.paused.closeBefore(time.Now())
}

// getEvents is GET /api/v1/runs/{id}/events: a page of events from the logs, or a stream of
// server-sent events if the request accepts text/event-stream.
func (p *eventPaths) getEvents(w http.ResponseWriter, r *http.Request, run string) {
	q := queryReader{values: r.URL.Query()}
	f := eventFilter{agent: q.text("agent")}
	for kind := range strings.SplitSeq(q.text("kind"), ",") {
		if kind != "" {
			f.kinds = append(f.kinds, kind)
		}
	}
	limit, cursor := q.number("limit", eventsDefault, 1, eventsMax), q.text("cursor")
	if !q.accept(w, "agent", "kind", "limit", "cursor") {
		return
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		cursor = last // newer than the address with which a browser began
	}
	isStream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	if isStream && cursor == cursorNow {
		p.streamEvents(w, r, run, f, nil)
		return
	}
	seen, err := client.ParsePositions(run, cursor)
	if err != nil {
		refuseError(w, err)
		return
	}
	if isStream {
		p.streamEvents(w, r, run, f, seen)
		return
	}
	page, err := p.readPage(r.Context(), run, cursor, seen, f, limit)
	answer(w, page, err)
}

// readPage reads the page of events after a cursor.
func (p *eventPaths) readPage(ctx context.Context, run, cursor string, seen client.Positions, f eventFilter, limit int) (EventList, error) {
	page, size := EventList{Events: []json.RawMessage{}}, 0
	reader := p.paused.open(run, cursor, seen)
	more, err := reader.read(ctx, func(e readEvent) bool {
		if len(page.Events) >= limit || size >= eventsBytesMax {
			return false
		}
		if seen.Advance(e.event) && f.includes(e.event) {
			page.Events, size = append(page.Events, e.raw), size+len(e.raw)
		}
		return true
	})
	page.Cursor, page.More = seen.Text(run), more
	if more && err == nil {
		p.paused.keep(reader, run, page.Cursor, time.Now())
	} else {
		reader.close()
	}
	return page, err
}

// StreamEnd is the data of the last event of a stream, event: end.
type StreamEnd struct {
	RunID string `json:"run_id"`
	State string `json:"state"`
}

// streamEvents sends the events of a run until its end. The id of each is the cursor after it, so a
// reader that comes back with Last-Event-ID misses none and sees none twice; of a run of more than cursorEachMax logs it
// sees those of the last cursorInterval again. A reader that has seen all gets 204, which ends the attempts of a browser.
// Without positions the stream begins with the newest entries.
func (p *eventPaths) streamEvents(w http.ResponseWriter, r *http.Request, run string, f eventFilter, seen client.Positions) {
	release, ok := p.streams.take()
	if !ok {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "the server has as many streams of events as it serves at once",
			"try again in a moment, or read pages of events")
		return
	}
	defer release()
	feed := p.feeds.join(run, seen)
	left := sync.OnceFunc(func() { p.feeds.leave(feed) })
	defer left()
	finished, err := feed.awaitCheck(r.Context())
	if err != nil {
		refuseError(w, err)
		return
	}
	if err := p.checkPositions(r.Context(), run, seen); err != nil {
		refuseError(w, err)
		return
	}
	if seen == nil && finished {
		w.WriteHeader(http.StatusNoContent) // it has no newer event
		return
	}
	if seen == nil {
		if seen, err = feed.newest(r.Context()); err != nil {
			refuseError(w, err)
			return
		}
	}
	st := &eventStream{run: run, filter: f, seen: seen, out: newSSEWriter(w)}
	defer st.out.close()
	if finished {
		left()
		st.out.holdHeader = true
		err = st.copyPast(r.Context(), p.client)
		if err == nil && !st.advanced {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if err != nil && !st.out.isStarted() {
			refuseError(w, err)
			return
		}
	} else {
		err = st.follow(r.Context(), &p.feeds, feed)
	}
	if err == nil {
		st.sendEnd()
	}
}

// checkPositions refuses positions in far more logs than the run has: who made them up could fill the memory of the node
// with streams. The number of agents may be that of some seconds ago.
func (p *eventPaths) checkPositions(ctx context.Context, run string, seen client.Positions) error {
	if len(seen) <= positionsUnchecked {
		return nil
	}
	info, err := p.client.State(ctx, run)
	if err != nil {
		return err
	}
	if info.State != client.RunFinished && len(seen) > positionsUnchecked+2*info.AgentsStarted {
		return fmt.Errorf("%w: it names %d logs", client.ErrCursor, len(seen))
	}
	return nil
}

// eventStream is one stream of events.
type eventStream struct {
	run      string
	filter   eventFilter
	seen     client.Positions
	out      *sseWriter
	advanced bool // an event was new, whether the filter includes it or not
	// cursorAt is when a cursor was sent last, of a run of many agents; cursorPending: events came after it.
	cursorAt      time.Time
	cursorPending bool
}

// cursorAfter returns the cursor after the newest event; "": it is sent later.
func (st *eventStream) cursorAfter(now time.Time) string {
	if len(st.seen) > cursorEachMax {
		if st.cursorPending = now.Sub(st.cursorAt) < cursorInterval; st.cursorPending {
			return ""
		}
		st.cursorAt = now
	}
	return st.seen.Text(st.run)
}

// copyPast sends the events of the logs after those that were seen.
func (st *eventStream) copyPast(ctx context.Context, c *client.Client) error {
	return c.Events(ctx, st.run, st.seen.Cursor(), false, func(e client.Event, raw []byte) error {
		return st.send(feedEvent{event: e, raw: raw}, false)
	})
}

// send sends an event unless it was seen. cursorsMatch: the event has the cursor after it; otherwise the stream makes it.
func (st *eventStream) send(e feedEvent, cursorsMatch bool) error {
	if !st.seen.Advance(e.event) {
		return nil
	}
	st.advanced = true
	if e.event.Seq == 0 { // a piece of a reply is in no log, so it moves no cursor
		if !st.filter.includes(e.event) {
			return nil
		}
		return st.out.writeEvent("", "", e.raw)
	}
	cursor := e.cursor
	if !cursorsMatch || cursor == "" {
		cursor = st.cursorAfter(time.Now())
	}
	if !st.filter.includes(e.event) {
		if cursor != "" {
			st.out.noteCursor(cursor)
		}
		return nil
	}
	return st.out.writeEvent(cursor, "", e.raw)
}

// follow sends the events of a feed until the run has ended.
func (st *eventStream) follow(ctx context.Context, f *feeds, feed *runFeed) error {
	if err := st.out.begin(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		st.keepAlive(ctx)
		stop() // the reader is gone
	}()
	defer func() {
		stop()
		<-alive
	}()
	place, complete := feed.place(st.seen)
	if !complete {
		if err := st.copyPast(ctx, f.client); err != nil {
			return err
		}
		if !includesAll(st.seen, feed.start) { // a stream with a cursor that is no place in the run began it
			feed = f.beginAlone(st.run, st.seen)
			defer f.leave(feed)
			place, _ = feed.place(st.seen)
		}
	}
	for {
		err := st.copyLive(ctx, f, place)
		if errors.Is(err, errFeedEnded) {
			return nil
		}
		if !errors.Is(err, errBehind) {
			return err
		}
		place, _ = feed.place(st.seen)
		if err := st.copyPast(ctx, f.client); err != nil {
			return err
		}
	}
}

// copyLive sends the events of a feed from a place, in parts: those that came since the last one.
func (st *eventStream) copyLive(ctx context.Context, f *feeds, p *feedReader) error {
	for {
		number := p.next
		events, err := st.take(ctx, p)
		if err != nil {
			return err
		}
		for _, e := range events {
			if number++; e.event.Seq == 0 && number <= p.skip {
				continue
			}
			if err := st.send(e, p.cursorsMatch); err != nil {
				return err
			}
		}
		if err := st.out.flushAll(); err != nil {
			return err
		}
		select {
		case <-time.After(f.batchDelay()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns the events that follow. While none does, it sends the cursor that is pending.
func (st *eventStream) take(ctx context.Context, p *feedReader) ([]feedEvent, error) {
	if !st.cursorPending {
		return p.take(ctx, st.seen)
	}
	soon, stop := context.WithDeadline(ctx, st.cursorAt.Add(cursorInterval))
	events, err := p.take(soon, st.seen)
	stop()
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return events, err
	}
	st.cursorAt, st.cursorPending = time.Now(), false
	if err := st.out.writeCursor(st.seen.Text(st.run)); err != nil {
		return nil, err
	}
	return p.take(ctx, st.seen)
}

// keepAlive keeps a silent stream alive, until ctx ends or the reader is gone.
func (st *eventStream) keepAlive(ctx context.Context) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if st.out.keepAlive() != nil {
			return
		}
	}
}

func (st *eventStream) sendEnd() {
	raw, err := json.Marshal(StreamEnd{RunID: st.run, State: "finished"})
	if err == nil {
		_ = st.out.writeEvent(st.seen.Text(st.run), "end", raw) // a reader that is gone comes back
	}
}
