package node

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control"
)

// over writes the result into the index, in a goroutine beside the actor that reports it.
func (h *Node) over(run string, r event.Result) {
	h.writing.Go(func() {
		err := h.index(run, r)
		for bus.Unavailable(err) && h.life.Err() == nil { // a full disk: the result is in the log, and the row waits
			select {
			case <-time.After(indexPause):
			case <-h.life.Done():
			}
			err = h.index(run, r)
		}
		if err != nil {
			h.cfg.Logger.Warn("the index of runs was not written", "run", run, "error", err)
		}
	})
}

const (
	// indexTimeout bounds one attempt to write a row, indexPause is the time between two.
	indexTimeout = 5 * time.Second
	indexPause   = 500 * time.Millisecond
)

func (h *Node) index(run string, r event.Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), indexTimeout)
	defer cancel()
	err := h.runs.Change(ctx, run, func(i *client.RunInfo) { control.FinishRow(i, r, time.Now()) })
	if err == nil {
		err = h.forget(ctx, run)
	}
	return err
}

// forget removes the row of a run that was deleted while it was written.
func (h *Node) forget(ctx context.Context, run string) error {
	buried, err := control.Buried(ctx, h.post, run)
	if err == nil && buried {
		err = h.runs.Remove(ctx, run)
	}
	return err
}
