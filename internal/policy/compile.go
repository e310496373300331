// Package policy makes the rules of a stop-veto policy from what people write: files in YAML or JSON, expressions, and
// the names of built-in rules. The supervisor, which decides by the rules, reads conditions only: they are in the
// log, so that a later release, whose expressions or built-in rules may differ, replays the same verdicts.
package policy

import (
	"fmt"

	"github.com/troupe-run/troupe/supervisor"
)

// versionMax is the highest version that a person may give: each later change of a live policy needs a higher one,
// which the log must still take.
const versionMax = 1_000_000_000

// Compile makes the conditions of the rules that are written as expressions, or name a built-in rule, and checks the
// policy. The version of a policy with rules is at least 1.
func Compile(p supervisor.Policy) (supervisor.Policy, error) {
	if len(p.Rules) > supervisor.RulesMax {
		return p, fmt.Errorf("%w: it has %d rules, at most %d are allowed", supervisor.ErrPolicy, len(p.Rules), supervisor.RulesMax)
	}
	if p.Version > versionMax {
		return p, fmt.Errorf("%w: version is %d, at most %d is allowed; leave it out, and the policy gets the next one", supervisor.ErrPolicy, p.Version, versionMax)
	}
	if len(p.Rules) == 0 {
		return p, p.Validate()
	}
	rules := make([]supervisor.Rule, len(p.Rules))
	names := map[string]bool{}
	for i, r := range p.Rules {
		r, err := compileRule(r)
		if r.Name == "" { // verdicts say which rule decided
			r.Name = fmt.Sprintf("rule-%d", i+1)
		}
		if err == nil && r.Name != "" && names[r.Name] {
			err = fmt.Errorf("another rule has the same name")
		}
		if err == nil {
			err = r.Validate()
		}
		if err != nil {
			return p, &RuleError{Index: i, Name: r.Name, Err: err}
		}
		names[r.Name] = true
		rules[i] = r
	}
	if p.Rules = rules; len(rules) > 0 {
		p.Version = max(1, p.Version)
	}
	return p, p.Validate()
}

// RuleError says which rule of a policy cannot be applied.
type RuleError struct {
	Index int
	Name  string
	Err   error
}

func (e *RuleError) Error() string {
	name := fmt.Sprintf("number %d", e.Index+1)
	if e.Name != "" {
		name = fmt.Sprintf("%.80q", e.Name)
	}
	return fmt.Sprintf("policy: rule %s: %v", name, reasonOf(e.Err))
}

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

func compileRule(r supervisor.Rule) (supervisor.Rule, error) {
	switch {
	case r.Use != nil:
		return fillBuiltIn(r)
	case r.Expression != "":
		lists, err := parseExpression(r.Expression)
		if err != nil {
			return r, err
		}
		r.When, r.Any = nil, lists
		if len(lists) == 1 {
			r.When, r.Any = lists[0], nil
		}
	}
	return r, nil
}
