package agent

import "testing"

// A step that changes many calls copies them once, and never those of another state.
func TestCallsAreCopiedOnceForEachCopyOfTheState(t *testing.T) {
	before := State{Calls: make(callList, 64)}
	s := copyOf(&before)
	s = s.withCall(0, Call{Child: "a"})
	first := &s.Calls[0]
	s = s.withCall(63, Call{Child: "b"})
	if &s.Calls[0] != first {
		t.Error("the calls were copied twice in one step")
	}
	if before.Calls[0].Child != "" || before.Calls[63].Child != "" {
		t.Errorf("the state before the step has changed: %v", before.Calls)
	}
	trial := trialCopy(s).withCall(1, Call{Child: "c"})
	s = s.withCall(2, Call{Child: "d"})
	if s.Calls[1].Child != "" || trial.Calls[2].Child != "" || trial.Calls[0].Child != "a" {
		t.Errorf("a trial and its original share calls that were written: %v, %v", trial.Calls, s.Calls)
	}
}
