package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/suggest"
	"github.com/troupe-run/troupe/supervisor"
)

// builtIn makes the conditions of a built-in rule, and the reason that the model reads.
type builtIn struct {
	on    string
	takes []string // its parameters
	fill  func(u supervisor.BuiltIn) (any [][]supervisor.Condition, why string, err error)
}

// Defaults of built-in rules.
const (
	budgetPercent = 90
	thrashTimes   = 2
	futileTimes   = 4
)

var builtIns = map[string]builtIn{
	"budget":              {supervisor.OnTurn, []string{"percent"}, fillBudget},
	"deadline":            {supervisor.OnTurn, []string{"after"}, fillDeadline},
	"thrash":              {supervisor.OnTurn, []string{"times"}, fillThrash},
	"diminishing-returns": {supervisor.OnTurn, []string{"times"}, fillDiminishing},
	"required-evidence":   {supervisor.OnStop, []string{"tools"}, fillEvidence},
}

// BuiltIns are the names of the built-in rules.
func BuiltIns() []string {
	return []string{"budget", "deadline", "diminishing-returns", "required-evidence", "thrash"}
}

// fillBuiltIn makes the conditions of a rule that names a built-in one.
func fillBuiltIn(r supervisor.Rule) (supervisor.Rule, error) {
	b, known := builtIns[r.Use.Rule]
	if !known {
		text := fmt.Sprintf("there is no built-in rule %.40q; they are %s", r.Use.Rule, strings.Join(BuiltIns(), ", "))
		if near := suggest.Nearest(r.Use.Rule, BuiltIns()); near != "" {
			text += "; did you mean " + near + "?"
		}
		return r, fmt.Errorf("%s", text)
	}
	if r.On != "" && r.On != b.on {
		return r, fmt.Errorf("%s is a rule on: %s, not %.40q", r.Use.Rule, b.on, r.On)
	}
	if extra := unknownParameter(*r.Use, b.takes); extra != "" {
		return r, fmt.Errorf("%s takes no %s; it takes %s", r.Use.Rule, extra, strings.Join(b.takes, ", "))
	}
	lists, why, err := b.fill(*r.Use)
	if err != nil {
		return r, err
	}
	r.Name, r.On, r.Why, r.Expression = cmp.Or(r.Name, r.Use.Rule), b.on, cmp.Or(r.Why, why), ""
	r.When, r.Any = nil, lists
	if len(lists) == 1 {
		r.When, r.Any = lists[0], nil
	}
	return r, nil
}

func unknownParameter(u supervisor.BuiltIn, takes []string) string {
	given := map[string]bool{"percent": u.Percent != 0, "after": u.AfterMS != 0, "times": u.Times != 0, "tools": len(u.Tools) > 0}
	for _, name := range []string{"percent", "after", "times", "tools"} {
		if given[name] && takes[0] != name {
			return name
		}
	}
	return ""
}

func atLeast(fact string, number float64) []supervisor.Condition {
	return []supervisor.Condition{{Fact: fact, Op: ">=", Number: number}}
}

func fillBudget(u supervisor.BuiltIn) ([][]supervisor.Condition, string, error) {
	p := cmp.Or(u.Percent, budgetPercent)
	if !(p > 0 && p <= 100) {
		return nil, "", fmt.Errorf("percent is %g, it must be above 0 and at most 100", p)
	}
	return [][]supervisor.Condition{atLeast("tokens_percent", p), atLeast("usd_percent", p), atLeast("calls_percent", p)},
		fmt.Sprintf("the run has used %g %% of its budget", p), nil
}

func fillDeadline(u supervisor.BuiltIn) ([][]supervisor.Condition, string, error) {
	if u.AfterMS <= 0 {
		return nil, "", fmt.Errorf("deadline needs after: a duration such as 10m")
	}
	return [][]supervisor.Condition{atLeast("elapsed_ms", float64(u.AfterMS))},
		fmt.Sprintf("the deadline of the run has passed: %s", time.Duration(u.AfterMS)*time.Millisecond), nil
}

func fillThrash(u supervisor.BuiltIn) ([][]supervisor.Condition, string, error) {
	n := cmp.Or(u.Times, thrashTimes)
	if n < 0 {
		return nil, "", fmt.Errorf("times is %d, it must be 1 or more", n)
	}
	return [][]supervisor.Condition{atLeast("loops", float64(n))}, fmt.Sprintf("the agent has gone in circles %d times", n), nil
}

func fillDiminishing(u supervisor.BuiltIn) ([][]supervisor.Condition, string, error) {
	n := cmp.Or(u.Times, futileTimes)
	if n < 0 {
		return nil, "", fmt.Errorf("times is %d, it must be 1 or more", n)
	}
	return [][]supervisor.Condition{atLeast("futile_calls", float64(n))}, fmt.Sprintf("the last %d calls brought nothing new", n), nil
}

func fillEvidence(u supervisor.BuiltIn) (lists [][]supervisor.Condition, why string, err error) {
	if len(u.Tools) == 0 {
		return nil, "", fmt.Errorf("required-evidence needs tools: a list such as [read_file]")
	}
	for _, tool := range u.Tools {
		lists = append(lists, []supervisor.Condition{{Fact: "results", Op: "lacks", Text: tool}})
	}
	return lists, "Before you finish, there must be a successful result of each of: " + strings.Join(u.Tools, ", ") + ".", nil
}
