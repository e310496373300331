package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// openRun opens a run. The log comes first: the index is written after it.
func (c *opener) openRun(ctx context.Context, r client.RunRequest) (any, error) {
	if err := names.CheckToken(r.RunID); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "run_id: " + err.Error(), Hint: "use a lower-case ULID"}
	}
	if r.Fork != "" || r.History != nil || len(r.Attach) > 0 {
		done, err := c.locks.lockRun(ctx, r.RunID)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	if known, ok, err := c.cfg.Runs.Get(ctx, r.RunID); err != nil {
		return nil, err
	} else if ok {
		if err := c.recordLostLogs(ctx, known); err != nil {
			return nil, err
		}
		if err := c.moreTime(ctx, known, r); err != nil {
			return nil, err
		}
		return client.RunAccepted{RunID: r.RunID, Model: known.Model, Why: "the run exists already"}, c.cfg.Node.Resume(ctx, r.RunID)
	}
	if err := c.explainMissing(ctx, r.RunID); r.Resume || !isNotFound(err) {
		return nil, err
	}
	if err := c.checkRoom(ctx); err != nil {
		return nil, err
	}
	if err := c.cfg.Queue.checkFull(); err != nil {
		return nil, err
	}
	opened, accepted, err := c.cfg.Build(r)
	if err != nil {
		return nil, err
	}
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
	if err := c.cfg.Node.Open(ctx, opened); err != nil {
		return nil, err
	}
	if r.History != nil && root != root.Bare() { // it was copied from there
		if err := c.purgeToTombstone(ctx, root.Bare(), nil); err != nil {
			return nil, err
		}
	}
	// A short run may have ended already, and its row may say so: Change keeps that state.
	return accepted, c.cfg.Runs.Change(ctx, r.RunID, func(i *client.RunInfo) {
		i.Title, i.Model, i.Node, i.Started = shortTitle(r.Prompt), accepted.Model, c.cfg.Name, time.Now().UTC().Format(time.RFC3339)
		i.State = cmp.Or(i.State, Live)
	})
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
func (c *lookup) findRun(ctx context.Context, run string) (client.RunInfo, error) {
	i, ok, err := c.cfg.Runs.Get(ctx, run)
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
		return found, nil
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

// refreshRow updates a row from the supervisor's log.
func (c *lookup) refreshRow(ctx context.Context, info client.RunInfo) (client.RunInfo, error) {
	s, err := ReplaySupervisor(ctx, c.cfg.Post, info.RunID)
	if err != nil {
		return info, err
	}
	return applyState(info, s), nil
}

// applyState returns the row with the run's current state. If the log is gone or does not exist
// yet, the row is returned as it is. The same holds if the row says that the run has ended
// and the log does not: its supervisor was given up, so no process could append the end.
func applyState(info client.RunInfo, s supervisor.State) client.RunInfo {
	if s.Phase == "" || info.State == Finished && s.Phase != supervisor.Over {
		return info
	}
	result := s.Result()
	info.Result = &result
	switch {
	case s.Phase == supervisor.Over:
		info.State = Finished
	case s.IsParked():
		info.State = Parked
	case s.Life == "" && time.Since(time.UnixMilli(s.Began)) > queuedAfter:
		info.State = Queued
	}
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

// agentResults returns the agents of a replayed run; none if it has no log.
func agentResults(info client.RunInfo) []event.AgentResult {
	if info.Result == nil {
		return nil
	}
	return info.Result.Agents
}

// refreshedRowsMax is how many runs of a list are brought up to date; the others, older ones, are
// shown as the index has them.
const refreshedRowsMax = 64

func (c *viewer) listRuns(ctx context.Context, _ struct{}) (any, error) {
	list, err := c.cfg.Runs.List(ctx)
	folds, places := 0, c.cfg.Queue.allPlaces()
	for i := range list {
		list[i] = withPosition(list[i], places[list[i].RunID])
		if list[i].State == Finished || list[i].Position > 0 || folds == refreshedRowsMax || err != nil {
			continue
		}
		folds++
		var info client.RunInfo
		if info, err = c.refreshRow(ctx, list[i]); isNewer(err) {
			err = nil // only the row can be shown
			continue
		}
		list[i] = summarizeRow(info)
	}
	if err != nil {
		return nil, err
	}
	return fitList(list)
}

// appendCommand appends a request to an actor of a run that has not ended. The agent that it
// names must exist: an append to another name would create a log without an agent.
func (c *commander) appendCommand(ctx context.Context, run, request string, to, of spec.ID, kind string, body any) (any, error) {
	info, err := c.findRun(ctx, run)
	if err != nil {
		return nil, err
	}
	if err := names.CheckToken(request); err != nil {
		return nil, badRequestID(err)
	}
	if info, err = c.refreshRow(ctx, info); err != nil {
		return nil, err
	}
	if info.Result == nil { // the index has a row, but there is no log
		return nil, notFound(run)
	}
	address := mailbox.At(run, cmp.Or(string(to), mailbox.Super))
	for _, a := range []spec.ID{to, of} {
		i := slices.IndexFunc(agentResults(info), func(r event.AgentResult) bool { return r.ID == a })
		if i >= 0 && a == to {
			address = address.In(agentResults(info)[i].Pool)
		}
		if a != "" && i < 0 {
			return nil, noAgent(a, run)
		}
	}
	switch {
	case info.State == Finished && kind == agent.Canceled{}.Kind():
		return struct{}{}, nil // it is canceled already
	case info.State == Finished:
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
	if r.Limits.Nano > 0 && !r.Freeze {
		if s, err := ReplaySupervisor(ctx, c.cfg.Post, r.RunID); err == nil && s.Phase != "" && !s.Run.Model.Price.Known {
			return nil, &client.Error{Code: client.CodeBad, Text: "the price of " + s.Run.Model.Name + " is unknown, so a limit in money cannot be kept",
				Hint: "limit the tokens"}
		}
	}
	f := supervisor.LimitSet{Limits: r.Limits, Patch: r.Patch, Freeze: r.Freeze}
	return c.appendCommand(ctx, r.RunID, r.Request, "", "", f.Kind(), f)
}

// decisions are the decisions of a user about a call.
var decisions = []string{"approve", "deny", "skip", "text"}

// answerQuery passes a user's decision to the agent that asked.
func (c *commander) answerQuery(ctx context.Context, r client.AnswerRequest) (any, error) {
	if !slices.Contains(decisions, r.Decision) {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("decision is %q", r.Decision), Hint: "decide " + strings.Join(decisions, ", ")}
	}
	info, err := c.findRun(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	if info, err = c.refreshRow(ctx, info); err != nil {
		return nil, err
	}
	for _, a := range agentResults(info) {
		if a.Query != nil && a.Query.Query == r.Query && (r.Agent == "" || r.Agent == string(a.ID)) {
			if waits, err := c.isUnanswered(ctx, r.RunID, a); err != nil {
				return nil, err
			} else if !waits {
				return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%q in %s is answered already", r.Query, r.RunID),
					Hint: "`troupe run --resume " + r.RunID + "` continues a run that no node has"}
			}
			f := agent.Answered{Query: r.Query, Decision: r.Decision, Text: r.Text}
			return c.appendCommand(ctx, r.RunID, r.Request, a.ID, "", f.Kind(), f)
		}
	}
	return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("no open query %q in %s", r.Query, r.RunID),
		Hint: "`troupe questions` shows the open ones"}
}

// isUnanswered reports whether an agent still waits for an answer to its query. It reads the
// agent's own log, which may contain an answer that no node has read and of which the
// supervisor does not know.
func (c *lookup) isUnanswered(ctx context.Context, run string, a event.AgentResult) (bool, error) {
	s, err := ReplayAgent(ctx, c.cfg.Post, mailbox.At(run, string(a.ID)).In(a.Pool))
	return s.Suspended.Question.Query == a.Query.Query, err
}

// unlessAnswered returns a parked run as live if the logs of its agents hold answers to all
// its questions and its supervisor has not read them yet. Otherwise a client that has
// answered and waits for the run would read the old question again.
func (c *lookup) unlessAnswered(ctx context.Context, info client.RunInfo) (client.RunInfo, error) {
	for _, a := range agentResults(info) {
		if a.Query == nil {
			continue
		}
		waits, err := c.isUnanswered(ctx, info.RunID, a)
		if waits || err != nil {
			return info, err
		}
	}
	info.State = Live
	return info, nil
}

// Question is one open query of a run.
type Question struct {
	RunID string          `json:"run_id"`
	Agent spec.ID         `json:"agent"`
	Query event.OpenQuery `json:"query"`
}

func (c *viewer) listQuestions(ctx context.Context, _ struct{}) (any, error) {
	list, err := c.cfg.Runs.List(ctx)
	if err != nil {
		return nil, err
	}
	questions := []Question{}
	for _, info := range list {
		if info.State == Finished {
			continue
		}
		info, err := c.refreshRow(ctx, info)
		if isNewer(err) {
			continue // this release could not answer it
		}
		if err != nil {
			return nil, err
		}
		for _, a := range agentResults(info) {
			if a.Query == nil {
				continue
			}
			if waits, err := c.isUnanswered(ctx, info.RunID, a); err != nil {
				return nil, err
			} else if waits {
				questions = append(questions, Question{info.RunID, a.ID, *a.Query})
			}
		}
	}
	return questions, nil
}
