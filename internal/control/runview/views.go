package runview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// A request waits for rows that lack a change: first for rowPauseMin, then for twice as long,
	// up to rowPauseMax.
	rowPauseMin = 10 * time.Millisecond
	rowPauseMax = 160 * time.Millisecond
	// rowsAtOnce is how many runs of one request are read at once.
	rowsAtOnce = 8
)

// Config is what views need of their node.
type Config struct {
	Store  mailbox.Store
	Index  *runindex.Index // nil: no row is repaired
	States *runlog.SupervisorStates
	Logger *slog.Logger
}

// Views makes the views of runs, and finds the logs of their agents.
type Views struct{ cfg Config }

// New returns the views of a node.
func New(cfg Config) *Views { return &Views{cfg} }

// ViewOne makes the view of a run as it is now. A caller that needs every agent and question
// uses ViewFully.
func (c *Views) ViewOne(ctx context.Context, row runindex.Row) (View, error) {
	r := c.ViewAll(ctx, []runindex.Row{row}, nil)[0]
	return r.View, r.Err
}

// ViewFully is ViewOne with all agents and questions of the run.
func (c *Views) ViewFully(ctx context.Context, row runindex.Row) (View, error) {
	r := c.ViewAll(ctx, []runindex.Row{row}, View.isCut)[0]
	return r.View, r.Err
}

// Result is the view of one run, or why there is none.
type Result struct {
	View View
	Err  error
	// freshness says what the row is worth until the view is complete.
	freshness rowFreshness
}

// rowFreshness is how a row compares with the log of its run.
type rowFreshness int

const (
	rowCurrent rowFreshness = iota // its Summary is that of the newest entry
	rowLags                        // a node may be about to write it
	rowStale                       // only the log tells
)

// ViewAll makes the views of runs together: the wait for rows that lack a change is one wait for all of them.
// It replays the logs of those for which needsReplay says that the Summary of the row is not enough; nil: of none.
func (c *Views) ViewAll(ctx context.Context, rows []runindex.Row, needsReplay func(View) bool) []Result {
	results := make([]Result, len(rows))
	every := make([]int, len(rows))
	for i, row := range rows {
		results[i].View, every[i] = View{Row: row, Summary: row.SummaryOrEmpty()}, i
	}
	c.checkRows(ctx, results, every)
	for pause := rowPauseMin; pause <= rowPauseMax; pause *= 2 {
		lagging := findRows(results, func(r Result) bool { return r.Err == nil && r.freshness == rowLags })
		if len(lagging) == 0 {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			for _, i := range lagging {
				results[i].Err = ctx.Err()
			}
			continue
		}
		inParallel(lagging, func(i int) { results[i].Err = c.readAgain(ctx, &results[i].View) })
		c.checkRows(ctx, results, lagging)
	}
	inParallel(findRows(results, func(r Result) bool {
		return r.Err == nil && (r.freshness != rowCurrent || needsReplay != nil && needsReplay(r.View))
	}), func(i int) {
		view, err := c.replayInList(ctx, results[i].View.Row)
		if !errors.Is(err, refuse.ErrReplaying) { // else it is shown as its row has it, and the next list has read more
			results[i].View, results[i].Err = view, err
		}
	})
	inParallel(findRows(results, func(r Result) bool { return r.Err == nil && len(r.View.Row.Answered) > 0 }), func(i int) {
		results[i].Err = c.settleMarks(ctx, &results[i].View)
	})
	return results
}

// listReplayTime is how long a list waits for the replay of one of its runs.
const listReplayTime = 2 * time.Second

// replayInList is replayView for a run of a list, which one run of many agents must not hold up.
func (c *Views) replayInList(ctx context.Context, row runindex.Row) (View, error) {
	ctx, stop := context.WithTimeout(ctx, listReplayTime+bounds.ReplyReserve)
	defer stop()
	return c.replayView(ctx, row)
}

// checkRows finds the freshness of some rows.
func (c *Views) checkRows(ctx context.Context, results []Result, some []int) {
	inParallel(some, func(i int) {
		if r := &results[i]; r.Err == nil {
			r.freshness, r.Err = c.checkRow(ctx, r.View.Row)
		}
	})
}

