package sim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// summariesMax is how often the summary of one compaction is asked for.
const summariesMax = 2

// watchFolds counts the steps that keep a prompt within the window: a step
// soon after another is a recovery, and recoveries are limited.
func (s *sim) watchFolds(w *shadow, before, after *agent.State) {
	j, a := &w.judge, w.actor
	asked := after.Query != before.Query && strings.Contains(after.Query.Question, "losing context")
	if after.Fold == before.Fold && !asked {
		return
	}
	within := cmp.Or(after.Task.LoopOptions.Context.Within, spec.LadderTurns)
	reactive := after.Transition == spec.ReactiveRetry
	if reactive || j.rungs > 0 && after.Turn-j.rungAt <= within {
		if j.recoveries++; j.recoveries > spec.RecoveriesMax {
			s.fail("%s recovers its context %d times", a.id, j.recoveries)
		}
	}
	if reactive {
		if j.reactive++; j.reactive > 1 {
			s.fail("%s compacts %d times because a prompt was too long", a.id, j.reactive)
		}
	}
	j.rungs, j.rungAt = j.rungs+1, after.Turn
	if asked {
		return
	}
	f := after.Fold
	if f.Upto <= before.Fold.Upto && before.Fold.Upto > 0 {
		s.fail("%s folds %d messages, and %d were folded before", a.id, f.Upto, before.Fold.Upto)
	}
	if before.Purpose == agent.ForTurn && before.Phase == agent.Thinking && after.Phase == agent.Thinking {
		s.fail("%s folds its prompt while it is being answered", a.id)
	}
}

// watchSummary checks that a summary is requested at most a stated, small number of times.
func (s *sim) watchSummary(w *shadow, e agent.CallModel) {
	j := &w.judge
	if e.Lease == j.summaryLease {
		return // a drain came before it began: the ledger checks that it begins once
	}
	j.summaryLease = e.Lease
	if j.summaries++; j.summaries > summariesMax {
		s.fail("%s asks for the same summary %d times", w.actor.id, j.summaries)
	}
	if len(e.Request.Tools) > 0 || len(e.Request.Messages) != 1 {
		s.fail("%s asks for a summary with %d tools and %d messages", w.actor.id, len(e.Request.Tools), len(e.Request.Messages))
	}
}

// watchPinned checks that the prompt contains what may never leave it: the task, and the
// evidence that the task requires.
func (s *sim) watchPinned(w *shadow, after *agent.State, r model.Request) {
	holds := func(text string) bool {
		return slices.ContainsFunc(r.Messages, func(m model.Message) bool {
			return strings.Contains(m.Text, text) || slices.ContainsFunc(m.Results, func(r model.ToolResult) bool { return strings.Contains(r.Text, text) })
		})
	}
	if !holds(after.Task.Goal) {
		s.fail("%s sends a prompt without its task", w.actor.id)
	}
	for _, e := range after.Task.LoopOptions.Require.Evidence {
		// The task itself names the word; the result has it between others.
		if e.Contains == proof && shown(after.History, e) && !holds(" "+proof+" ") {
			s.fail("%s sends a prompt without the evidence %+v, which it has", w.actor.id, e)
		}
	}
}
