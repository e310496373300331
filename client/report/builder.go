package report

import (
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/toolname"
)

// builder makes a report of events, which come in order within each agent.
type builder struct {
	report        Report
	begun, newest time.Time
	agents        map[string]int // index in report.Agents
	steps         map[stepKey]*Step
	calls         map[callKey]*Call
	// unpriced: the run does not know all that it costs.
	unpriced bool
}

type stepKey struct {
	agent string
	turn  int
}

type callKey struct{ agent, call string }

// newBuilder begins a report.
func newBuilder(run string) *builder {
	return &builder{report: Report{Run: run, Agents: []Agent{}, Steps: []*Step{}}, agents: map[string]int{}, steps: map[stepKey]*Step{}, calls: map[callKey]*Call{}}
}

// Add adds an event. Kinds that a report has no use for change nothing.
func (b *builder) add(e client.Event) {
	at := stampOf(e)
	if b.begun.IsZero() {
		b.begun = at
	}
	if at.After(b.newest) {
		b.newest = at
	}
	switch e.Kind {
	case event.KindBudgetReserved, event.KindBudgetSettled:
		d := client.DataOf[event.BudgetChanged](e)
		b.report.CostEstimated = b.report.CostEstimated || d.Estimated
		b.setCharged(d.Unknown, d.UsedUSD)
	case event.KindRunFinished:
		d := client.DataOf[event.Result](e)
		b.report.CostEstimated = b.report.CostEstimated || d.CostEstimated
		b.unpriced = !d.CostKnown
		b.setCharged(d.Budget.Unknown, d.CostUSD)
		b.report.Ended, b.report.Reason, b.report.EndedAt = true, d.Reason, e.TS
	case event.KindAgentSpawned:
		d := client.DataOf[event.AgentSpawned](e)
		a := b.agent(string(d.Agent))
		a.Name, a.Parent = d.Name, string(d.Parent)
	case event.KindModelFinished, event.KindModelRetry, event.KindErrorRaised:
		b.addAttempt(e, client.DataOf[event.ModelFinished](e))
	case event.KindTurnFinished:
		if s := b.steps[stepKey{e.Agent, e.Turn}]; s != nil {
			s.Transition = client.DataOf[event.TurnFinished](e).Transition
		}
	case event.KindToolProposed, event.KindToolValidated, event.KindToolStarted, event.KindToolFinished,
		event.KindDelegationRequested, event.KindDelegationBackground, event.KindDelegationFinished:
		b.addCall(e, client.DataOf[event.ToolCall](e))
	case event.KindGuardrailTriggered:
		d := client.DataOf[event.GuardrailFired](e)
		b.report.Guardrails = append(b.report.Guardrails, Guardrail{Agent: e.Agent, Turn: e.Turn, Name: strings.Join(d.Guardrails, ", "), Point: d.Point, Decision: d.Decision,
			Severity: d.Severity, Call: d.Call, Why: clip.Text(d.Why, errorBytesMax), Report: d.Report})
	case event.KindToolRetry:
		d := client.DataOf[event.ToolRetry](e)
		b.call(e, d.Call, d.Tool).LatencyMS += d.TookMS
	case event.KindToolDenied:
		d := client.DataOf[event.ToolDecided](e)
		b.call(e, d.Call, d.Tool).Skipped = true
	}
}

// setCharged takes over what the run was charged so far. Without calls of unknown usage the steps have all of it.
func (b *builder) setCharged(unknown int64, usd float64) {
	if unknown > 0 {
		b.report.ChargedUnknown, b.report.ChargedUSD = unknown, usd
	}
}

func (b *builder) agent(id string) *Agent {
	i, ok := b.agents[id]
	if !ok {
		i = len(b.report.Agents)
		b.agents[id], b.report.Agents = i, append(b.report.Agents, Agent{ID: id})
	}
	return &b.report.Agents[i]
}

func (b *builder) step(e client.Event) *Step {
	key := stepKey{e.Agent, e.Turn}
	s := b.steps[key]
	if s == nil {
		b.agent(e.Agent)
		fresh := zeroStep
		s = &fresh
		s.Agent, s.Turn, s.StartedAt = e.Agent, e.Turn, e.TS
		b.steps[key], b.report.Steps = s, append(b.report.Steps, s)
	}
	return s
}

func (b *builder) addAttempt(e client.Event, d event.ModelFinished) {
	s := b.step(e)
	s.Attempts = append(s.Attempts, Attempt{Model: d.Model, Purpose: d.Purpose, Finish: d.Stop, LatencyMS: d.TookMS, Usage: d.Usage, UsageKnown: d.UsageKnown,
		CostUSD: d.CostUSD, Error: d.Error, Detail: clip.Text(d.Detail, errorBytesMax)})
	s.ModelMS += d.TookMS
	s.Usage = s.Usage.Add(d.Usage)
	if d.Purpose == "" {
		s.Model, s.Finish = d.Model, d.Stop
	}
}

