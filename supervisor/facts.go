package supervisor

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// PolicyFacts is what the rules of a policy know when they are asked about a stop or a turn of an agent.
type PolicyFacts struct {
	Agent  spec.ID `json:"agent"`
	Name   string  `json:"name"` // of its definition
	Answer string  `json:"answer,omitempty"`
	// Answers are the agents, by id and definition, in whose place the agent answers: they have handed off to it.
	Answers []string `json:"answers_for,omitempty"`
	// Results are the tools with a successful result in the agent's log; known at a stop.
	Results []string `json:"results,omitempty"`

	Turns       int     `json:"turns,omitempty"`
	Calls       int     `json:"calls,omitempty"`
	Vetoes      int     `json:"vetoes,omitempty"` // in a row
	Depth       int     `json:"depth,omitempty"`
	Children    int     `json:"children,omitempty"`     // live ones
	Loops       int     `json:"loops,omitempty"`        // that loop detection has found
	FutileCalls int     `json:"futile_calls,omitempty"` // the newest calls in a row that brought nothing new
	AgentTokens int64   `json:"agent_tokens,omitempty"`
	AgentUSD    float64 `json:"agent_usd,omitempty"`

	Tokens        int64   `json:"tokens,omitempty"`
	USD           float64 `json:"usd,omitempty"`
	Agents        int     `json:"agents,omitempty"`
	Messages      int     `json:"messages,omitempty"`
	ElapsedMS     int64   `json:"elapsed_ms,omitempty"`
	TokensPercent float64 `json:"tokens_percent,omitempty"` // of the run's limit; 0 without one
	USDPercent    float64 `json:"usd_percent,omitempty"`
	CallsPercent  float64 `json:"calls_percent,omitempty"`
}

// Condition compares one fact of the run.
//
// Facts: the texts answer (the proposed one), agent (its id) and name (its definition), with the operators contains,
// lacks, matches, differs (it does not match), is and isnt; results, with has and lacks; and the numbers of
// NumberFacts, with <, <=, >, >=, = and !=.
type Condition struct {
	Fact   string  `msgpack:"f" json:"fact"`
	Op     string  `msgpack:"o" json:"op"`
	Text   string  `msgpack:"t,omitempty" json:"text,omitempty"`
	Number float64 `msgpack:"n,omitempty" json:"number,omitempty"`
}

var numbers = map[string]func(PolicyFacts) float64{
	"turns":          func(f PolicyFacts) float64 { return float64(f.Turns) },
	"calls":          func(f PolicyFacts) float64 { return float64(f.Calls) },
	"vetoes":         func(f PolicyFacts) float64 { return float64(f.Vetoes) },
	"depth":          func(f PolicyFacts) float64 { return float64(f.Depth) },
	"children":       func(f PolicyFacts) float64 { return float64(f.Children) },
	"loops":          func(f PolicyFacts) float64 { return float64(f.Loops) },
	"futile_calls":   func(f PolicyFacts) float64 { return float64(f.FutileCalls) },
	"agent_tokens":   func(f PolicyFacts) float64 { return float64(f.AgentTokens) },
	"agent_usd":      func(f PolicyFacts) float64 { return f.AgentUSD },
	"tokens":         func(f PolicyFacts) float64 { return float64(f.Tokens) },
	"usd":            func(f PolicyFacts) float64 { return f.USD },
	"agents":         func(f PolicyFacts) float64 { return float64(f.Agents) },
	"messages":       func(f PolicyFacts) float64 { return float64(f.Messages) },
	"elapsed_ms":     func(f PolicyFacts) float64 { return float64(f.ElapsedMS) },
	"tokens_percent": func(f PolicyFacts) float64 { return f.TokensPercent },
	"usd_percent":    func(f PolicyFacts) float64 { return f.USDPercent },
	"calls_percent":  func(f PolicyFacts) float64 { return f.CallsPercent },
}

var texts = map[string]func(PolicyFacts) string{
	"answer": func(f PolicyFacts) string { return f.Answer },
	"agent":  func(f PolicyFacts) string { return string(f.Agent) },
	"name":   func(f PolicyFacts) string { return f.Name },
}

// resultsFact is the fact that is a list.
const resultsFact = "results"

// Operators of texts, of results and of numbers.
var (
	textOps   = []string{"contains", "lacks", "matches", "differs", "is", "isnt"}
	listOps   = []string{"has", "lacks"}
	numberOps = []string{"<", "<=", ">", ">=", "=", "!="}
)

// NumberFacts and TextFacts are the names of the facts, in order.
func NumberFacts() []string { return slices.Sorted(maps.Keys(numbers)) }

// TextFacts are the facts that are texts.
func TextFacts() []string { return slices.Sorted(maps.Keys(texts)) }

// operatorsOf are the operators of a fact; nil: there is no such fact.
func operatorsOf(fact string) []string {
	switch _, isNumber := numbers[fact]; {
	case isNumber:
		return numberOps
	case texts[fact] != nil:
		return textOps
	case fact == resultsFact:
		return listOps
	}
	return nil
}

