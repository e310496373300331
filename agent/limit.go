package agent

import "github.com/troupe-run/troupe/agent/spec"

// reachedLimit returns the limit that the agent has used up, and the transition to its
// closing turn.
func (s State) reachedLimit() (spec.Reason, spec.Transition) {
	switch {
	case s.Soft:
		return spec.Timeout, spec.SoftLimit
	case usedUpCalls(s):
		return spec.MaxToolCalls, spec.ClosingTurn
	case s.Turn >= s.Task.Limits.Turns: //mutant:turn-limit
		return spec.MaxTurns, spec.ClosingTurn
	}
	return "", ""
}

// usedUpCalls reports whether the agent's own limit of tool calls is used up: the next turn is the closing one.
func usedUpCalls(s State) bool {
	return s.Task.Limits.Calls > 0 && s.ToolCalls >= s.Task.Limits.Calls
}
