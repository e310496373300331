package agent

// shellState is what the log shows of the shell: its current activation, and how the one before it ended. Whatever an
// activation that was not released had begun may be lost.
type shellState struct {
	Activation string // the current activation
	Node       string // where it runs
	Whole      bool   // the current activation began with nothing in progress

	Released bool  // the current activation has ended in order: nothing of it is in progress
	Rested   bool  // … because there was nothing to do
	RestDue  int64 // … and when it is to be woken; 0: never
}

// release returns the state after an activation has ended in order.
func (s shellState) release(f Released) shellState {
	s.Released, s.Rested, s.RestDue = true, f.Rests, f.Due
	return s
}

// resume returns the state after the claim of an activation. again: the activation claims the log a second time, after
// it has compared its node with the record.
func (s shellState) resume(f Resumed) (next shellState, again bool) {
	again = f.Looked && f.Activation == s.Activation
	whole := s.Released // the previous activation began nothing that has not ended
	if again {
		whole = s.Whole // this activation has begun nothing since its first Resumed
	}
	return shellState{Activation: f.Activation, Node: f.Node, Whole: whole, RestDue: s.RestDue}, again
}

// wokeInTime reports whether the agent was passivated, and woken when it was due.
func (s shellState) wokeInTime(now int64) bool {
	return s.Rested && s.RestDue != 0 && now <= s.RestDue+restGraceMS
}
