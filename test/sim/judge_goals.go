package sim

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// goalJudge counts how often an agent is sent back to work, and checks what a completion claims.
type goalJudge struct {
	*watchedAgent
	calls    *callJudge
	blocks   int   // stops sent back by hooks since the last proposal
	unmet    int   // completions sent back by the loop
	nudges   int   // to use up a budget
	nudgedAt int64 // output tokens at the last of them
	small    int   // in a row that brought little
	handoffs *handoffJudge
}

// countTurn counts the reasons that start another turn of the loop.
func (j *goalJudge) countTurn(before, after *agent.State) {
	ahead := after.Phase == agent.Thinking && after.Reservation > before.Reservation
	again := ahead || after.Phase == agent.Reserving || after.Phase == agent.Hooking && after.Gate.Point != spec.HookOutput
	was := before.Phase == agent.Reserving || before.Phase == agent.Hooking && before.Gate.Point != spec.HookOutput
	if !again || was {
		return
	}
	switch after.Transition {
	case spec.StopHookBlocking:
		if j.blocks++; j.blocks > spec.VetoesMax {
			j.fail(loopLimitsHold, "%s is sent back %d times in a row by hooks", j.actor.id, j.blocks)
		}
	case spec.CriteriaUnmet:
		most := cmp.Or(after.Task.LoopOptions.Require.Tries, spec.RequireTries)
		if after.Task.LoopOptions.Obstacles {
			most += obstacleAsksMax
		}
		if j.unmet++; j.unmet > most {
			j.fail(loopLimitsHold, "%s is sent back %d times for what is missing", j.actor.id, j.unmet)
		}
	case spec.BudgetNudge:
		j.checkNudge(after)
	}
}

// checkNudge checks that the loop uses up a budget only while that produces output.
func (j *goalJudge) checkNudge(after *agent.State) {
	c := after.Task.LoopOptions.Continue
	used := after.Usage.Output
	if small := used-j.nudgedAt < cmp.Or(c.Small, spec.ContinueSmall); j.nudges > 0 && small {
		j.small++
	} else {
		j.small = 0
	}
	if j.nudges++; j.small >= cmp.Or(c.Rounds, spec.ContinueRounds) {
		j.fail(loopLimitsHold, "%s goes on after %d continuations that brought little", j.actor.id, j.small)
	}
	if most := c.Tokens * int64(cmp.Or(c.Percent, spec.ContinuePercent)) / 100; used > most {
		j.fail(loopLimitsHold, "%s goes on, and %d of %d tokens are used", j.actor.id, used, c.Tokens)
	}
	j.nudgedAt = used
}

// checkEnd checks that the record contains what a result claims, and that no work is left behind.
func (j *goalJudge) checkEnd(after *agent.State) {
	a, o := j.actor, after.Outcome
	for _, text := range j.calls.withheld {
		if strings.Contains(o.Text, text) || strings.Contains(o.Detail, text) {
			j.fail(guardrailsHold, "%s ends with what a guardrail did not pass: %q", a.id, text)
		}
	}
	for id := range j.calls.open {
		j.fail(hooksDecide, "%s ends, and the hooks of %s are left to themselves", a.id, id)
	}
	if o.Reason != spec.Completed {
		return
	}
	r := after.Task.LoopOptions.Require
	for _, e := range r.Evidence {
		if !hasEvidence(after.History, e) && !hasEvidence(j.handoffs.laterHistory(), e) {
			j.fail(completedMeansDone, "%s is completed without the evidence %+v", a.id, e)
		}
	}
	var v any
	fits := json.Unmarshal([]byte(o.Text), &v) == nil
	switch {
	case r.Schema == "":
	case strings.Contains(r.Schema, "object"):
		m, ok := v.(map[string]any)
		fits = fits && ok && m["answer"] != nil
	default:
		_, ok := v.(string)
		fits = fits && ok
	}
	if text := deniedAndLeft(after.History[min(after.Recalled, len(after.History)):]); after.Task.LoopOptions.Obstacles && text != "" && j.handoffs.call == "" {
		j.fail(completedMeansDone, "%s is completed although %s was denied, and does not say that its task is done", a.id, text)
	}
	if r.Schema != "" && !fits {
		j.fail(completedMeansDone, "%s is completed with %q, which does not fit %s", a.id, o.Text, r.Schema)
	}
}

// hasEvidence reports whether the history has a successful result of that tool that contains that text.
func hasEvidence(history []model.Message, e spec.Evidence) bool {
	for i, m := range history {
		for k, r := range m.Results {
			if i > 0 && k < len(history[i-1].Calls) && history[i-1].Calls[k].Name == e.Tool && !r.Error && strings.Contains(r.Text, e.Contains) {
				return true
			}
		}
	}
	return false
}

const (
	doneMark        = "[done]" // ends the answer of an agent whose task is done although calls were denied
	obstacleAsksMax = 2        // how often the loop asks whether the task is done
)

// deniedAndLeft returns a call that a rule denied and that has not succeeded since, if the last answer does not say
// that the task is done anyway. history begins with the agent's own task.
func deniedAndLeft(history []model.Message) string {
	denied := map[string]bool{}
	for i, m := range history {
		if m.Role == model.Assistant && !m.Tombstone && len(m.Calls) == 0 && strings.HasPrefix(m.Text, doneMark) {
			clear(denied) // a hook may send the agent back after that: its next answer need not say it again
		}
		for k, r := range m.Results {
			if i == 0 || k >= len(history[i-1].Calls) {
				continue
			}
			c := history[i-1].Calls[k]
			if strings.HasPrefix(r.Text, "never started: denied: the rule ") {
				denied[c.Name+" "+c.Args] = true
			} else if !r.Error {
				delete(denied, c.Name+" "+c.Args)
			}
		}
	}
	for call := range denied {
		return call
	}
	return ""
}
