package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
)

const (
	// eventsDefault is how many events an answer has unless the request says otherwise, eventsMax the
	// most.
	eventsDefault = 1000
	eventsMax     = 10000
	// lookInterval is how often a silent stream says that it lives, and checks whether the run has
	// ended: the event of its end may be lost.
	lookInterval = 15 * time.Second
	// reconnectMS is after how many milliseconds a browser should come back.
	reconnectMS = 1000
)

// eventFilter selects events of a run.
type eventFilter struct {
	kinds []string // tool.started, or tool for all of its kind; none: all
	agent string   // an agent and all below it; "": all
}

func (f eventFilter) includes(e client.Event) bool {
	if f.agent != "" && e.Agent != f.agent && !strings.HasPrefix(e.Agent, f.agent+"-") {
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

// getEvents is GET /api/v1/runs/{id}/events: a page of events from the logs, or a stream of
// server-sent events if the request accepts text/event-stream.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, run string) {
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
	seen, err := client.ParsePositions(run, cursor)
	if err != nil {
		refuseError(w, err)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		s.streamEvents(w, r, run, f, seen)
		return
	}
	page := EventList{Events: []json.RawMessage{}}
	err = s.cfg.Client.Events(r.Context(), run, seen.Cursor(), false, func(e client.Event, raw []byte) error {
		if page.More = len(page.Events) >= limit; page.More {
			return client.ErrStop
		}
		if seen.Advance(e) && f.includes(e) {
			page.Events = append(page.Events, raw)
		}
		return nil
	})
	page.Cursor = seen.Text(run)
	answer(w, page, err)
}

// StreamEnd is the data of the last event of a stream, event: end.
type StreamEnd struct {
	RunID string `json:"run_id"`
	State string `json:"state"`
}

// streamEvents sends the events of a run until its end. The id of each is the cursor after it, so a
// reader that comes back with Last-Event-ID misses none and sees none twice. A reader that has seen
// all gets 204, which ends the attempts of a browser.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, run string, f eventFilter, seen client.Positions) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "the server has as many streams of events as it serves at once", "try again in a moment, or read pages of events")
		return
	}
	info, err := s.cfg.Client.State(r.Context(), run)
	if err != nil {
		refuseError(w, err)
		return
	}
	st := &eventStream{run: run, filter: f, seen: seen, out: newSSEWriter(w)}
	defer st.out.close()
	if info.State == client.RunFinished {
		st.out.holdHeader = true
		err = st.copyEvents(r.Context(), s.cfg.Client, false)
		if err == nil && !st.advanced {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if err != nil && !st.out.isStarted() {
			refuseError(w, err)
			return
		}
	} else {
		err = st.follow(r.Context(), s.cfg.Client)
	}
	if err == nil {
		st.sendEnd()
	}
}

// eventStream is one stream of events.
type eventStream struct {
	run      string
	filter   eventFilter
	seen     client.Positions
	out      *sseWriter
	advanced bool // an event was new, whether the filter includes it or not
}

// copyEvents sends the events after those that were seen.
func (st *eventStream) copyEvents(ctx context.Context, c *client.Client, follow bool) error {
	return c.Events(ctx, st.run, st.seen.Cursor(), follow, func(e client.Event, raw []byte) error {
		if !st.seen.Advance(e) {
			return nil
		}
		st.advanced = true
		switch {
		case !st.filter.includes(e):
			if e.Seq > 0 {
				st.out.noteCursor(st.seen.Text(st.run))
			}
			return nil
		case e.Seq == 0: // a piece of a reply is in no log, so it moves no cursor
			return st.out.writeEvent("", "", raw)
		}
		return st.out.writeEvent(st.seen.Text(st.run), "", raw)
	})
}

// follow sends events until the run has ended. The run may end without an event that arrives here: the
// row of the run says so as well.
func (st *eventStream) follow(ctx context.Context, c *client.Client) error {
	if err := st.out.begin(); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended, over := make(chan struct{}), false
	go func() {
		defer close(ended)
		over = st.watch(following, c)
		stop()
	}()
	err := st.copyEvents(following, c, true)
	stop()
	<-ended
	if err == nil || over && ctx.Err() == nil {
		return st.copyEvents(ctx, c, false) // what agents reported after the end of the run
	}
	return err
}

// watch keeps a silent stream alive, and returns true once the run has ended.
func (st *eventStream) watch(ctx context.Context, c *client.Client) bool {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
		if st.out.keepAlive() != nil {
			return false
		}
		if info, err := c.State(ctx, st.run); err == nil && info.State == client.RunFinished {
			return true
		}
	}
}

func (st *eventStream) sendEnd() {
	raw, err := json.Marshal(StreamEnd{RunID: st.run, State: "finished"})
	if err == nil {
		_ = st.out.writeEvent(st.seen.Text(st.run), "end", raw) // a reader that is gone comes back
	}
}
