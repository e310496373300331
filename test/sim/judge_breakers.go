package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// breakerJudge counts failures and forbidden proposals, which end in an escalation.
type breakerJudge struct {
	*watchedAgent
	forbidden int            // replies in a row with a forbidden proposal
	fails     map[string]int // of a tool on a target, in a row
	halted    string         // the tool whose calls of this turn do not run
}

// checkForced checks that the next reply carries out what loop detection decided: a tool
// is halted, or a person is asked.
func (j *breakerJudge) checkForced(before, after *agent.State) {
	a := j.actor
	j.halted = before.LoopDetection.BlockedTool
	if !before.LoopDetection.Forced || before.ClosingReason != "" || after.Phase == agent.Done || after.Phase == agent.Waiting || after.Phase == agent.Hooking {
		return
	}
	asks := slices.ContainsFunc(after.Calls, func(c agent.Call) bool { return c.Name == "ask_human" && c.Stage != agent.Ended })
	if !asks && !isAtLimit(before, after) {
		j.fail(breakersStop, "%s was to ask a person, and is %s", a.id, after.Phase)
	}
}

// checkForbidden checks that an agent that repeatedly proposes a forbidden tool is ended.
func (j *breakerJudge) checkForbidden(before, after *agent.State, calls []model.ToolCall) {
	limit := before.Task.LoopOptions.Breaker.Forbidden
	if limit == 0 || before.Cancel != nil || before.ClosingReason != "" || len(hooksAt(before, spec.HookOutput, "")) > 0 || len(calls) == 0 {
		return
	}
	barred := slices.ContainsFunc(calls, func(c model.ToolCall) bool { return slices.Contains(before.Task.Forbidden, c.Name) })
	known := slices.ContainsFunc(calls, func(c model.ToolCall) bool { return isOffered(before, c.Name) })
	switch {
	case barred:
		j.forbidden++
	case known:
		j.forbidden = 0
	}
	if barred && j.forbidden >= limit && (after.Phase != agent.Done || after.Outcome.Reason != spec.Refused) && before.Useless+1 < before.Task.Limits.Malformed {
		j.fail(breakersStop, "%s has proposed forbidden tools in %d replies in a row, and is %s (%s)", j.actor.id, j.forbidden, after.Phase, after.Outcome.Reason)
	}
}

func isOffered(st *agent.State, tool string) bool {
	return slices.ContainsFunc(st.Task.Tools, func(t model.ToolSpec) bool { return t.Name == tool }) && !slices.Contains(st.Task.Forbidden, tool)
}

// isAtLimit reports whether the agent has used up one of its own limits, so that its closing turn follows.
func isAtLimit(before, after *agent.State) bool {
	l := before.Task.Limits
	return before.Soft || l.Calls > 0 && before.ToolCalls >= l.Calls || after.Turn >= l.Turns
}

// checkFailing checks that a tool that fails repeatedly on one target escalates,
// unless a limit ends the loop now.
func (j *breakerJudge) checkFailing(before, after *agent.State, results []model.ToolResult) {
	limit := before.Task.LoopOptions.Breaker.Failures
	if limit == 0 || before.Cancel != nil || after.Cancel != nil || len(results) != len(before.Calls) {
		return
	}
	tripped := ""
	for i, c := range before.Calls {
		switch {
		case c.Attempt == 0 && c.Child == "": // it never ran
		case !results[i].Error:
			clear(j.fails)
		case c.Child == "":
			key := c.Name + " " + c.Args
			if j.fails[key]++; j.fails[key] >= limit {
				tripped = key
			}
		}
	}
	if tripped != "" && j.fails[tripped] >= limit && !isAtLimit(before, after) && after.Phase != agent.Waiting && after.Phase != agent.Done {
		j.fail(breakersStop, "%s has failed %d times in a row on %q, and goes on", j.actor.id, j.fails[tripped], tripped)
	}
}
