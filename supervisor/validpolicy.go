package supervisor

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Maximum sizes of a policy: they bound the cost of a decision, whichever user wrote the rules.
const (
	RulesMax       = 64
	ConditionsMax  = 64      // of one rule
	RuleTextMax    = 1 << 10 // bytes of a name, a reason, a text of a condition
	patternCostMax = 4000    // of all patterns of a policy: about their characters, with repetitions multiplied out
)

// ErrPolicy is wrapped by every error about a policy.
var ErrPolicy = errors.New("policy")

// Validate reports the first thing in a policy that cannot be applied.
func (p Policy) Validate() error {
	if len(p.Rules) > RulesMax {
		return fmt.Errorf("%w: it has %d rules, at most %d are allowed", ErrPolicy, len(p.Rules), RulesMax)
	}
	if p.Version < 0 || p.Version > math.MaxInt32 {
		return fmt.Errorf("%w: version is %d, it must be 0 to %d", ErrPolicy, p.Version, math.MaxInt32)
	}
	cost := 0
	for i, r := range p.Rules {
		if err := r.validate(&cost); err != nil {
			return fmt.Errorf("%w: rule %s: %w", ErrPolicy, ruleLabel(r, i), err)
		}
	}
	return nil
}

// ruleLabel names a rule in messages.
func ruleLabel(r Rule, i int) string {
	if r.Name == "" {
		return fmt.Sprintf("number %d", i+1)
	}
	return fmt.Sprintf("%.80q", r.Name)
}

// Validate reports the first thing in a rule that cannot be applied.
func (r Rule) Validate() error {
	cost := 0
	return r.validate(&cost)
}

func (r Rule) validate(cost *int) error {
	if r.On != OnStop && r.On != OnTurn {
		return fmt.Errorf("on is %.40q, it must be \"stop\" or \"turn\"", r.On)
	}
	if strings.TrimSpace(r.Why) == "" {
		return errors.New("why is empty, the model needs a reason")
	}
	for _, t := range []struct{ what, text string }{{"name", r.Name}, {"agent", r.Agent}, {"why", r.Why}, {"the expression", r.Expression}} {
		if err := checkRuleText(t.what, t.text); err != nil {
			return err
		}
	}
	conditions := slices.Concat(append([][]Condition{r.When}, r.Any...)...)
	if len(conditions) > ConditionsMax || len(r.Any) > ConditionsMax {
		return fmt.Errorf("it has %d conditions, at most %d are allowed: use several rules", len(conditions), ConditionsMax)
	}
	if (r.Expression != "" || r.Use != nil) && len(conditions) == 0 {
		return errors.New("the rule's expression was not compiled (a bug, or a hand-written log)")
	}
	for _, c := range conditions {
		if err := c.validate(r.On, cost); err != nil {
			return err
		}
	}
	return nil
}

func checkRuleText(what, text string) error {
	switch {
	case len(text) > RuleTextMax:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", what, len(text), RuleTextMax)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s is not valid UTF-8", what)
	}
	return nil
}

func (c Condition) validate(on string, cost *int) error {
	ops := operatorsOf(c.Fact)
	if ops == nil {
		return fmt.Errorf("unknown fact %.40q; the facts are %s", c.Fact, strings.Join(slices.Concat(TextFacts(), []string{resultsFact}, NumberFacts()), ", "))
	}
	if !slices.Contains(ops, c.Op) {
		return fmt.Errorf("op %.40q does not fit %s; use %s", c.Op, c.Fact, strings.Join(ops, ", "))
	}
	if on == OnTurn && (c.Fact == "answer" || c.Fact == resultsFact) {
		return fmt.Errorf("there is no %s before a turn: a rule about it is on: stop", c.Fact)
	}
	if math.IsNaN(c.Number) || math.IsInf(c.Number, 0) {
		return fmt.Errorf("%s is compared with a number that is not finite", c.Fact)
	}
	if err := checkRuleText("the text for "+c.Fact, c.Text); err != nil {
		return err
	}
	if c.Op != "matches" && c.Op != "differs" {
		return nil
	}
	re, err := syntax.Parse(c.Text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("%.80q is no RE2 pattern: %w", c.Text, err)
	}
	if *cost += patternCost(re); *cost > patternCostMax {
		return fmt.Errorf("the pattern %.80q is too large: repetitions multiplied out, the patterns of a policy may have %d characters", c.Text, patternCostMax)
	}
	_, err = regexp.Compile(c.Text)
	return err
}

// PatternCost is what the patterns of rules count of patternCostMax, and a decision takes time by it.
func PatternCost(rules []Rule) (cost int) {
	for _, r := range rules {
		for _, c := range slices.Concat(append([][]Condition{r.When}, r.Any...)...) {
			if c.Op != "matches" && c.Op != "differs" {
				continue
			}
			if re, err := syntax.Parse(c.Text, syntax.Perl); err == nil {
				cost = min(cost+patternCost(re), patternCostMax+1)
			}
		}
	}
	return cost
}

// patternCost is about the size of a compiled pattern, which must not be built to learn it.
func patternCost(re *syntax.Regexp) int {
	cost := 1
	switch re.Op {
	case syntax.OpLiteral:
		cost = len(re.Rune)
	case syntax.OpCharClass:
		cost = 1 + len(re.Rune)/64
	}
	for _, sub := range re.Sub {
		cost = min(cost+patternCost(sub), patternCostMax+1)
	}
	if re.Op == syntax.OpRepeat {
		cost = min(cost*max(1, re.Min, re.Max), patternCostMax+1)
	}
	return cost
}
