package troupe_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

// A program's task brings its policy, with expressions and built-in rules, and a rule that cannot be read is refused.
//
//behaviour:shows G2
func TestPolicyOfATaskVetoesAStop(t *testing.T) {
	replies, err := script.Parse([]byte("repeat: true\ndefault: [{text: Done.}, {text: Done. See report.md.}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := troupe.Start(testContext(t), troupe.Config{Agents: namedAgents("boss"), Models: map[string]model.Client{"own/model": replies.Client("")}, Model: "own/model",
		Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	rules := []supervisor.Rule{{Name: "cite", On: supervisor.OnStop, Expression: `!contains(answer, "report.md")`, Why: "Say where the report is."},
		{Use: &supervisor.BuiltIn{Rule: "budget"}}}
	result, err := n.Run(testContext(t), troupe.Task{Prompt: "work", Policy: &supervisor.Policy{Rules: rules}})
	if err != nil || result.Turns != 2 || !strings.Contains(result.Text, "report.md") {
		t.Errorf("%+v, %v", result, err)
	}
	rules[0].Expression = "tokns > 3"
	if _, err := n.Run(testContext(t), troupe.Task{Prompt: "work", Policy: &supervisor.Policy{Rules: rules}}); err == nil || !strings.Contains(err.Error(), "did you mean tokens?") {
		t.Errorf("a rule that cannot be read: %v", err)
	}
}
