package host

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/supervisor"
)

// over writes the result into the index, beside the actor that says it.
func (h *Host) over(run string, r supervisor.Result) {
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
	// indexTimeout bounds one attempt to write a row, indexPause is between two.
	indexTimeout = 5 * time.Second
	indexPause   = 500 * time.Millisecond
)

func (h *Host) index(run string, r supervisor.Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), indexTimeout)
	defer cancel()
	err := h.runs.Change(ctx, run, func(i *client.RunInfo) { gateway.FinishRow(i, r, time.Now()) })
	if err == nil {
		err = h.forget(ctx, run)
	}
	return err
}

// forget removes the row of a run that was deleted while it was written.
func (h *Host) forget(ctx context.Context, run string) error {
	buried, err := gateway.Buried(ctx, h.post, run)
	if err == nil && buried {
		err = h.runs.Remove(ctx, run)
	}
	return err
}
