package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// pageBytes is the maximum size of the events in one reply.
const pageBytes = 512 << 10

// pastEvent is one event with its sort keys.
type pastEvent struct {
	at    string
	stamp int64
	n     uint64
	raw   json.RawMessage
}

// listEvents returns the events of a run after a cursor again, from its logs: in order within a
// log, and by time between logs.
func (c *viewer) listEvents(ctx context.Context, r client.EventsRequest) (any, error) {
	if _, err := c.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	key, err := replayKey(r.RunID, r.From)
	if err != nil {
		return nil, err
	}
	t, err := c.pages.read(ctx, key, func(ctx context.Context) (*eventReplay, error) { return c.replayWhole(ctx, r) })
	if err != nil {
		return nil, err
	}
	page, rest := t.cutPage()
	next := ""
	if rest != nil {
		if next, err = replayKey(r.RunID, advanceCursor(r.From, page.Cursor)); err != nil {
			return nil, err
		}
	}
	c.pages.keep(key, next, rest, time.Now())
	if page.More {
		return page, nil
	}
	now, err := c.cfg.Post.Entries(ctx, r.RunID)
	if err != nil {
		return nil, fmt.Errorf("control: count %s: %w", r.RunID, err)
	}
	page.Cursor[client.CursorEntries] = t.entries
	page.More = t.fromEarlier && now != t.entries // the events were read for an earlier page
	return page, nil
}

// replayWhole reads the logs of a run for the events after a cursor. If the end of the run is among them, none before
// it is missing.
func (c *viewer) replayWhole(ctx context.Context, r client.EventsRequest) (*eventReplay, error) {
	t, err := c.replayEvents(ctx, r)
	if err == nil && t.foundEnd && t.read != t.entries {
		// Logs grew while they were read one after the other: the end of the run was found, and events
		// before it may be missing of logs that were read earlier. Now all logs hold them.
		t, err = c.replayEvents(ctx, r)
	}
	return t, err
}

// replayEvents reads the logs of a run for the events after a cursor, unless they have not grown.
func (c *viewer) replayEvents(ctx context.Context, r client.EventsRequest) (*eventReplay, error) {
	t := &eventReplay{cfg: c.cfg, from: r.From, replayed: map[mailbox.Address]*replayedLog{}}
	var err error
	// The entries are counted before they are read: those that arrive meanwhile count next time.
	if t.entries, err = c.cfg.Post.Entries(ctx, r.RunID); err != nil {
		return nil, fmt.Errorf("control: count %s: %w", r.RunID, err)
	}
	if t.entries > 0 && t.entries == r.From[client.CursorEntries] {
		return t, nil
	}
	if err := c.cfg.Post.ReadRun(ctx, r.RunID, t.replayEntry); err != nil {
		return nil, fmt.Errorf("control: read %s: %w", r.RunID, err)
	}
	return t, nil
}

// eventReplay is the replay of the logs of a run for its events after a cursor.
type eventReplay struct {
	cfg         *Config
	from        client.Cursor
	replayed    map[mailbox.Address]*replayedLog
	list        []pastEvent
	entries     uint64 // of all logs, when the replay began
	read        uint64
	foundEnd    bool // an event in list is the end of the run
	fromEarlier bool // the replay was for an earlier request
	truncated   bool // there are more events than are in list
}

// replayedLog is a log that is replayed for its events.
type replayedLog struct {
	reader *activation.LogReader
	agent  *activation.Agent // nil for a supervisor
}

func (t *eventReplay) replayEntry(m mailbox.Message) error {
	t.read++
	l := t.replayed[m.To]
	if l == nil {
		l = &replayedLog{}
		if m.To.Agent() == mailbox.Super {
			l.reader = activation.NewLogReader(m.To, "", mailbox.Epoch{}, &activation.Supervisor{Addr: m.To, Watch: true})
		} else {
			l.agent = &activation.Agent{Addr: m.To, Watch: true}
			l.reader = activation.NewLogReader(m.To, "", mailbox.Epoch{}, l.agent)
		}
		t.replayed[m.To] = l
	}
	r := l.reader.Next(m)
	at := string(m.To.Bare())
	if r.N <= t.from[at] {
		return nil
	}
	parent := ""
	if l.agent != nil {
		parent = string(l.agent.State.Task.Parent)
	}
	for _, e := range activation.EventsOf(m.To, parent, t.cfg.Name, r.N, l.reader.At, r.Events) {
		raw, err := EncodeEvent(e)
		if err != nil {
			return err
		}
		t.foundEnd = t.foundEnd || e.Kind == event.KindRunFinished
		t.list = append(t.list, pastEvent{at: at, stamp: l.reader.At, n: r.N, raw: raw})
	}
	return nil
}

// sortEvents sorts the events, and keeps the first keptEventsMax bytes of them. What was needed to read them is freed.
func (t *eventReplay) sortEvents() {
	slices.SortStableFunc(t.list, func(a, b pastEvent) int {
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.at, b.at))
	})
	t.replayed = nil
	size := 0
	for i, p := range t.list {
		if size += len(p.raw); size > keptEventsMax && t.beginsEntry(i) {
			t.list, t.truncated = slices.Clone(t.list[:i]), true
			return
		}
	}
}

// beginsEntry reports whether event i is the first of its entry.
func (t *eventReplay) beginsEntry(i int) bool {
	return i == 0 || t.list[i-1].at != t.list[i].at || t.list[i-1].n != t.list[i].n
}

// cutPage cuts the list of events to the size of a reply, at the end of an entry; rest are the events after it.
func (t *eventReplay) cutPage() (page client.EventsPage, rest *eventReplay) {
	page = client.EventsPage{Events: []json.RawMessage{}, Cursor: client.Cursor{}, More: t.truncated}
	size := 0
	for i, p := range t.list {
		if size += len(p.raw); size > pageBytes && i > 0 && t.beginsEntry(i) {
			page.More = true
			return page, &eventReplay{list: t.list[i:], fromEarlier: true, truncated: t.truncated, entries: t.entries}
		}
		page.Events = append(page.Events, p.raw)
		page.Cursor[p.at] = p.n
	}
	return page, nil
}

// EncodeEvent returns the document of an event. One that is larger than a message may be has no texts.
func EncodeEvent(e event.Published) ([]byte, error) {
	raw, err := marshalEvent(e)
	if err == nil && len(raw) > eventBytesMax {
		e.Data = event.WithoutContent(e.Data)
		return marshalEvent(e)
	}
	return raw, err
}

// EncodeEventWithoutTexts returns the document of an event for observers that are to read no text of people, models and
// tools.
func EncodeEventWithoutTexts(e event.Published) ([]byte, error) {
	e.Content, e.Data = event.WithoutTexts, event.WithoutContent(e.Data)
	return marshalEvent(e)
}

func marshalEvent(e event.Published) ([]byte, error) {
	if d, ok := e.Data.(event.Result); ok {
		e.Data = fitAgents(d)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("control: event %s: %w", e.ID, err)
	}
	return raw, nil
}

const eventBytesMax = 400 << 10
