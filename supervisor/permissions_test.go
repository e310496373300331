package supervisor

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// A rule that a person adds for the run reaches every other live agent, once, and later children.
func TestARuleOfAPersonReachesAllAgents(t *testing.T) {
	t.Parallel()
	s := State{Phase: Live}
	for _, id := range []spec.ID{spec.Root, "root-1-0"} {
		s = s.put(Member{ID: id})
	}
	rule := agent.AllowRule{Rule: spec.PermissionRule{Text: "shell(make)"}}
	s, fx := handleAllowRule(s, "root-1-0", rule)
	if len(fx) != 1 || fx[0].(Tell).To != spec.Root || len(s.AddedRules) != 1 {
		t.Errorf("%+v %+v", fx, s.AddedRules)
	}
	if s, fx = handleAllowRule(s, spec.Root, rule); len(fx) != 0 || len(s.AddedRules) != 1 {
		t.Errorf("the same rule twice: %+v %+v", fx, s.AddedRules)
	}
}
