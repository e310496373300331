package control

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/agent"
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

// viewResult is the view of one run, or why there is none.
type viewResult struct {
	view runView
	err  error
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

// viewRuns makes the views of runs together: the wait for rows that lack a change is one wait for all of them.
// It replays the logs of those for which needsReplay says that the Summary of the row is not enough.
func (c *runViews) viewRuns(ctx context.Context, rows []runindex.Row, needsReplay func(runView) bool) []viewResult {
	results := make([]viewResult, len(rows))
	every := make([]int, len(rows))
	for i, row := range rows {
		results[i].view, every[i] = runView{row: row, summary: row.SummaryOrEmpty()}, i
	}
	c.checkRows(ctx, results, every)
	for pause := rowPauseMin; pause <= rowPauseMax; pause *= 2 {
		lagging := findRows(results, func(r viewResult) bool { return r.err == nil && r.freshness == rowLags })
		if len(lagging) == 0 {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			for _, i := range lagging {
				results[i].err = ctx.Err()
			}
			continue
		}
		inParallel(lagging, func(i int) { results[i].err = c.readAgain(ctx, &results[i].view) })
		c.checkRows(ctx, results, lagging)
	}
	inParallel(findRows(results, func(r viewResult) bool { return r.err == nil && (r.freshness != rowCurrent || needsReplay(r.view)) }), func(i int) {
		view, err := c.replayInList(ctx, results[i].view.row)
		if !errors.Is(err, refuse.ErrReplaying) { // else it is shown as its row has it, and the next list has read more
			results[i].view, results[i].err = view, err
		}
	})
	inParallel(findRows(results, func(r viewResult) bool { return r.err == nil && len(r.view.row.Answered) > 0 }), func(i int) {
		results[i].err = c.settleMarks(ctx, &results[i].view)
	})
	return results
}

// listReplayTime is how long a list waits for the replay of one of its runs.
const listReplayTime = 2 * time.Second

// replayInList is replayView for a run of a list, which one run of many agents must not hold up.
func (c *runViews) replayInList(ctx context.Context, row runindex.Row) (runView, error) {
	ctx, stop := context.WithTimeout(ctx, listReplayTime+bounds.ReplyReserve)
	defer stop()
	return c.replayView(ctx, row)
}

// checkRows finds the freshness of some rows.
func (c *runViews) checkRows(ctx context.Context, results []viewResult, some []int) {
	inParallel(some, func(i int) {
		if r := &results[i]; r.err == nil {
			r.freshness, r.err = c.checkRow(ctx, r.view.row)
		}
	})
}

// checkRow compares a row with the log of its run.
func (c *runViews) checkRow(ctx context.Context, row runindex.Row) (rowFreshness, error) {
	if row.Summary == nil || row.Summary.Form > mailbox.Form {
		return rowStale, nil
	}
	t, err := readSummaryTail(ctx, c.cfg.Post, row)
	switch {
	case err != nil || t.lost || t.entries > tailMax:
		return rowStale, err
	case t.changed > 0:
		return rowLags, nil
	}
	return rowCurrent, nil
}

// readAgain reads the row of a run again.
func (c *runViews) readAgain(ctx context.Context, l *runView) error {
	next, there, err := c.cfg.Runs.Get(ctx, l.row.RunID)
	if err == nil && there {
		l.row, l.summary = next, next.SummaryOrEmpty()
	}
	return err
}

func findRows(results []viewResult, wanted func(viewResult) bool) (found []int) {
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
func (c *runViews) settleMarks(ctx context.Context, l *runView) error {
	now := time.Now()
	for _, mark := range slices.Clone(l.row.Answered) {
		i := slices.IndexFunc(l.summary.Questions, mark.Names)
		if i < 0 || !mark.IsDoubtful(now) {
			continue
		}
		s, err := runlog.ReplayAgent(ctx, c.cfg.Post, mailbox.At(l.row.RunID, string(mark.Agent)).In(l.summary.Questions[i].Pool))
		if refuse.IsNewer(err) {
			continue // this release could not answer it
		}
		if err != nil {
			return err
		}
		logged := s.Phase != agent.Waiting || s.Suspended.Question.Query != mark.Query
		if err := c.cfg.Runs.SettleAnswer(ctx, l.row.RunID, mark, logged); err != nil {
			c.cfg.logger().Warn("a mark of an answer stays doubtful in the index", "run", l.row.RunID, "agent", mark.Agent, "error", err)
		}
		if !logged {
			l.row.Answered = slices.DeleteFunc(slices.Clone(l.row.Answered), func(a runindex.AnsweredQuestion) bool { return a == mark })
		}
	}
	return nil
}
