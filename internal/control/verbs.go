package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// openRun opens a run. The log comes first: the index is written after it.
func (c *opener) openRun(ctx context.Context, r client.RunRequest) (any, error) {
	if err := checkRunID(r.RunID); err != nil {
		return nil, err
	}
	if r.Fork != "" || r.History != nil || len(r.Attach) > 0 {
		done, err := c.locks.lockRun(ctx, r.RunID)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	if isNew, err := c.isNewRun(ctx, r.RunID); err != nil {
		return nil, err
	} else if !isNew || r.Resume {
		if known, ok, err := c.cfg.Runs.Get(ctx, r.RunID); err != nil {
			return nil, err
		} else if ok {
			return c.reopenRun(ctx, known, r)
		}
		if err := c.explainMissing(ctx, r.RunID); r.Resume || !isNotFound(err) {
			return nil, err
		}
	}
	if err := c.checkRoom(ctx); err != nil {
		return nil, err
	}
	if err := c.cfg.Queue.checkFull(); err != nil {
		return nil, err
	}
	if r.Conversation != "" {
		var err error
		if r.Conversation, err = c.checkConversation(ctx, r); err != nil {
			return nil, err
		}
	}
	opened, accepted, err := c.cfg.Build(r)
	if err != nil {
		return nil, err
	}
	opened.InLane = r.Conversation != ""
	root := mailbox.At(r.RunID, string(spec.Root)).In(opened.RootPlace())
	if r.Fork != "" || r.History != nil {
		if opened.Past, err = c.prepareHistory(ctx, r, root); err != nil {
			return nil, err
		}
		notes, err := c.forkNotes(ctx, opened)
		if err != nil {
			return nil, err
		}
		accepted.Notes = append(append(accepted.Notes, describeHistory(opened.Past)), notes...)
	}
	if err := c.appendOpened(ctx, opened); err != nil {
		return nil, err
	}
	if r.History != nil && root != root.Bare() { // it was copied from there
		if err := c.purgeToTombstone(ctx, root.Bare(), nil); err != nil {
			return nil, err
		}
	}
	err = c.addRow(ctx, client.RunInfo{RunID: r.RunID, State: Live, Title: shortTitle(r.Prompt), Model: accepted.Model, Node: c.cfg.Name,
		Started: time.Now().UTC().Format(time.RFC3339), Conversation: r.Conversation})
	if err != nil || r.Conversation == "" {
		return accepted, err
	}
	return c.enterLane(ctx, r.Conversation, accepted)
}

// checkRunID refuses an id that no new run may have.
func checkRunID(run string) error {
	err := names.CheckToken(run)
	if err == nil && mailbox.IsReserved(run) {
		err = errReservedID
	}
	if err != nil {
		return &client.Error{Code: client.CodeBad, Text: "run_id: " + err.Error(), Hint: "use a lower-case ULID"}
	}
	return nil
}

var errReservedID = errors.New("control: it begins like the log of a conversation")

// reopenRun continues a run that exists already.
func (c *opener) reopenRun(ctx context.Context, known client.RunInfo, r client.RunRequest) (any, error) {
	if err := c.recordLostLogs(ctx, known); err != nil {
		return nil, err
	}
	if err := c.moreTime(ctx, known, r); err != nil {
		return nil, err
	}
	accepted := client.RunAccepted{RunID: r.RunID, Model: known.Model, Why: "the run exists already", Existed: true}
	if err := c.cfg.Node.Resume(ctx, r.RunID); err != nil || known.Conversation == "" {
		return accepted, err
	}
	return c.enterLane(ctx, known.Conversation, accepted)
}

// isNewRun reports whether a run certainly has neither a row nor a log. If this node owns the index, that
// takes no read of the index.
func (c *lookup) isNewRun(ctx context.Context, run string) (bool, error) {
	if !c.cfg.Runs.own.hasNoRow(run) {
		return false, nil
	}
	stamp, _, err := readTombstone(ctx, c.cfg.Post, mailbox.At(run, mailbox.Super))
	return stamp == 0 && err == nil, err
}

// addRow adds the row of a run that was opened. A short run may have ended already, and its row may say so: that
// state stays.
func (c *opener) addRow(ctx context.Context, info client.RunInfo) error {
	// A lane reads the rows of its conversation, and after a crash it begins with them.
	if c.cfg.RowAdded != nil && info.Conversation == "" && c.cfg.Runs.noteOpened(info) {
		c.cfg.RowAdded(info.RunID)
		return nil
	}
	err := c.cfg.Runs.changeMissing(ctx, info.RunID, func(i *client.RunInfo) {
		i.Title, i.Model, i.Node, i.Started = info.Title, info.Model, info.Node, info.Started
		i.State, i.Conversation = cmp.Or(i.State, info.State), info.Conversation
	})
	if bus.IsFull(err) { // the run works, and its node adds the row once there is room
		c.logger().Warn("a run was not added to the index", "run", info.RunID, "error", err)
		return nil
	}
	return err
}

// moreTime sets the time limit of a resume request on a run that has not ended. The limit counts the
// work time of each agent from now on.
func (c *opener) moreTime(ctx context.Context, known client.RunInfo, r client.RunRequest) error {
	switch {
	case !r.Resume || r.TimeoutMS == 0 || known.State == Finished:
		return nil
	case r.TimeoutMS < 0 || r.TimeoutMS > spec.TimeoutMaxMS:
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("timeout_ms is %d", r.TimeoutMS), Hint: "0 leaves the limit as it is"}
	}
	f := supervisor.LimitSet{Patch: true, SoftMS: r.TimeoutMS, HardMS: spec.HardLimitMS(r.TimeoutMS)}
	_, err := c.appendCommand(ctx, r.RunID, client.NewID(), "", "", f.Kind(), f)
	return err
}

