package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// listEvents returns the events of a run after a cursor again, from its logs: in order within a
// log, and by time between logs.
func (c *viewer) listEvents(ctx context.Context, r client.EventsRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	if r.Newest {
		return c.newestCursor(ctx, r.RunID)
	}
	if read := r.From[client.CursorEntries]; read > 0 && !c.pages.isKept(r.RunID, r.From) {
		counts, err := c.cfg.Post.Entries(ctx, r.RunID)
		if err != nil {
			return nil, fmt.Errorf("control: count %s: %w", r.RunID, err)
		}
		if sumEntries(counts) == read {
			return client.EventsPage{Events: []json.RawMessage{}, Cursor: client.Cursor{client.CursorEntries: read}}, nil
		}
	}
	page, err := c.pages.read(ctx, c.cfg, r.RunID, r.From)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// newestCursor returns a page without events whose cursor is that of all entries that the logs of a run have.
func (c *viewer) newestCursor(ctx context.Context, run string) (any, error) {
	counts, err := c.cfg.Post.Entries(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("control: count %s: %w", run, err)
	}
	page := client.EventsPage{Events: []json.RawMessage{}, Cursor: client.Cursor{client.CursorEntries: sumEntries(counts)}}
	for at, n := range counts {
		page.Cursor[string(at.Bare())] = n
	}
	return page, nil
}

func sumEntries(counts map[mailbox.Address]uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
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
