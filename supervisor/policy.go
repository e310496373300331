package supervisor

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Policy is the stop-veto policy of a run, as data: it is in the run's log, so
// a replay gives the same verdicts, and it can be replaced while the run lives.
type Policy struct {
	Version int    `msgpack:"v,omitempty" json:"version"`
	Rules   []Rule `msgpack:"r,omitempty" json:"rules"`
}

// Rule objects to a proposed stop (On "stop"), or to another turn (On "turn"),
// when all its conditions hold.
type Rule struct {
	Name  string      `msgpack:"n" json:"name"`
	On    string      `msgpack:"o" json:"on"`
	Agent string      `msgpack:"a,omitempty" json:"agent,omitempty"` // id or definition; "" is every agent
	When  []Condition `msgpack:"w,omitempty" json:"when,omitempty"`
	Why   string      `msgpack:"y" json:"why"` // the reason that the model reads
}

// Condition compares one fact of the run.
//
// Facts: answer (the proposed text), turns, calls (of the agent), tokens, usd
// (spent by the run), agents, elapsed_ms. Operators: contains, lacks, matches
// for answer; <, <=, >, >=, = for numbers.
type Condition struct {
	Fact   string  `msgpack:"f" json:"fact"`
	Op     string  `msgpack:"o" json:"op"`
	Text   string  `msgpack:"t,omitempty" json:"text,omitempty"`
	Number float64 `msgpack:"n,omitempty" json:"number,omitempty"`
}

// Validate reports the first thing in a policy that cannot be applied.
func (p Policy) Validate() error {
	for _, r := range p.Rules {
		if r.On != "stop" && r.On != "turn" {
			return fmt.Errorf("policy: rule %q: on is %q, it must be \"stop\" or \"turn\"", r.Name, r.On)
		}
		if r.Why == "" {
			return fmt.Errorf("policy: rule %q: why is empty, the model needs a reason", r.Name)
		}
		for _, c := range r.When {
			if err := c.validate(); err != nil {
				return fmt.Errorf("policy: rule %q: %w", r.Name, err)
			}
		}
	}
	return nil
}

func (c Condition) validate() error {
	if c.Fact == "answer" {
		switch c.Op {
		case "contains", "lacks":
			return nil
		case "matches":
			_, err := regexp.Compile(c.Text)
			return err
		}
		return fmt.Errorf("op %q does not fit answer; use contains, lacks or matches", c.Op)
	}
	if _, ok := numbers[c.Fact]; !ok {
		return fmt.Errorf("unknown fact %q", c.Fact)
	}
	switch c.Op {
	case "<", "<=", ">", ">=", "=":
		return nil
	}
	return fmt.Errorf("op %q does not fit %s; use <, <=, >, >= or =", c.Op, c.Fact)
}

var numbers = map[string]func(State, Member) float64{
	"turns":      func(_ State, m Member) float64 { return float64(m.Turns) },
	"calls":      func(_ State, m Member) float64 { return float64(m.Calls) },
	"tokens":     func(s State, _ Member) float64 { return float64(s.Pool.Spent.Tokens) },
	"usd":        func(s State, _ Member) float64 { return float64(s.Pool.Spent.Nano) / 1e9 },
	"agents":     func(s State, _ Member) float64 { return float64(s.Count()) },
	"elapsed_ms": func(s State, _ Member) float64 { return float64(s.Now - s.Began) },
}

func (c Condition) holds(s State, m Member, answer string) bool {
	if c.Fact == "answer" {
		switch c.Op {
		case "contains":
			return strings.Contains(answer, c.Text)
		case "lacks":
			return !strings.Contains(answer, c.Text)
		}
		re, err := regexp.Compile(c.Text)
		return err == nil && re.MatchString(answer)
	}
	number, ok := numbers[c.Fact]
	if !ok {
		return false
	}
	v := number(s, m)
	switch c.Op {
	case "<":
		return v < c.Number
	case "<=":
		return v <= c.Number
	case ">":
		return v > c.Number
	case ">=":
		return v >= c.Number
	}
	return c.Op == "=" && v == c.Number
}

func (p Policy) findVeto(on string, s State, m Member, answer string) (why string, vetoed bool) {
	for _, r := range p.Rules {
		if r.On != on || r.Agent != "" && r.Agent != string(m.ID) && r.Agent != m.Name {
			continue
		}
		holds := true
		for _, c := range r.When {
			holds = holds && c.holds(s, m, answer)
		}
		if holds {
			return r.Why, true
		}
	}
	return "", false
}

// vetoesMax is how often in a row a stop of a member is sent back; the next veto is final.
func (s State) vetoesMax(m Member) int {
	def, _ := s.Run.findDefinition(m.Name)
	return tighterLimits(def.Limits, s.Run.Agent).VetoesInARow()
}

func (p Policy) vetoTurn(s State, m Member) (why string, vetoed bool) {
	return p.findVeto("turn", s, m, "")
}

// decideStop decides on a proposed stop. It is the supervisor's only veto of a stop; the agent's own
// requirements and stop hooks come before it. Vetoes are bounded, and a canceled run is not held up.
func decideStop(s State, from spec.ID, f agent.ProposeStop) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	why, vetoed := s.Run.Policy.findVeto("stop", s, m, f.Text)
	if !vetoed || s.Cancel != nil {
		m.Vetoes = 0
		return s.put(m), []Effect{Tell{To: from, Fact: agent.StopAllowed{Proposal: f.Proposal}}}
	}
	m.Vetoes++
	return s.put(m), []Effect{Tell{To: from, Fact: agent.StopVetoed{Proposal: f.Proposal, Why: why, Final: m.Vetoes > s.vetoesMax(m)}}} //mutant:veto-limit
}

// applyPolicy puts a run under another policy.
func applyPolicy(s State, p Policy) State {
	s.Run.Policy = p
	return s.publishEvent(event.KindPolicyApplied, event.PolicyApplied{Version: p.Version, Rules: len(p.Rules)})
}
