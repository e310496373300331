package agent

// spent is the limit of the agent that is used up, and what its closing turn is
// called.
func (s State) spent() (Reason, Transition) {
	switch {
	case s.Soft:
		return Timeout, SoftLimit
	case s.CallsOut:
		return MaxToolCalls, ClosingTurn
	case s.Turn >= s.Task.Limits.Turns: //mutant:turn-limit
		return MaxTurns, ClosingTurn
	}
	return "", ""
}
