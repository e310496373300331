package supervisor

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// An answer may be in the log of a member that has not told yet: a new activation waits for it.
func TestNewActivationWaitsBeforeItEndsAParkedRun(t *testing.T) {
	for due, want := range map[int64]int64{5: 100 + parkGraceMS, 100 + 2*parkGraceMS: 100 + 2*parkGraceMS} {
		fx := armParkClock(State{Now: 100, ParkDue: due}, nil)
		if arm := fx[0].(Arm); len(fx) != 1 || arm.Due != want {
			t.Errorf("a clock that is over at %d fires at %d, want %d", due, arm.Due, want)
		}
	}
	if fx := armParkClock(State{Now: 100}, nil); fx != nil {
		t.Errorf("a run that is not parked has a clock: %v", fx)
	}
}

// A member without a question and without a child at work is about to begin or to go on, or runs a tool: no reservation
// is open for that, and the run does not wait for people alone.
func TestRunWithAMemberAtWorkIsNotParked(t *testing.T) {
	asks := &agent.Park{Query: "1-0.0"}
	s := State{Parked: 1}.put(Member{ID: spec.Root, Children: 1}).put(Member{ID: "root-1-0", Parent: spec.Root, Query: asks})
	if !s.IsParked() {
		t.Error("the child asks, and the root waits for it")
	}
	second := Member{ID: "root-1-1", Parent: spec.Root}
	s = s.put(second)
	if s.IsParked() {
		t.Error("the second child works")
	}
	second.Node = "n2" // written again, it still counts once
	for name, m := range map[string]Member{
		"has ended":         {ID: "root-1-1", Parent: spec.Root, Done: true},
		"asks":              {ID: "root-1-1", Parent: spec.Root, Query: asks},
		"waits for another": {ID: "root-1-1", Parent: spec.Root, Children: 1},
	} {
		if !s.put(second).put(m).IsParked() {
			t.Errorf("the second child %s", name)
		}
	}
}

// Clients learn the end of a parked run as the clock has it, and anew when the clock starts anew.
func TestSummaryHasTheEndOfAParkedRun(t *testing.T) {
	s := State{ParkDue: 70}
	if got := s.Summary(false).ParkDueMS; got != 70 {
		t.Errorf("the run ends at %d, want 70", got)
	}
	later := s
	later.ParkDue = 90
	if s.SummaryKey() == later.SummaryKey() {
		t.Error("a later end is not published")
	}
}
