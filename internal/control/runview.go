package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// A request about a run reads the run's row, which has a Summary, and the few entries of the
// supervisor's log after it. It replays the log only if
//   - the row has no Summary, or one of a newer form;
//   - the log no longer holds the entry up to which the Summary was made, or cannot be read;
//   - more than tailMax entries follow that entry;
//   - an entry may have changed the Summary, and no node writes the row: the run may have no node;
//   - the request needs agents or questions that were cut from the Summary.

// tailMax is how many entries after the Summary of a row a request reads before it replays the
// log instead: more than activation.StateGap, because a node writes the row a moment later.
const tailMax = 4 * activation.StateGap

// runViews makes the views of runs, and finds the logs of their agents.
type runViews struct {
	cfg    *Config
	lookup *lookup
	states *runlog.SupervisorStates
}

// runView is what a request sees of a run: its row and its summary.
type runView struct {
	row     runindex.Row
	summary supervisor.Summary // no Phase: the supervisor has no log
	damage  string             // of the supervisor's log, if a replay found any
	// replayed is the state that a replay has found; nil: the row was enough.
	replayed *supervisor.State
	place    uint64 // of the last entry that the replay has read
}

// seen is the summary with the place up to which the log was read for it.
func (l runView) seen() runindex.RowSummary {
	place := l.place
	if l.replayed == nil && l.row.Summary != nil {
		place = l.row.Summary.Place
	}
	return runindex.RowSummary{Summary: l.summary, Place: place, Form: mailbox.Form}
}

// state returns the state of the run. If its log is gone or does not exist yet, the row counts.
// The same holds if the row says that the run has ended and the log does not: its supervisor was
// given up, so no process could append the end.
func (l runView) state() client.RunState {
	s := l.summary
	switch {
	case s.Phase == "" || l.row.State == client.RunFinished && s.Phase != supervisor.Over:
		return l.row.State
	case s.Phase == supervisor.Over:
		return client.RunFinished
	case s.Phase == supervisor.Queued:
		return client.RunQueued
	case s.Parked && !l.row.IsAllAnswered(s):
		return client.RunParked
	case !s.Active && time.Since(time.UnixMilli(s.BeganMS)) > queuedAfter:
		return client.RunQueued
	}
	return client.RunLive
}

// questions returns the open questions that no client has answered.
func (l runView) questions() []supervisor.OpenQuestion {
	if l.state() == client.RunFinished {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.summary.Questions), l.row.IsAnswered)
}

// viewRun makes the view of a run as it is now. A caller that needs every agent and question
// uses viewRunFully.
func (c *runViews) viewRun(ctx context.Context, row runindex.Row) (runView, error) {
	r := c.viewRuns(ctx, []runindex.Row{row}, func(runView) bool { return false })[0]
	return r.view, r.err
}

// viewRunFully is viewRun with all agents and questions of the run.
func (c *runViews) viewRunFully(ctx context.Context, row runindex.Row) (runView, error) {
	r := c.viewRuns(ctx, []runindex.Row{row}, runView.isCut)[0]
	return r.view, r.err
}

func (l runView) isCut() bool { return l.summary.AgentsCut || l.summary.QuestionsCut }

func (l runView) lacksQuestions() bool { return l.summary.QuestionsCut }

// summaryTail is what the supervisor's log holds after the Summary of a row.
type summaryTail struct {
	entries int
	changed int  // entries that may change the Summary
	lost    bool // the log no longer holds the entry up to which the Summary was made
}

