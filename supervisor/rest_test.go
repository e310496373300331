package supervisor_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// A supervisor stays until every member has given a sign of life, for its timers
// begin anew with each activation; then it waits only for messages, until the run is
// over (P19).
func TestSupervisorPassivatesAfterEveryMemberReported(t *testing.T) {
	var s supervisor.State
	step := func(from spec.ID, f supervisor.Fact) {
		s, _ = supervisor.Step(s, supervisor.Input{From: from, Fact: f})
	}
	rests := func(when string, want bool) {
		t.Helper()
		if _, got := s.Rests(); got != want {
			t.Errorf("%s: rests %t", when, got)
		}
	}
	rests("before it is opened", true)
	step("", supervisor.Opened{Run: "r", Goal: "do it", Root: "lead", Definitions: []supervisor.Definition{{Name: "lead"}}})
	rests("before its root is heard of", false)
	step(spec.Root, agent.ReportLog{Activation: "a"})
	rests("after it", true)
	step(spec.Root, agent.Finish{Outcome: spec.Outcome{Reason: spec.Completed}})
	rests("when it is over", false)
}
