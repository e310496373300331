package node

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control"
)

// recordResult writes the result into the index, in a goroutine beside the actor that reports it.
func (h *Node) recordResult(run string, r event.Result) {
	h.background.Go(func() {
		err := h.writeIndexRow(run, r)
		for bus.IsUnavailable(err) && h.lifetime.Err() == nil { // a full disk: the result is in the log, and the row waits
			select {
			case <-time.After(indexRetryPause):
			case <-h.lifetime.Done():
			}
			err = h.writeIndexRow(run, r)
		}
		if err != nil {
			h.cfg.Logger.Warn("the index of runs was not written", "run", run, "error", err)
		}
	})
}

const (
	// indexTimeout bounds one attempt to write a row, indexRetryPause is the time between two.
	indexTimeout    = 5 * time.Second
	indexRetryPause = 500 * time.Millisecond
)

func (h *Node) writeIndexRow(run string, r event.Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), indexTimeout)
	defer cancel()
	err := h.runs.Change(ctx, run, func(i *client.RunInfo) { control.FinishRow(i, r, time.Now()) })
	if err == nil {
		err = h.removeIfDeleted(ctx, run)
	}
	return err
}

// removeIfDeleted removes the row of a run that was deleted while it was written.
func (h *Node) removeIfDeleted(ctx context.Context, run string) error {
	buried, err := control.IsDeleted(ctx, h.post, run)
	if err == nil && buried {
		err = h.runs.Remove(ctx, run)
	}
	return err
}
