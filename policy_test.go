package troupe_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/troupetest"
)

// A program's task brings its policy, with expressions and built-in rules, and a rule that cannot be read is refused.
//
//behaviour:shows G2
func TestPolicyOfATaskVetoesAStop(t *testing.T) {
	n := troupetest.Start(t, troupe.Config{Agents: namedAgents("boss")}, "repeat: true\ndefault: [{text: Done.}, {text: Done. See report.md.}]\n")
	rules := []supervisor.Rule{{Name: "cite", On: supervisor.OnStop, Expression: `!contains(answer, "report.md")`, Why: "Say where the report is."},
		{Use: &supervisor.BuiltIn{Rule: "budget"}}}
	tr := n.Run(troupe.Task{Prompt: "work", Policy: &supervisor.Policy{Rules: rules}})
	tr.AssertCompleted("report.md")
	tr.AssertOrder(event.KindStopProposed, event.KindStopVetoed, event.KindStopProposed, event.KindStopAllowed)
	if tr.Result.Turns != 2 {
		t.Errorf("%d turns", tr.Result.Turns)
	}
	rules[0].Expression = "tokns > 3"
	if err := n.Run(troupe.Task{Prompt: "work", Policy: &supervisor.Policy{Rules: rules}}).Err; err == nil || !strings.Contains(err.Error(), "did you mean tokens?") {
		t.Errorf("a rule that cannot be read: %v", err)
	}
}