// recordLostLogs returns an error if a run that has not ended has no logs. The row of a run is
// written after its log, so the log was lost. No actor is left to record the loss, so recordLostLogs
// records it in the row.
func (c *opener) recordLostLogs(ctx context.Context, known client.RunInfo) error {
	if known.State == Finished {
		return nil
	}
	logs, err := c.cfg.Post.Addresses(ctx, known.RunID)
	if err != nil || len(logs) > 0 {
		return err
	}
	if err := c.endRow(ctx, known, noLogLeft); err != nil {
		return err
	}
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("%s: %s: %s", known.RunID, spec.LogDamaged, noLogLeft), Hint: "`troupe list` shows the runs"}
}

const titleBytes = 80

func shortTitle(prompt string) string {
	for i := range prompt {
		if i >= titleBytes {
			return prompt[:i] + "…"
		}
	}
	return prompt
}

func notFound(run string) error {
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no run %q", run), Hint: "`troupe list` shows the runs"}
}

// findRun returns the row of a run, or an error if neither the index nor a log shows the run.
func (c *lookup) findRun(ctx context.Context, run string) (Row, error) {
	if mailbox.IsReserved(run) { // a lane is no run, even if a row says so
		return Row{}, notFound(run)
	}
	i, ok, err := c.cfg.Runs.getRow(ctx, run)
	if err != nil || ok {
		return i, err
	}
	if err = c.explainMissing(ctx, run); !isNotFound(err) || names.CheckToken(run) != nil {
		return i, err
	}
	found, ok, lost := c.findUnlisted(ctx, run)
	if lost != nil {
		return i, lost
	}
	if ok {
		return Row{RunInfo: found}, nil
	}
	return i, err
}

func badRequestID(err error) error {
	return &client.Error{Code: client.CodeBad, Text: "request_id: " + err.Error(), Hint: "choose one of a-z, 0-9, - and _; the same one is applied once"}
}

func noAgent(id spec.ID, run string) error {
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no agent %q in %s", id, run), Hint: "`troupe tree` shows the agents"}
}

func isNotFound(err error) bool { return hasCode(err, client.CodeNotFound) }

func isGone(err error) bool { return hasCode(err, client.CodeGone) }

func hasCode(err error, code string) bool {
	var known *client.Error
	return errors.As(err, &known) && known.Code == code
}

// applyState returns the row with the run's current state and result: see look.state.
func applyState(row Row, s supervisor.State) client.RunInfo {
	info := row.RunInfo
	if s.Phase == "" || info.State == Finished && s.Phase != supervisor.Over {
		return info
	}
	result := s.Result()
	info.Result, info.State = &result, runView{row: row, summary: s.Summary(true)}.state()
	return info
}

