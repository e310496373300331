package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// promptJudge checks what the models of an agent are sent, and how often a prompt is compacted.
type promptJudge struct {
	*watchedAgent
	tooLong            int // prompts of turns that were too long
	rungs, rungAt      int // of the ladder, and the turn of the last
	recoveries         int // rungs that followed on others
	reactive           int
	summaries          int             // asked for since the last turn
	summaryReservation int             // of the newest of them
	left               []string        // models that were given up
	first              string          // the model that was set last
	said               string          // the model of the last turn
	sent               []model.Message // the last prompt of a turn, and its system prompt
	head               string
	layers             map[layerKey]string // in that prompt
	fold               agent.Fold
}

// checkRequest checks that a turn's prompt begins with the prompt before it, except after a
// compaction, and that a model that was given up is not called again.
func (j *promptJudge) checkRequest(after *agent.State, e agent.CallModel) {
	a := j.actor
	if after.Purpose != agent.ForTurn {
		j.checkSummary(e)
		return
	}
	j.summaries = 0
	// other models take the place of the first ones
	if set := a.shadow.judge.models.set; set != nil && set.Model.Name != j.first {
		j.first, j.left, j.said = set.Model.Name, nil, ""
	}
	if slices.Contains(j.left, e.Model) {
		j.fail(breakersStop, "%s calls %s again, which it had given up", a.id, e.Model)
	}
	if j.said != e.Model && j.said != "" {
		j.left = append(j.left, j.said)
	}
	j.said = e.Model
	if len(after.Calls) > 0 {
		j.fail(promptsAreComplete, "%s calls its model with %d calls open", a.id, len(after.Calls))
	}
	if after.HookEffects.Sent != nil || len(hooksAt(after, spec.HookContext, "")) > 0 {
		j.sent = nil // hooks may send what they like, this turn
		return
	}
	j.checkPinned(after, e.Request)
	j.checkForcedTool(e.Request)
	if sent := a.shadow.judge.contexts.sent; !maps.Equal(sent, j.layers) || j.isOn(faultContexts) && after.ClosingReason != "" { // the prompt was changed, or is that of an earlier change
		j.layers, j.sent = sent, nil
	}
	head := e.Request.System + "\x00" + e.Request.Dynamic
	if j.sent != nil && j.fold == after.Fold && (head != j.head || !isContinuation(j.sent, e.Request.Messages)) {
		j.fail(promptsAreComplete, "%s sends another beginning than in the turn before, and nothing was compacted", a.id)
	}
	j.sent, j.head, j.fold = e.Request.Messages, head, after.Fold
}

// checkForcedTool checks that a user message since the last reply names the tool that the request forces.
func (j *promptJudge) checkForcedTool(r model.Request) {
	if r.Choice == "" || r.Choice == model.ChoiceAny {
		return
	}
	for _, m := range slices.Backward(r.Messages) {
		switch {
		case m.Role == model.Assistant:
			j.fail(promptsAreComplete, "%s forces %s, and no message says so", j.actor.id, r.Choice)
			return
		case m.Role == model.User && strings.Contains(m.Text, r.Choice):
			return
		}
	}
}

// isContinuation reports whether one prompt begins with another. The last message of the other may
// have been extended.
func isContinuation(old, now []model.Message) bool {
	if len(now) < len(old) {
		return false
	}
	if len(old) > 0 && len(now) > 0 && &old[0] == &now[0] {
		return true
	}
	for i := range old {
		was, is := old[i], now[i]
		if i == len(old)-1 && was.Role == model.User && strings.HasPrefix(is.Text, was.Text) {
			is.Text = was.Text
		}
		if string(canonMessage(nil, &was)) != string(canonMessage(nil, &is)) {
			return false
		}
	}
	return true
}

// summariesMax is how often the summary of one compaction is asked for.
const summariesMax = 2

// checkCompaction counts the steps that keep a prompt within the window: a step
// soon after another is a recovery, and recoveries are limited.
func (j *promptJudge) checkCompaction(before, after *agent.State) {
	a := j.actor
	q := after.Suspended.Question
	asked := q != before.Suspended.Question && strings.Contains(q.Question, "losing context")
	if after.Fold == before.Fold && !asked {
		return
	}
	within := cmp.Or(after.Task.LoopOptions.Context.Within, spec.LadderTurns)
	reactive := after.Transition == spec.ReactiveRetry
	if reactive || j.rungs > 0 && after.Turn-j.rungAt <= within {
		if j.recoveries++; j.recoveries > spec.RecoveriesMax {
			j.fail(compactionIsBounded, "%s recovers its context %d times", a.id, j.recoveries)
		}
	}
	if reactive {
		if j.reactive++; j.reactive > 1 {
			j.fail(compactionIsBounded, "%s compacts %d times because a prompt was too long", a.id, j.reactive)
		}
	}
	j.rungs, j.rungAt = j.rungs+1, after.Turn
	if asked {
		return
	}
	f := after.Fold
	if f.Upto <= before.Fold.Upto && before.Fold.Upto > 0 {
		j.fail(compactionIsBounded, "%s folds %d messages, and %d were folded before", a.id, f.Upto, before.Fold.Upto)
	}
	if before.Purpose == agent.ForTurn && before.Phase == agent.Thinking && after.Phase == agent.Thinking {
		j.fail(compactionIsBounded, "%s folds its prompt while it is being answered", a.id)
	}
}

// checkSummary checks that a summary is requested at most a stated, small number of times.
func (j *promptJudge) checkSummary(e agent.CallModel) {
	if e.Reservation == j.summaryReservation {
		return // a drain came before it began: the ledger checks that it begins once
	}
	j.summaryReservation = e.Reservation
	if j.summaries++; j.summaries > summariesMax {
		j.fail(compactionIsBounded, "%s asks for the same summary %d times", j.actor.id, j.summaries)
	}
	if len(e.Request.Tools) > 0 || len(e.Request.Messages) != 1 {
		j.fail(compactionIsBounded, "%s asks for a summary with %d tools and %d messages", j.actor.id, len(e.Request.Tools), len(e.Request.Messages))
	}
}

// checkPinned checks that the prompt contains what may never leave it: the task, and the
// evidence that the task requires.
func (j *promptJudge) checkPinned(after *agent.State, r model.Request) {
	holds := func(text string) bool {
		return slices.ContainsFunc(r.Messages, func(m model.Message) bool {
			return strings.Contains(m.Text, text) || slices.ContainsFunc(m.Results, func(r model.ToolResult) bool { return strings.Contains(r.Text, text) })
		})
	}
	if !holds(after.Task.Goal) {
		j.fail(promptsAreComplete, "%s sends a prompt without its task", j.actor.id)
	}
	for _, e := range after.Task.LoopOptions.Require.Evidence {
		// The task itself names the word; the result has it between others.
		if e.Contains == proof && hasEvidence(after.History, e) && !holds(" "+proof+" ") {
			j.fail(promptsAreComplete, "%s sends a prompt without the evidence %+v, which it has", j.actor.id, e)
		}
	}
}
