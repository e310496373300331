package control

import (
	"context"
	"encoding/json"
	"fmt"

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
	if read := r.From[client.CursorEntries]; read > 0 && !c.pages.IsKept(r.RunID, r.From) {
		counts, err := c.cfg.Post.Entries(ctx, r.RunID)
		if err != nil {
			return nil, fmt.Errorf("control: count %s: %w", r.RunID, err)
		}
		if sumEntries(counts) == read {
			return client.EventsPage{Events: []json.RawMessage{}, Cursor: client.Cursor{client.CursorEntries: read}}, nil
		}
	}
	page, err := c.pages.Read(ctx, r.RunID, r.From)
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