// holds reports whether a condition holds. What it cannot read does not hold.
func (c Condition) holds(f PolicyFacts) bool {
	if number := numbers[c.Fact]; number != nil {
		return c.compares(number(f))
	}
	if c.Fact == resultsFact {
		return slices.Contains(f.Results, c.Text) == (c.Op == "has")
	}
	text := texts[c.Fact]
	if text == nil {
		return false
	}
	return c.describes(text(f))
}

func (c Condition) compares(v float64) bool {
	switch c.Op {
	case "<":
		return v < c.Number
	case "<=":
		return v <= c.Number
	case ">":
		return v > c.Number
	case ">=":
		return v >= c.Number
	case "!=":
		return v != c.Number
	}
	return c.Op == "=" && v == c.Number
}

func (c Condition) describes(text string) bool {
	switch c.Op {
	case "contains":
		return strings.Contains(text, c.Text)
	case "lacks":
		return !strings.Contains(text, c.Text)
	case "is":
		return text == c.Text
	case "isnt":
		return text != c.Text
	}
	re, err := regexp.Compile(c.Text)
	return err == nil && re.MatchString(text) == (c.Op != "differs")
}

// String is the condition as people read it.
func (c Condition) String() string {
	if numbers[c.Fact] != nil {
		return fmt.Sprintf("%s %s %g", c.Fact, c.Op, c.Number)
	}
	return fmt.Sprintf("%s %s %q", c.Fact, c.Op, c.Text)
}

// value is the fact of a condition as people read it.
func (c Condition) value(f PolicyFacts) string {
	switch {
	case numbers[c.Fact] != nil:
		return fmt.Sprintf("%g", numbers[c.Fact](f))
	case texts[c.Fact] != nil:
		return fmt.Sprintf("%q", texts[c.Fact](f))
	}
	return strings.Join(f.Results, ", ")
}

// turnFacts are the facts of a turn boundary of a member.
func (s State) turnFacts(m Member) PolicyFacts {
	account := s.Pool.Account(string(m.ID))
	return PolicyFacts{Agent: m.ID, Name: m.Name, Turns: m.Turns, Calls: m.Calls, Vetoes: m.Vetoes, Depth: m.Depth, Children: m.Children,
		Loops: m.Loops, FutileCalls: m.FutileCalls,
		AgentTokens: account.Spent.Tokens, AgentUSD: dollars(account.Spent), Tokens: s.Pool.Spent.Tokens, USD: dollars(s.Pool.Spent),
		Agents: s.Count(), Messages: s.Messages, ElapsedMS: s.Now - s.Began,
		TokensPercent: percentOf(s.Pool.Spent.Tokens, s.Pool.Limit.Tokens), USDPercent: percentOf(s.Pool.Spent.Nano, s.Pool.Limit.Nano),
		CallsPercent: percentOf(s.Pool.Spent.Calls, s.Pool.Limit.Calls)}
}

// stopFacts are the facts of a proposed stop.
func stopFacts(s State, m Member, p agent.ProposeStop) PolicyFacts {
	f := s.turnFacts(m.withFacts(p.Facts))
	f.Answer, f.Results, f.Answers = p.Text, p.Results, s.roster.callersOf(m)
	return f
}

func dollars(a budget.Amount) float64 { return float64(a.Nano) / budget.NanoPerUSD }

func percentOf(used, limit int64) float64 {
	if limit <= 0 {
		return 0
	}
	return 100 * float64(used) / float64(limit)
}

// Boundary is a decision that the supervisor is asked for: On "stop" or "turn".
type Boundary struct {
	On    string
	Facts PolicyFacts
}

// FindBoundary returns the decision that an input asks the policy for, in the state before it, as `policy test` shows
// what another policy would have decided; ok is false if it asks for none.
func FindBoundary(s State, e Input) (b Boundary, ok bool) {
	m, known := s.Member(e.From)
	if !known || m.Done || s.Cancel != nil {
		return b, false
	}
	s.Now = max(s.Now, e.At)
	switch f := e.Fact.(type) {
	case agent.ProposeStop:
		return Boundary{OnStop, stopFacts(s, m, f)}, true
	case agent.Reserve:
		return Boundary{OnTurn, s.turnFacts(m.withReserve(f))}, !f.Request.Final
	case agent.Settle: // the attempt began under an allowance, so nothing was asked
		m.Turns = max(m.Turns, f.Turn-1)
		return Boundary{OnTurn, s.turnFacts(m)}, f.Under != 0
	}
	return b, false
}

// withFacts notes what the agent reports about itself; nil: all is zero.
func (m Member) withFacts(f *agent.PolicyFacts) Member {
	if f == nil {
		f = &agent.PolicyFacts{}
	}
	m.Loops, m.FutileCalls = f.Loops, f.FutileCalls
	return m
}

// withReserve notes what a request for a turn reports about its agent.
func (m Member) withReserve(f agent.Reserve) Member {
	m.Turns = max(m.Turns, f.Turn-1)
	return m.withFacts(f.Facts)
}