// readSummaryTail reads the supervisor's log from the last entry that a Summary knows.
func readSummaryTail(ctx context.Context, post mailbox.Store, row runindex.Row) (t summaryTail, err error) {
	at := mailbox.At(row.RunID, mailbox.Super)
	t.lost = true
	err = post.Read(ctx, at, row.Summary.Place-1, 0, func(m mailbox.Message) error {
		if m.Place == row.Summary.Place {
			t.lost = false
			return nil
		}
		if t.lost {
			return runlog.ErrEnough
		}
		e, err := mailbox.Decode(m.Data)
		if errors.Is(err, mailbox.ErrForm) {
			return refuse.NewerLog(at)
		}
		if err != nil || slices.ContainsFunc(e.Items, func(item mailbox.Item) bool { return mayChange(*row.Summary, item) }) {
			t.changed++
		}
		if t.entries++; t.entries > tailMax {
			return runlog.ErrEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, runlog.ErrEnough) {
		return t, fmt.Errorf("control: read %s: %w", at, err)
	}
	return t, nil
}

// quietKinds are the entries of a supervisor's log that change no Summary. Those of moneyKinds change
// one only if
//   - the entry is an agent's first message, which names the agent's node;
//   - an agent waits for a person, because the entry may end supervisor.State.IsParked;
//   - the entry shows that a log has lost its tail, which cancels the run: a Reserve or ReturnAllowance
//     of an old number, or a Settle beyond the newest reservation.
//
// A row does not hold what tells the first and third case from others: the request sees the change
// once a node has read the entry and written the row, or after tailMax entries.
var (
	quietKinds = kindsOf(agent.Send{}, agent.Backlog{}, agent.ProposeStop{}, agent.Released{}, agent.Checkpoint{}, agent.Closed{},
		supervisor.PolicySet{}, supervisor.LimitSet{}, supervisor.SubtreeLimitSet{}, supervisor.PermissionsSet{}, supervisor.BacklogSet{})
	moneyKinds = kindsOf(agent.Reserve{}, agent.Settle{}, agent.ReturnAllowance{})
)

func kindsOf(facts ...supervisor.Fact) map[string]bool {
	kinds := map[string]bool{}
	for _, f := range facts {
		kinds[f.Kind()] = true
	}
	return kinds
}

// mayChange reports whether an item of an entry may change the Summary.
func mayChange(s runindex.RowSummary, item mailbox.Item) bool {
	return !quietKinds[item.Kind] && (!moneyKinds[item.Kind] || len(s.Questions) > 0 || s.QuestionsCut)
}

// replayView replays the supervisor's log, and repairs the Summary of the row.
func (c *runViews) replayView(ctx context.Context, row runindex.Row) (runView, error) {
	r, err := c.states.Replay(ctx, c.cfg.Post, row.RunID)
	if err != nil {
		return runView{row: row}, err
	}
	l := runView{row: row, summary: r.State.Summary(true), damage: r.Damage, replayed: &r.State, place: r.Place}
	if r.State.Phase == "" || r.Damage != "" || c.cfg.Runs == nil {
		return l, nil
	}
	if err := c.cfg.Runs.Repair(ctx, row.RunID, runindex.RowSummary{Summary: r.State.Summary(false), Place: r.Place, Form: mailbox.Form}); err != nil {
		c.cfg.logger().Warn("the summary of a run was not written into the index", "run", row.RunID, "error", err)
	}
	return l, nil
}

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// findAgent returns the address of an agent of a run. The summary names the agents that have not
// ended; the others have logs.
func (c *runViews) findAgent(ctx context.Context, l runView, id spec.ID) (mailbox.Address, error) {
	bare := mailbox.At(l.row.RunID, string(id))
	for _, a := range l.summary.Agents {
		if a.ID == id {
			return bare.In(a.Pool), nil
		}
	}
	if names.CheckToken(string(id)) != nil {
		return "", refuse.NoAgent(id, l.row.RunID)
	}
	logs, err := c.cfg.Post.Addresses(ctx, l.row.RunID)
	if err != nil {
		return "", fmt.Errorf("control: find %s: %w", bare, err)
	}
	for _, at := range logs {
		if at.Bare() == bare && at.Agent() != mailbox.Super {
			return at, nil
		}
	}
	return "", refuse.NoAgent(id, l.row.RunID)
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
	l, err := c.viewRun(ctx, row)
	if err != nil {
		return at, err
	}
	found, err := c.findAgent(ctx, l, id)
	if refuse.IsNotFound(err) {
		return at, nil // its log is empty
	}
	return found, err
}
