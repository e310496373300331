package control

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// continueExisting handles a request whose run exists, was deleted, or must exist (resume). exists is false if a new run
// is to be opened.
func (c *opener) continueExisting(ctx context.Context, r client.RunRequest) (accepted client.RunAccepted, exists bool, err error) {
	known, exists, err := c.lookup.findTaken(ctx, r.RunID)
	switch {
	case err != nil:
		return accepted, false, err
	case !exists && r.Resume:
		return accepted, false, refuse.NoRun(r.RunID)
	case !exists:
		return accepted, false, nil
	case r.Owner != "": // another owner may have opened it since the request came
		if err := c.owners.checkOwnRun(ctx, r.RunID, r.Owner); err != nil {
			return accepted, true, err
		}
	}
	accepted, err = c.reopenRun(ctx, known.RunInfo, r)
	return accepted, true, err
}

// reopenRun continues a run that exists already.
func (c *opener) reopenRun(ctx context.Context, known client.RunInfo, r client.RunRequest) (client.RunAccepted, error) {
	if err := c.refuseIfLogsLost(ctx, known); err != nil {
		return client.RunAccepted{}, err
	}
	if err := c.setTimeLimit(ctx, known, r); err != nil {
		return client.RunAccepted{}, err
	}
	accepted := c.acceptExisting(ctx, known, r)
	if err := c.cfg.Node.Resume(ctx, r.RunID); err != nil || known.Conversation == "" {
		return accepted, err
	}
	return c.keeper.enterLane(ctx, known.Conversation, accepted)
}

// setTimeLimit sets the time limit of a resume request on a run that has not ended. The limit counts the
// work time of each agent from now on.
func (c *opener) setTimeLimit(ctx context.Context, known client.RunInfo, r client.RunRequest) error {
	switch {
	case !r.Resume || r.TimeoutMS == 0 || known.State == client.RunFinished:
		return nil
	case r.TimeoutMS < 0 || r.TimeoutMS > spec.TimeoutMaxMS:
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("timeout_ms is %d, must be between 0 and %d", r.TimeoutMS, int64(spec.TimeoutMaxMS)), Hint: "0 leaves the limit as it is"}
	}
	f := supervisor.LimitSet{Patch: true, SoftMS: r.TimeoutMS, HardMS: spec.HardLimitMS(r.TimeoutMS)}
	_, err := c.commander.appendCommand(ctx, r.RunID, client.NewID(), "", "", f.Kind(), f)
	return err
}

// refuseIfLogsLost returns an error if a run that has not ended has no logs: the row of a run is written after its
// log, so the log was lost. No actor is left to record the loss, so it ends the row.
func (c *opener) refuseIfLogsLost(ctx context.Context, known client.RunInfo) error {
	if known.State == client.RunFinished {
		return nil
	}
	logs, err := c.cfg.Post.Addresses(ctx, known.RunID)
	if err != nil || len(logs) > 0 {
		return err
	}
	if err := c.canceler.endRow(ctx, known, noLogLeft); err != nil {
		return err
	}
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("%s: %s: %s", known.RunID, spec.LogDamaged, noLogLeft), Hint: "`troupe list` shows the runs"}
}
