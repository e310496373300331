package supervisor_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// parsePolicy reads rules, one a line: `NAME on=stop agent=A when=(answer lacks x, turns < 3) any=(loops > 1, usd > 2) why=…`.
// Each condition of any is a list of its own.
func parsePolicy(t *testing.T, d *datadriven.TestData, text string) supervisor.Policy {
	t.Helper()
	p := supervisor.Policy{Version: argNumber(t, d, "version", 1)}
	for _, line := range strings.Split(text, "\n") {
		head, why, _ := strings.Cut(line, " why=")
		name, args, err := datadriven.ParseLine(head)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		if name == "" {
			continue
		}
		in := &datadriven.TestData{Pos: d.Pos, CmdArgs: args}
		r := supervisor.Rule{Name: name, On: argValue(t, in, "on"), Agent: argValue(t, in, "agent"), Why: why}
		when, _ := in.Arg("when")
		for _, text := range when.Vals {
			r.When = append(r.When, parseCondition(t, d, text))
		}
		either, _ := in.Arg("any")
		for _, text := range either.Vals {
			r.Any = append(r.Any, []supervisor.Condition{parseCondition(t, d, text)})
		}
		p.Rules = append(p.Rules, r)
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return p
}

func parseCondition(t *testing.T, d *datadriven.TestData, text string) supervisor.Condition {
	t.Helper()
	w := strings.SplitN(text, " ", 3)
	c := supervisor.Condition{Fact: w[0], Op: w[1], Text: w[2]}
	if !slices.Contains(supervisor.NumberFacts(), c.Fact) {
		return c
	}
	var err error
	if c.Number, err = strconv.ParseFloat(c.Text, 64); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	c.Text = ""
	return c
}

// parseFacts reads what an agent reports for the policy: `loops=N futile=N`.
func parseFacts(t *testing.T, d *datadriven.TestData) *agent.PolicyFacts {
	t.Helper()
	if !d.HasArg("loops") && !d.HasArg("futile") {
		return nil
	}
	return &agent.PolicyFacts{Loops: argNumber(t, d, "loops", 0), FutileCalls: argNumber(t, d, "futile", 0)}
}

// printOrigin names what decided.
func printOrigin(by *agent.VerdictOrigin) string {
	if by == nil {
		return ""
	}
	return fmt.Sprintf(" by=%d/%s", by.Version, by.Rule)
}
