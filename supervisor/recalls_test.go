package supervisor_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// TestAllowanceRecallsAreBatched: one step recalls at most 32 allowances (P24), and the others need no answer to those:
// whatever the supervisor hears next recalls the next 32, also if none of the first holders ever returns.
// Nobody is asked twice.
func TestAllowanceRecallsAreBatched(t *testing.T) {
	const members, atOnce = 80, 32
	s := crowdedRun(t, members, 0)
	for i := range members {
		s, _ = stepAll(s, aheadEvent(memberID(i), 1), settleEvent(memberID(i), 1))
	}
	recalled := map[spec.ID]int{}
	recall := func(e supervisor.Input, want int) {
		t.Helper()
		n := 0
		var fx []supervisor.Effect
		s, fx = stepAll(s, e)
		for _, effect := range fx {
			if tell, ok := effect.(supervisor.Tell); ok && tell.Fact == (agent.AllowanceRecalled{Grant: 1}) {
				n++
				recalled[tell.To]++
			}
		}
		if n != want {
			t.Errorf("%s recalls %d allowances, want %d", e.Fact.Kind(), n, want)
		}
	}
	recall(supervisor.Input{Fact: supervisor.LimitSet{Freeze: true}}, atOnce)
	recall(settleAheadEvent(memberID(0), 300), atOnce)
	recall(supervisor.Input{From: memberID(1), Fact: agent.ReturnAllowance{Grant: 1, Reservation: 1}}, members-2*atOnce)
	recall(settleAheadEvent(memberID(members-1), 300), 0)
	for i := range members {
		if n := recalled[memberID(i)]; n != 1 {
			t.Errorf("%s is asked %d times for its allowance", memberID(i), n)
		}
	}
}
