package host

import (
	"context"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/supervisor"
)

// over writes the result into the index, beside the actor that says it.
func (h *Host) over(run string, r supervisor.Result) {
	h.writing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		err := h.runs.Change(ctx, run, func(i *client.RunInfo) { i.State, i.Result = gateway.Finished, &r })
		if err == nil {
			err = h.forget(ctx, run)
		}
		if err != nil {
			h.cfg.Logger.Warn("the index of runs was not written", "run", run, "error", err)
		}
	})
}

// forget removes the row of a run that was deleted while it was written.
func (h *Host) forget(ctx context.Context, run string) error {
	buried, err := gateway.Buried(ctx, h.post, run)
	if err == nil && buried {
		err = h.runs.Remove(ctx, run)
	}
	return err
}
