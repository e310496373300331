package control

import (
	"context"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// lookup finds runs by the index, and by their logs if they have no row.
type lookup struct{ cfg *Config }

// findUnlisted returns the row of a run that the index does not have: its opener died before it
// wrote one, or the row was lost. ok is false if the run has no log.
func (c *lookup) findUnlisted(ctx context.Context, run string) (info client.RunInfo, ok bool, err error) {
	ends, err := readLogStatuses(ctx, c.cfg.Post, run)
	if err != nil {
		return info, false, err
	}
	if super := ends[mailbox.At(run, mailbox.Super)]; super != nil && super.imported {
		return info, false, nil // its restore is not whole
	}
	info = client.RunInfo{RunID: run, State: client.RunLive, Node: c.cfg.Name}
	for _, e := range ends {
		switch {
		case e.reader.Deleted:
			return info, false, nil
		case e.super != nil:
			info, ok = runindex.InfoOf(e.super.State, c.cfg.Name), true
			info.RunID = run
		case e.hasBegun():
			ok = true
		}
	}
	return info, ok, nil
}

// findRun returns the row of a run, or an error if neither the index nor a log shows the run.
func (c *lookup) findRun(ctx context.Context, run string) (runindex.Row, error) {
	if mailbox.IsReserved(run) { // a lane is no run, even if a row says so
		return runindex.Row{}, refuse.NoRun(run)
	}
	i, ok, err := c.cfg.Runs.Get(ctx, run)
	if i.Removing {
		return runindex.Row{}, refuse.RunDeleted(run)
	}
	if err != nil || ok {
		return i, err
	}
	if err = runlog.ExplainMissing(ctx, c.cfg.Post, run); !refuse.IsNotFound(err) || names.CheckToken(run) != nil {
		return i, err
	}
	found, ok, findErr := c.findUnlisted(ctx, run)
	if findErr != nil {
		return i, findErr
	}
	if ok {
		return runindex.Row{RunInfo: found}, nil
	}
	return i, err
}

// findTaken answers whether a new run may have an id: taken is false if it is free, and true with the row of the run that
// has it. If the run was deleted, or its restore is not whole, the error says so. A run without a row, whose opener died
// before it wrote one, does not take its id: a second request to open it appends a first entry again, and the older one
// counts.
//
// Two others ask the index alone, because they read all logs of the run besides: package runimport, which continues an
// import that is not whole, and removeRun.
func (c *lookup) findTaken(ctx context.Context, run string) (row runindex.Row, taken bool, err error) {
	if isNew, err := c.isNewRun(ctx, run); isNew || err != nil {
		return row, false, err
	}
	row, listed, err := c.cfg.Runs.Get(ctx, run)
	switch {
	case err != nil:
		return row, false, err
	case row.Removing:
		return row, false, refuse.RunDeleted(run)
	case listed:
		return row, true, nil
	}
	if err := runlog.ExplainMissing(ctx, c.cfg.Post, run); !refuse.IsNotFound(err) {
		return row, false, err
	}
	return row, false, nil
}

// isNewRun reports whether a run certainly has no row and no supervisor log, by one read of a log. It is false whenever
// this node does not own the index.
func (c *lookup) isNewRun(ctx context.Context, run string) (bool, error) {
	if !c.cfg.Runs.HasNoRow(run) {
		return false, nil
	}
	stamp, _, err := runlog.ReadFirstEntry(ctx, c.cfg.Post, mailbox.At(run, mailbox.Super))
	return stamp == 0 && err == nil, err
}