// call returns the call that an event is about. Events after the first may have another turn.
func (b *builder) call(e client.Event, id, tool string) *Call {
	key := callKey{e.Agent, id}
	c := b.calls[key]
	if c == nil {
		s := b.step(e)
		c = &Call{ID: id, Tool: tool}
		b.calls[key], s.Calls = c, append(s.Calls, c)
	}
	return c
}

func (b *builder) addCall(e client.Event, d event.ToolCall) {
	c := b.call(e, d.Call, d.Tool)
	if d.Class != "" {
		c.Class = d.Class
	}
	if d.Child != "" {
		c.Child = string(d.Child)
	}
	if d.Args != "" { // a hook may have rewritten those that were proposed
		c.Arguments, c.ArgumentBytes = clip.Text(d.Args, argumentBytesMax), len(d.Args)
	}
	switch e.Kind {
	case event.KindToolStarted, event.KindDelegationRequested:
		c.Attempts, c.Skipped, c.begun = max(c.Attempts+1, d.Attempt), false, stampOf(e)
	case event.KindToolFinished, event.KindDelegationFinished, event.KindDelegationBackground:
		c.endCall(e, d)
	}
}

func (c *Call) endCall(e client.Event, d event.ToolCall) {
	c.Ended, c.LatencyMS = e.Kind != event.KindDelegationBackground, c.LatencyMS+d.TookMS
	c.ResultBytes = max(int64(d.Bytes), d.Size)
	c.Metrics, c.MetricsLost = d.Metrics, d.MetricsLost
	if c.Child != "" && isDelegation(e.Kind) && !c.begun.IsZero() {
		c.LatencyMS = max(0, stampOf(e).Sub(c.begun).Milliseconds())
	}
	c.Error = ""
	if d.Error {
		if c.Error = clip.Text(d.Text, errorBytesMax); c.Error == "" {
			c.Error = "failed"
		}
	}
	if c.Attempts == 0 && d.Error {
		c.Skipped = true
	}
}

// Report sums up the events so far.
func (b *builder) finish() Report {
	r := b.report
	r.Totals = noSteps()
	// such a call alone makes the cost of a run unknown
	unpriced := b.unpriced && !slices.ContainsFunc(r.Steps, (*Step).hasUnknownCall)
	r.Agents = append([]Agent{}, b.report.Agents...)
	for i := range r.Agents {
		r.Agents[i].Totals = noSteps()
	}
	for _, s := range r.Steps {
		s.setCost(unpriced)
		s.ToolMS = 0
		for _, c := range s.Calls {
			if c.Child == "" {
				s.ToolMS += c.LatencyMS
			}
		}
		r.Totals.addStep(s)
		r.Agents[b.agents[s.Agent]].addStep(s)
	}
	if !b.begun.IsZero() {
		r.StartedAt, r.DurationMS = event.FormatStamp(b.begun.UnixMilli()), b.newest.Sub(b.begun).Milliseconds()
	}
	return r
}

// noSteps is the sum of no step: it has cost nothing.
func noSteps() Totals { return Totals{CostUSD: new(float64), CostKnown: true} }

// hasUnknownCall reports whether a call of the step was made by another program that did not say what it has cost. Tools of others
// may report a figure of that name, too, and change nothing.
func (s *Step) hasUnknownCall() bool {
	return slices.ContainsFunc(s.Calls, func(c *Call) bool { return c.Tool == toolname.Delegate && c.Metrics["cost_unknown"] > 0 })
}

// setCost sums up the attempts of the step. unpriced: what no price is known for is reported as 0.
func (s *Step) setCost(unpriced bool) {
	sum := 0.0
	s.CostKnown = !s.hasUnknownCall()
	for _, a := range s.Attempts {
		sum += a.CostUSD
		s.CostKnown = s.CostKnown && !(unpriced && a.CostUSD == 0 && a.Usage.Total() > 0)
	}
	if s.CostUSD = nil; s.CostKnown {
		s.CostUSD = &sum
	}
}

func (t *Totals) addStep(s *Step) {
	t.Steps++
	t.Attempts += len(s.Attempts)
	t.ModelMS, t.ToolMS = t.ModelMS+s.ModelMS, t.ToolMS+s.ToolMS
	if t.CostKnown = t.CostKnown && s.CostKnown; t.CostKnown {
		*t.CostUSD += *s.CostUSD
	} else {
		t.CostUSD = nil
	}
	t.Usage = t.Usage.Add(s.Usage)
	for _, a := range s.Attempts {
		if !a.UsageKnown {
			t.Unknown++
		}
	}
	for _, c := range s.Calls {
		if c.Skipped { // a denial is no failure, too
			t.Skipped++
			continue
		}
		if c.Attempts > 0 {
			t.Calls++
		}
		if c.Error != "" {
			t.Failed++
		}
	}
}
