package supervisor

import (
	"fmt"
	"strings"
)

// RuleReading is what one rule says about facts, and why.
type RuleReading struct {
	Rule  string `json:"rule"`
	Holds bool   `json:"holds"`
	Why   string `json:"why"`
}

// valueShown is how much of a fact an explanation shows.
const valueShown = 60

// Explain asks each rule about a stop or a turn, and says why it holds or does not. Decide follows the first that
// holds.
func (p Policy) Explain(on string, f PolicyFacts) []RuleReading {
	list := make([]RuleReading, len(p.Rules))
	for i, r := range p.Rules {
		list[i] = RuleReading{Rule: r.Name}
		switch {
		case r.On != on:
			list[i].Why = "it is asked at a " + r.On
		case !r.isAbout(f):
			list[i].Why = fmt.Sprintf("it is about the agent %s", r.Agent)
		default:
			list[i].Holds, list[i].Why = r.holds(f), r.explain(f)
		}
	}
	return list
}

// explain names the conditions that hold, or the first of each list that does not, with the facts.
func (r Rule) explain(f PolicyFacts) string {
	if len(r.When) == 0 && len(r.Any) == 0 {
		return "it has no conditions"
	}
	parts := []string{}
	if len(r.When) > 0 {
		parts = append(parts, explainList(r.When, f))
	}
	var either []string
	for _, list := range r.Any {
		if allHold(list, f) {
			either = []string{explainList(list, f)}
			break
		}
		either = append(either, explainList(list, f))
	}
	if len(either) > 0 {
		parts = append(parts, strings.Join(either, ", "))
	}
	return strings.Join(parts, "; ")
}

func explainList(list []Condition, f PolicyFacts) string {
	var all []string
	for _, c := range list {
		value := []rune(c.value(f))
		if len(value) > valueShown {
			value = append(value[:valueShown], '…')
		}
		if !c.holds(f) {
			return fmt.Sprintf("not %s (it is %s)", c, string(value))
		}
		all = append(all, fmt.Sprintf("%s (it is %s)", c, string(value)))
	}
	return strings.Join(all, " and ")
}

// Describe is the condition of a rule as people read it: its expression, or its conditions.
func (r Rule) Describe() string {
	if r.Expression != "" {
		return r.Expression
	}
	var either []string
	for _, list := range r.Any {
		either = append(either, joinConditions(list, " and "))
	}
	text := joinConditions(r.When, " and ")
	if len(either) > 0 {
		text = strings.TrimPrefix(text+" and any of: "+strings.Join(either, "; "), " and any of: ")
	}
	switch {
	case text == "" && r.Means != "":
		return r.Means
	case text == "":
		return "always"
	}
	return text
}

func joinConditions(list []Condition, by string) string {
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = c.String()
	}
	return strings.Join(texts, by)
}
