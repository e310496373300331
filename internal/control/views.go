package control

import (
	"context"
	"log/slog"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// runViews makes the views of runs, and finds the logs of their agents by the ids of the runs.
type runViews struct {
	*runview.Views
	cfg    *Config
	lookup *lookup
}

func newRunViews(p *parts) *runViews {
	return &runViews{runview.New(runview.Config{Store: p.cfg.Post, Index: p.cfg.Runs, States: p.states, Logger: p.cfg.logger()}), p.cfg, p.lookup}
}

// agentAddress returns the address of an agent of a run.
func (c *runViews) agentAddress(ctx context.Context, run string, id spec.ID) (mailbox.Address, error) {
	at := mailbox.At(run, string(id))
	if c.cfg.Cluster == nil {
		return at, nil // there is only one pool
	}
	row, err := c.lookup.findRun(ctx, run)
	if err != nil {
		return at, err
	}
	l, err := c.ViewOne(ctx, row)
	if err != nil {
		return at, err
	}
	found, err := c.FindAgent(ctx, l, id)
	if refuse.IsNotFound(err) {
		return at, nil // its log is empty
	}
	return found, err
}

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}
