package term

import (
	"cmp"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
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
	WaitingSpan SpanKind = "waiting" // for children, the user, the budget or another attempt
)

// Span is a stretch of time in which an agent did one thing, in milliseconds
// since the beginning of its run.
type Span struct {
	Agent   string   `json:"agent"`
	Of      string   `json:"agent_name"`
	Kind    SpanKind `json:"kind"`
	Name    string   `json:"name"` // of the model or the tool, or what the agent waits for
	Turn    int      `json:"turn,omitempty"`
	StartMS int64    `json:"start_ms"`
	EndMS   int64    `json:"end_ms"`
	Error   bool     `json:"error,omitempty"`
	Open    bool     `json:"open,omitempty"` // it has not ended
}

// The name of a WaitingSpan says what the agent waits for: one of these, or a child's id.
const (
	forBudget = "budget"
	forPerson = "person"
	forRetry  = "retry"
)

// open identifies a span that has begun, for the event that ends it.
type open struct {
	agent, what string
}

// Timeline is a run over time, built from its events. The zero Timeline is ready.
type Timeline struct {
	tree  Tree
	began time.Time
	last  time.Time
	spans []Span
	open  map[open]int // index in spans
}

// Take adds the next event of the run. It ignores events without a time.
func (t *Timeline) Take(e client.Event) {
	t.tree.Take(e)
	at, err := time.Parse(time.RFC3339, e.TS)
	if err != nil || e.Agent == "" {
		return
	}
	if t.began.IsZero() {
		t.began, t.open = at, map[open]int{}
	}
	if at.After(t.last) {
		t.last = at
	}
	if e.Agent != "super" {
		t.step(e, at.Sub(t.began).Milliseconds())
	}
}

// step begins and ends the spans of an agent.
func (t *Timeline) step(e client.Event, ms int64) {
	switch e.Kind {
	case event.KindAgentStarted:
		t.begin(e, forBudget, WaitingSpan, forBudget, ms)
	case event.KindAgentResumed, event.KindAgentFinished:
		t.endAll(e.Agent, ms) // work in progress is lost, or no longer useful
	case event.KindTurnStarted:
		t.end(e.Agent, forBudget, ms, false)
		t.end(e.Agent, forRetry, ms, false)
		t.begin(e, "turn", TurnSpan, "turn", ms)
	case event.KindTurnFinished:
		t.end(e.Agent, "turn", ms, false)
		if d, ok := decode[event.TurnFinished](e); ok && d.Phase == string(agent.Leasing) {
			t.begin(e, forBudget, WaitingSpan, forBudget, ms)
		}
	case event.KindModelStarted:
		if d, ok := decode[event.ModelStarted](e); ok {
			t.end(e.Agent, forRetry, ms, false)
			t.begin(e, "model", ModelSpan, d.Model, ms)
		}
	case event.KindModelFinished:
		t.end(e.Agent, "model", ms, false)
	case event.KindModelRetry:
		t.end(e.Agent, "model", ms, true)
		t.begin(e, forRetry, WaitingSpan, forRetry, ms)
	case event.KindErrorRaised:
		t.end(e.Agent, "model", ms, true)
	case event.KindToolStarted, event.KindDelegationRequested:
		if d, ok := decode[event.ToolCall](e); ok && d.Child != "" {
			t.begin(e, "call "+d.Call, WaitingSpan, string(d.Child), ms)
		} else if ok {
			t.begin(e, "call "+d.Call, ToolSpan, d.Tool, ms)
		}
	case event.KindToolFinished, event.KindDelegationFinished, event.KindDelegationBackground:
		if d, ok := decode[event.ToolCall](e); ok {
			t.end(e.Agent, "call "+d.Call, ms, d.Error)
		}
	case event.KindQueryAsked:
		if d, ok := decode[event.AgentParked](e); ok {
			t.begin(e, "query "+d.Query, WaitingSpan, forPerson, ms)
		}
	case event.KindQueryAnswered:
		if d, ok := decode[event.QueryAnswered](e); ok {
			t.end(e.Agent, "query "+d.Query, ms, false)
		}
	}
}

// begin opens a span; a span that is open under the same key ends there.
func (t *Timeline) begin(e client.Event, key string, kind SpanKind, name string, ms int64) {
	t.end(e.Agent, key, ms, false)
	t.open[open{e.Agent, key}] = len(t.spans)
	t.spans = append(t.spans, Span{Agent: e.Agent, Kind: kind, Name: name, Turn: e.Turn, StartMS: ms, Open: true})
}

func (t *Timeline) end(who, key string, ms int64, failed bool) {
	i, ok := t.open[open{who, key}]
	if !ok {
		return
	}
	delete(t.open, open{who, key})
	t.spans[i].EndMS, t.spans[i].Open, t.spans[i].Error = max(ms, t.spans[i].StartMS), false, failed
}

func (t *Timeline) endAll(who string, ms int64) {
	for key := range t.open {
		if key.agent == who {
			t.end(who, key.what, ms, false)
		}
	}
}

// Spans returns all spans in order of their start; an open span extends to now, or to the
// end of the run.
func (t *Timeline) Spans(now time.Time) []Span {
	end := t.until(now).Sub(t.began).Milliseconds()
	list := slices.Clone(t.spans)
	for i := range list {
		list[i].Of = t.tree.Name(list[i].Agent)
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

// until returns the end of the time range shown.
func (t *Timeline) until(now time.Time) time.Time {
	if !t.tree.Ended.IsZero() || now.Before(t.last) {
		return t.last
	}
	return now
}
