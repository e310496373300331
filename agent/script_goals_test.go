package agent_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// parseGoals reads what a script's task says of other models, retries and goals:
// `fallback=(NAME[:PRICE], …)` with a price of an input token, `tool-retries=N`,
// `use=TOKENS small=N rounds=N percent=N`, `evidence=(TOOL[:TEXT], …)`, `answer=SCHEMA`
// (person, broken), `tries=N`.
func parseGoals(t *testing.T, d *datadriven.TestData, task *spec.Task) {
	t.Helper()
	m := &task.LoopOptions
	if arg, ok := d.Arg("fallback"); ok {
		for _, v := range arg.Vals {
			name, price, known := strings.Cut(v, ":")
			route := spec.Model{Name: "script/" + name}
			if known {
				n, err := strconv.ParseInt(price, 10, 64)
				if err != nil {
					t.Fatalf("%s: fallback: %v", d.Pos, err)
				}
				route.Price, route.Output = budget.Price{Known: true, Input: n, Output: n}, 1000
			}
			m.Fallbacks = append(m.Fallbacks, route)
		}
	}
	m.ToolRetries = argumentNumber(t, d, "tool-retries", 0)
	m.Continue = spec.Continue{Tokens: int64(argumentNumber(t, d, "use", 0)), Percent: argumentNumber(t, d, "percent", 0),
		Small: int64(argumentNumber(t, d, "small", 0)), Rounds: argumentNumber(t, d, "rounds", 0)}
	if arg, ok := d.Arg("evidence"); ok {
		for _, v := range arg.Vals {
			name, text, _ := strings.Cut(v, ":")
			m.Require.Evidence = append(m.Require.Evidence, spec.Evidence{Tool: name, Contains: text})
		}
	}
	m.Require.Schema = answers[argumentValue(t, d, "answer")]
	m.Require.Tries = argumentNumber(t, d, "tries", 0)
}

// answers are schemas of answers.
var answers = map[string]string{
	"person": `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"]}`,
	"broken": `{"type":`,
}

// printModel says which model a request goes to, unless it is the first.
func printModel(name string) string {
	if name == "script/one" {
		return ""
	}
	return " model=" + name
}

// printAsk says what an AttemptRequest is for, where the model in use has a price.
func printAsk(k budget.AttemptRequest) string {
	if !k.Price.Known {
		return ""
	}
	return " price=" + strconv.FormatInt(k.Price.Input, 10)
}