// checkRow compares a row with the log of its run.
func (c *Views) checkRow(ctx context.Context, row runindex.Row) (rowFreshness, error) {
	if row.Summary == nil || row.Summary.Form > mailbox.Form {
		return rowStale, nil
	}
	t, err := readSummaryTail(ctx, c.cfg.Store, row)
	switch {
	case err != nil || t.lost || t.entries > tailMax:
		return rowStale, err
	case t.changed > 0:
		return rowLags, nil
	}
	return rowCurrent, nil
}

// readAgain reads the row of a run again.
func (c *Views) readAgain(ctx context.Context, v *View) error {
	next, there, err := c.cfg.Index.Get(ctx, v.Row.RunID)
	if err == nil && there {
		v.Row, v.Summary = next, next.SummaryOrEmpty()
	}
	return err
}

func findRows(results []Result, wanted func(Result) bool) (found []int) {
	for i, r := range results {
		if wanted(r) {
			found = append(found, i)
		}
	}
	return found
}

// inParallel calls work for each index, rowsAtOnce at a time.
func inParallel(indexes []int, work func(i int)) {
	if len(indexes) == 1 {
		work(indexes[0])
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(rowsAtOnce, len(indexes)) {
		workers.Go(func() {
			for n := next.Add(1); n <= int64(len(indexes)); n = next.Add(1) {
				work(indexes[n-1])
			}
		})
	}
	workers.Wait()
}

// settleMarks reads the logs of agents whose questions are marked as answered by requests that may
// have died before they appended the answer.
func (c *Views) settleMarks(ctx context.Context, v *View) error {
	now := time.Now()
	for _, mark := range slices.Clone(v.Row.Answered) {
		i := slices.IndexFunc(v.Summary.Questions, mark.Names)
		if i < 0 || !mark.IsDoubtful(now) {
			continue
		}
		s, err := runlog.ReplayAgent(ctx, c.cfg.Store, mailbox.At(v.Row.RunID, string(mark.Agent)).In(v.Summary.Questions[i].Pool))
		if refuse.IsNewer(err) {
			continue // this release could not answer it
		}
		if err != nil {
			return err
		}
		logged := s.Phase != agent.Waiting || s.Suspended.Question.Query != mark.Query
		if err := c.cfg.Index.SettleAnswer(ctx, v.Row.RunID, mark, logged); err != nil {
			c.cfg.Logger.Warn("a mark of an answer stays doubtful in the index", "run", v.Row.RunID, "agent", mark.Agent, "error", err)
		}
		if !logged {
			v.Row.Answered = slices.DeleteFunc(slices.Clone(v.Row.Answered), func(a runindex.AnsweredQuestion) bool { return a == mark })
		}
	}
	return nil
}

// replayView replays the supervisor's log, and repairs the Summary of the row.
func (c *Views) replayView(ctx context.Context, row runindex.Row) (View, error) {
	r, err := c.cfg.States.Replay(ctx, c.cfg.Store, row.RunID)
	if err != nil {
		return View{Row: row}, err
	}
	v := View{Row: row, Summary: r.State.Summary(true), Damage: r.Damage, Replayed: &r.State, place: r.Place}
	if r.State.Phase == "" || r.Damage != "" || c.cfg.Index == nil {
		return v, nil
	}
	if err := c.cfg.Index.Repair(ctx, row.RunID, runindex.RowSummary{Summary: r.State.Summary(false), Place: r.Place, Form: mailbox.Form}); err != nil {
		c.cfg.Logger.Warn("the summary of a run was not written into the index", "run", row.RunID, "error", err)
	}
	return v, nil
}

// FindAgent returns the address of an agent of a run. The summary names the agents that have not
// ended; the others have logs.
func (c *Views) FindAgent(ctx context.Context, v View, id spec.ID) (mailbox.Address, error) {
	bare := mailbox.At(v.Row.RunID, string(id))
	for _, a := range v.Summary.Agents {
		if a.ID == id {
			return bare.In(a.Pool), nil
		}
	}
	if names.CheckToken(string(id)) != nil {
		return "", refuse.NoAgent(id, v.Row.RunID)
	}
	logs, err := c.cfg.Store.Addresses(ctx, v.Row.RunID)
	if err != nil {
		return "", fmt.Errorf("control: find %s: %w", bare, err)
	}
	for _, at := range logs {
		if at.Bare() == bare && at.Agent() != mailbox.Super {
			return at, nil
		}
	}
	return "", refuse.NoAgent(id, v.Row.RunID)
}
