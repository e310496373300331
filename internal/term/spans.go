package term

import (
	"cmp"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// SpanKind is the activity of an agent in a Span.
type SpanKind string

// Kinds of spans. Spans of one agent may be nested: a turn contains its model call and its
// tools.
const (
	TurnSpan    SpanKind = "turn"
	ModelSpan   SpanKind = "model"
	ToolSpan    SpanKind = "tool"
	VetoSpan    SpanKind = "veto"    // of a stop or a turn, by a rule of the policy; without duration
	WaitingSpan SpanKind = "waiting" // for children, the user, the budget, a throttle or another attempt
)

// Span is a stretch of time in which an agent did one thing, in milliseconds
// since the beginning of its run.
type Span struct {
	Agent     string   `json:"agent"`
	AgentName string   `json:"agent_name"`
	Kind      SpanKind `json:"kind"`
	Name      string   `json:"name"` // of the model, the tool or the rule, or what the agent waits for
	Turn      int      `json:"turn,omitempty"`
	StartMS   int64    `json:"start_ms"`
	EndMS     int64    `json:"end_ms"`
	Error     bool     `json:"error,omitempty"`
	Open      bool     `json:"open,omitempty"` // it has not ended
	Policy    int      `json:"policy_version,omitempty"`
}

// The name of a WaitingSpan says what the agent waits for: one of these, or a child's id.
const (
	forBudget = "budget"
	forPerson = "person"
	forRetry  = "retry"
	// forThrottle: the provider, or the rates of the settings, let no call through now.
	forThrottle = "throttle"
)

// Timeline is a run over time, built from its events. The zero Timeline is ready.
type Timeline struct {
	// SpansMax is how many spans the timeline keeps: the oldest are dropped first, also if they are open; 0: all.
	SpansMax int

	tree  Tree
	began time.Time
	last  time.Time
	spans []Span
	open  map[string]map[string]int // index in spans, by agent and by what will end the span
}

// Tree is the tree of the same events.
func (t *Timeline) Tree() *Tree { return &t.tree }

// AddEvent adds the next event of the run. It ignores events without a time.
func (t *Timeline) AddEvent(e client.Event) {
	t.tree.AddEvent(e)
	at, err := time.Parse(time.RFC3339, e.TS)
	if err != nil || e.Agent == "" {
		return
	}
	if t.began.IsZero() {
		t.began, t.open = at, map[string]map[string]int{}
	}
	if at.After(t.last) {
		t.last = at
	}
	if e.Agent != "super" {
		t.applyEvent(e, at.Sub(t.began).Milliseconds())
	}
}

// applyEvent begins and ends the spans of an agent.
func (t *Timeline) applyEvent(e client.Event, ms int64) {
	switch e.Kind {
	case event.KindAgentStarted:
		t.beginSpan(e, forBudget, WaitingSpan, forBudget, ms)
	case event.KindAgentResumed, event.KindAgentFinished:
		t.endAgentSpans(e.Agent, ms) // work in progress is lost, or no longer useful
	case event.KindTurnStarted:
		t.endSpan(e.Agent, forBudget, ms, false)
		t.endSpan(e.Agent, forRetry, ms, false)
		t.endSpan(e.Agent, forThrottle, ms, false)
		if d, ok := decodeData[event.TurnStarted](e); ok && d.Transition != spec.StopVeto { // that one has its own event
			t.addVeto(e, d.Policy, ms)
		}
		t.beginSpan(e, "turn", TurnSpan, "turn", ms)
	case event.KindTurnFinished:
		t.endSpan(e.Agent, "turn", ms, false)
		if d, ok := decodeData[event.TurnFinished](e); ok && d.Phase == string(agent.Reserving) {
			t.endSpan(e.Agent, forThrottle, ms, false)
			t.beginSpan(e, forBudget, WaitingSpan, forBudget, ms)
		}
	case event.KindModelStarted:
		if d, ok := decodeData[event.ModelStarted](e); ok {
			t.endSpan(e.Agent, forRetry, ms, false)
			t.endSpan(e.Agent, forThrottle, ms, false)
			t.beginSpan(e, "model", ModelSpan, d.Model, ms)
		}
	case event.KindModelFinished:
		t.endSpan(e.Agent, "model", ms, false)
	case event.KindModelRetry:
		t.endSpan(e.Agent, "model", ms, true)
		if _, throttled := t.open[e.Agent][forThrottle]; !throttled { // the throttle says when the next attempt is
			t.beginSpan(e, forRetry, WaitingSpan, forRetry, ms)
		}
	case event.KindGatePaused:
		t.endSpan(e.Agent, "model", ms, false) // no call was made
		t.endSpan(e.Agent, forRetry, ms, false)
		t.beginSpan(e, forThrottle, WaitingSpan, forThrottle, ms)
	case event.KindModelFallback:
		t.endSpan(e.Agent, forThrottle, ms, false)
	case event.KindErrorRaised:
		t.endSpan(e.Agent, "model", ms, true)
	case event.KindToolStarted, event.KindDelegationRequested:
		if d, ok := decodeData[event.ToolCall](e); ok && d.Child != "" {
			t.beginSpan(e, "call "+d.Call, WaitingSpan, string(d.Child), ms)
		} else if ok {
			t.beginSpan(e, "call "+d.Call, ToolSpan, d.Tool, ms)
		}
	case event.KindToolFinished, event.KindDelegationFinished, event.KindDelegationBackground:
		if d, ok := decodeData[event.ToolCall](e); ok {
			t.endSpan(e.Agent, "call "+d.Call, ms, d.Error)
		}
	case event.KindStopVetoed:
		if d, ok := decodeData[event.Stop](e); ok {
			t.addVeto(e, d.Policy, ms)
		}
	case event.KindQueryAsked:
		if d, ok := decodeData[event.AgentParked](e); ok {
			t.beginSpan(e, "query "+d.Query, WaitingSpan, forPerson, ms)
		}
	case event.KindQueryAnswered:
		if d, ok := decodeData[event.QueryAnswered](e); ok {
			t.endSpan(e.Agent, "query "+d.Query, ms, false)
		}
	}
}

// addVeto adds the moment at which a rule has vetoed a stop, or all turns but a closing one.
func (t *Timeline) addVeto(e client.Event, by *event.PolicyVerdict, ms int64) {
	if by != nil {
		t.addSpan(Span{Agent: e.Agent, Kind: VetoSpan, Name: by.Rule, Turn: e.Turn, StartMS: ms, EndMS: ms, Policy: by.Version})
	}
}

// beginSpan opens a span; a span that is open under the same key ends there.
func (t *Timeline) beginSpan(e client.Event, key string, kind SpanKind, name string, ms int64) {
	t.endSpan(e.Agent, key, ms, false)
	if t.open[e.Agent] == nil {
		t.open[e.Agent] = map[string]int{}
	}
	t.open[e.Agent][key] = len(t.spans)
	t.addSpan(Span{Agent: e.Agent, Kind: kind, Name: name, Turn: e.Turn, StartMS: ms, Open: true})
}

func (t *Timeline) addSpan(s Span) {
	t.spans = append(t.spans, s)
	if t.SpansMax > 0 && len(t.spans) > t.SpansMax+t.SpansMax/spanSlack {
		t.dropSpans(len(t.spans) - t.SpansMax)
	}
}

// spanSlack: so that spans are not moved with each new one, a timeline may hold this part of SpansMax above it.
const spanSlack = 4

// dropSpans drops the oldest n spans.
func (t *Timeline) dropSpans(n int) {
	t.spans = slices.Clone(t.spans[n:])
	for agent, keys := range t.open {
		for key, i := range keys {
			if i < n {
				delete(keys, key)
			} else {
				keys[key] = i - n
			}
		}
		if len(keys) == 0 {
			delete(t.open, agent)
		}
	}
}

func (t *Timeline) endSpan(who, key string, ms int64, failed bool) {
	i, ok := t.open[who][key]
	if !ok {
		return
	}
	delete(t.open[who], key)
	t.spans[i].EndMS, t.spans[i].Open, t.spans[i].Error = max(ms, t.spans[i].StartMS), false, failed
}

func (t *Timeline) endAgentSpans(who string, ms int64) {
	for key := range t.open[who] {
		t.endSpan(who, key, ms, false)
	}
	delete(t.open, who)
}

// Spans returns all spans in order of their start; an open span extends to now, or to the
// end of the run.
func (t *Timeline) Spans(now time.Time) []Span { return t.spansWithin(now, nil) }

// spansWithin is Spans for the agents that a map has as keys; nil: for all.
func (t *Timeline) spansWithin(now time.Time, agents map[string][]Span) []Span {
	end := t.visibleEnd(now).Sub(t.began).Milliseconds()
	var list []Span
	for _, s := range t.spans {
		if _, ok := agents[s.Agent]; ok || agents == nil {
			list = append(list, s)
		}
	}
	for i := range list {
		list[i].AgentName = t.tree.AgentName(list[i].Agent)
		if list[i].Open {
			list[i].EndMS = max(end, list[i].StartMS)
		}
	}
	// A waiting span of no duration is not shown.
	list = slices.DeleteFunc(list, func(s Span) bool { return s.Kind == WaitingSpan && s.EndMS == s.StartMS && !s.Open })
	slices.SortStableFunc(list, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.StartMS, b.StartMS), cmp.Compare(a.Agent, b.Agent))
	})
	return list
}

// visibleEnd returns the end of the time range shown.
func (t *Timeline) visibleEnd(now time.Time) time.Time {
	if !t.tree.Ended.IsZero() || t.tree.clock.interrupted || now.Before(t.last) {
		return t.last
	}
	return now
}