// queuedAfter is how long a run may have no activation before it is shown as queued: a node
// that takes up a run immediately needs some milliseconds.
const queuedAfter = 2 * time.Second

// withPosition returns the row with the run's place in the queue of this node; 0: it has none.
func withPosition(info client.RunInfo, place int) client.RunInfo {
	if place > 0 && info.State != Finished {
		info.State, info.Position = Queued, place
	}
	return info
}

// appendCommand appends a request to an actor of a run that has not ended. The agent that it
// names must exist: an append to another name would create a log without an agent.
func (c *commander) appendCommand(ctx context.Context, run, request string, to, of spec.ID, kind string, body any) (any, error) {
	l, err := c.lookAtRun(ctx, run, request)
	if err != nil {
		return nil, err
	}
	return c.appendTo(ctx, l, request, to, of, kind, body)
}

// lookAtRun looks at the run of a request that a client has named.
func (c *commander) lookAtRun(ctx context.Context, run, request string) (runView, error) {
	row, err := c.findRun(ctx, run)
	if err != nil {
		return runView{}, err
	}
	if err := names.CheckToken(request); err != nil {
		return runView{}, badRequestID(err)
	}
	return c.viewRun(ctx, row)
}

// appendTo is appendCommand for a run that was looked at.
func (c *commander) appendTo(ctx context.Context, l runView, request string, to, of spec.ID, kind string, body any) (any, error) {
	run := l.row.RunID
	if l.summary.Phase == "" { // the index has a row, but there is no log
		return nil, notFound(run)
	}
	address := mailbox.At(run, mailbox.Super)
	for _, a := range []spec.ID{to, of} {
		if a == "" {
			continue
		}
		at, err := c.findAgent(ctx, l, a)
		if isNotFound(err) && l.summary.AgentsCut { // it may have no log yet
			if l, err = c.viewRunFully(ctx, l.row); err == nil {
				at, err = c.findAgent(ctx, l, a)
			}
		}
		if err != nil {
			return nil, err
		}
		if a == to {
			address = at
		}
	}
	switch finished := l.state() == Finished; {
	case finished && kind == agent.Canceled{}.Kind():
		return struct{}{}, nil // it is canceled already
	case finished:
		return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%s is over", run), Hint: "`troupe result` shows how it ended"}
	}
	if err := c.checkWritable(); err != nil {
		return nil, err
	}
	return struct{}{}, c.cfg.Node.Command(ctx, address, request, kind, body)
}

func (c *commander) steerAgent(ctx context.Context, r client.SteerRequest) (any, error) {
	f := agent.Steered{Text: r.Text}
	return c.appendCommand(ctx, r.RunID, r.Request, cmp.Or(spec.ID(r.Agent), spec.Root), "", f.Kind(), f)
}

func (c *commander) setPolicy(ctx context.Context, r client.PolicyRequest) (any, error) {
	if err := r.Policy.Validate(); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: err.Error()}
	}
	f := supervisor.PolicySet{Policy: r.Policy}
	return c.appendCommand(ctx, r.RunID, r.Request, "", "", f.Kind(), f)
}

func (c *commander) setBudget(ctx context.Context, r client.BudgetRequest) (any, error) {
	if l := r.Limits; min(l.Tokens, l.Nano, l.Calls, int64(l.Depth), int64(l.Children), int64(l.Agents), int64(l.Messages)) < 0 {
		return nil, &client.Error{Code: client.CodeBad, Text: "a limit is negative", Hint: "0 is the default of a limit"}
	}
	if r.Patch && r.Limits == (spec.RunLimits{}) {
		return nil, &client.Error{Code: client.CodeBad, Text: "no limit is named", Hint: "with patch, name the limits that change"}
	}
	l, err := c.lookAtRun(ctx, r.RunID, r.Request)
	if err != nil {
		return nil, err
	}
	if r.Limits.Nano > 0 && !r.Freeze && l.summary.Phase != "" && !l.summary.Priced {
		return nil, &client.Error{Code: client.CodeBad, Text: "the price of " + l.row.Model + " is unknown, so a limit in money cannot be kept",
			Hint: "limit the tokens"}
	}
	f := supervisor.LimitSet{Limits: r.Limits, Patch: r.Patch, Freeze: r.Freeze}
	return c.appendTo(ctx, l, r.Request, "", "", f.Kind(), f)
}
