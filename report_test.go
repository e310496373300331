package troupe_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/client/report"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

var errNoName = errors.New("nobody is named")

// The report of a run has a step for each reply of each agent, with its calls and what their tools reported, and its
// sums are the figures of the result.
//
//behaviour:shows K3
//behaviour:shows C6
func TestReportIsTheSumOfItsSteps(t *testing.T) {
	count := tool.Func("count", "Counts letters.", model.Read, func(ctx context.Context, a greetArgs) (string, error) {
		c := tool.CallOf(ctx)
		c.Metric("letters", float64(len(a.Name)))
		c.Metric("cost.usd", 0.25)
		if a.Name == "" {
			return "", errNoName
		}
		return a.Name, nil
	})
	n := startScripted(t, `
agents:
  host:
    - {text: look, calls: [{name: count, args: {name: Ann}}, {name: count, args: {name: ""}}], usage: {input_tokens: 100, output_tokens: 20}}
    - {calls: [{name: delegate, args: {agent: guest, task: go}}, {name: nonsense, args: {}}], usage: {input_tokens: 200, output_tokens: 10}}
    - {text: done, usage: {input_tokens: 300, output_tokens: 5}}
  guest: [{calls: [{name: count, args: {name: Bob}}], usage: {input_tokens: 50, output_tokens: 7}}, {text: "{{last}}", usage: {input_tokens: 60, output_tokens: 8}}]
`, troupe.Config{Tools: []tool.Tool{count}, Agents: namedAgents("host", "guest")})
	result, err := n.Run(testContext(t), troupe.Task{Prompt: "count"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Read(testContext(t), n.Client(), result.Run)
	if err != nil {
		t.Fatal(err)
	}
	compareWithResult(t, r, result)
	var sum report.Totals
	for _, a := range r.Agents {
		sum.Steps, sum.ModelMS, sum.ToolMS, sum.Usage = sum.Steps+a.Steps, sum.ModelMS+a.ModelMS, sum.ToolMS+a.ToolMS, sum.Usage.Add(a.Usage)
	}
	if sum.Steps != r.Totals.Steps || sum.ModelMS != r.ModelMS || sum.ToolMS != r.ToolMS || sum.Usage != r.Usage {
		t.Errorf("the agents sum up to %+v, the run has %+v", sum, r.Totals)
	}
	first := r.Steps[0]
	if first.Finish != model.StopTools || first.Model != "script/test" || first.Usage.Prompt() == 0 || len(first.Calls) != 2 || len(first.Attempts) != 1 {
		t.Fatalf("%+v", first)
	}
	ann, empty := first.Calls[0], first.Calls[1]
	if d := cmp.Diff(map[string]float64{"letters": 3, "cost.usd": 0.25}, ann.Metrics); d != "" || ann.ResultBytes != 3 || ann.Error != "" || !ann.Ended || ann.Skipped || !strings.Contains(ann.Arguments, "Ann") {
		t.Errorf("%+v %s", ann, d)
	}
	if !strings.Contains(empty.Error, errNoName.Error()) || empty.Metrics["letters"] != 0 || empty.Skipped {
		t.Errorf("%+v", empty)
	}
	for _, s := range r.Steps {
		for _, c := range s.Calls {
			if c.Tool == "nonsense" && (!c.Skipped || c.Error == "" || c.Attempts != 0) || c.Tool == "delegate" && (c.Child == "" || c.LatencyMS < 0) {
				t.Errorf("%+v", c)
			}
		}
	}
}

// compareWithResult compares the sums of a report with the figures that the supervisor has settled.
func compareWithResult(t *testing.T, r report.Report, result troupe.Result) {
	t.Helper()
	if !r.Ended || r.Reason != result.Reason || r.Steps == nil || r.Totals.Steps != result.Turns {
		t.Errorf("ended=%t %s after %d steps; the result: %s after %d", r.Ended, r.Reason, r.Totals.Steps, result.Reason, result.Turns)
	}
	if r.Usage != result.Usage || r.ModelMS != result.ModelMS || r.ToolMS != result.ToolMS || r.CostKnown != result.CostKnown || r.CostKnown && math.Abs(*r.CostUSD-result.CostUSD) > 1e-9 {
		t.Errorf("the report has %+v; the result %+v, model %d ms, tools %d ms, $%g", r.Totals, result.Usage, result.ModelMS, result.ToolMS, result.CostUSD)
	}
	calls := 0
	for i, a := range result.Agents {
		calls += a.Calls
		if got := r.Agents[i]; got.ID != string(a.ID) || got.Usage != a.Usage || got.ModelMS != a.ModelMS || got.ToolMS != a.ToolMS || got.Totals.Steps != a.Turns {
			t.Errorf("%+v: the result has %+v", got, a)
		}
	}
	if r.Calls != calls {
		t.Errorf("%d calls began; the result has %d", r.Calls, calls)
	}
}
