package agent

import "github.com/troupe-run/troupe/agent/spec"

// reachedLimit returns the limit that the agent has used up, and the transition to its
// closing turn.
func (s *State) reachedLimit() (spec.Reason, spec.Transition) {
	switch {
	case s.Soft:
		return spec.Timeout, spec.SoftLimit
	case s.usedUpCalls(&s.Task.Limits):
		return spec.MaxToolCalls, spec.ClosingTurn
	case s.usedUpTurns(&s.Task.Limits): //mutant:turn-limit
		return spec.MaxTurns, spec.ClosingTurn
	}
	return "", ""
}
