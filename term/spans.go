package term

import (
	"cmp"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
)

// SpanKind says what an agent did in a Span.
type SpanKind string

// Kinds of spans. Spans of one agent may lie within each other: a turn holds
// its model call and its tools.
const (
	TurnSpan    SpanKind = "turn"
	ModelSpan   SpanKind = "model"
	ToolSpan    SpanKind = "tool"
	WaitingSpan SpanKind = "waiting" // for children, a person, the budget or another attempt
)

// Span is a stretch of time in which an agent did one thing, in milliseconds
// since the beginning of its run.
type Span struct {
	Agent   string   `json:"agent"`
	Of      string   `json:"agent_name"`
	Kind    SpanKind `json:"kind"`
	Name    string   `json:"name"` // of the model or the tool, or what is waited for
	Turn    int      `json:"turn,omitempty"`
	StartMS int64    `json:"start_ms"`
	EndMS   int64    `json:"end_ms"`
	Error   bool     `json:"error,omitempty"`
	Open    bool     `json:"open,omitempty"` // it has not ended
}

// What an agent waits for, as the name of a WaitingSpan; or a child's id.
const (
	forBudget = "budget"
	forPerson = "person"
	forRetry  = "retry"
)

// open is a span that has begun, by what ends it.
type open struct {
	agent, what string
}

// Timeline is a run over time as its events tell it. The zero Timeline is ready.
type Timeline struct {
	tree  Tree
	began time.Time
	last  time.Time
	spans []Span
	open  map[open]int // index in spans
}

// Take takes the next event of the run. Events without a time are left out.
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
	case "agent.started":
		t.begin(e, forBudget, WaitingSpan, forBudget, ms)
	case "agent.resumed", "agent.finished":
		t.endAll(e.Agent, ms) // what was under way is lost, or of no use
	case "turn.started":
		t.end(e.Agent, forBudget, ms, false)
		t.end(e.Agent, forRetry, ms, false)
		t.begin(e, "turn", TurnSpan, "turn", ms)
	case "turn.finished":
		t.end(e.Agent, "turn", ms, false)
		if d, ok := decode[agent.TurnFinished](e); ok && d.Phase == agent.Leasing {
			t.begin(e, forBudget, WaitingSpan, forBudget, ms)
		}
	case "model.started":
		if d, ok := decode[agent.ModelStarted](e); ok {
			t.end(e.Agent, forRetry, ms, false)
			t.begin(e, "model", ModelSpan, d.Model, ms)
		}
	case "model.finished":
		t.end(e.Agent, "model", ms, false)
	case "model.retry":
		t.end(e.Agent, "model", ms, true)
		t.begin(e, forRetry, WaitingSpan, forRetry, ms)
	case "error.raised":
		t.end(e.Agent, "model", ms, true)
	case "tool.started", "delegation.requested":
		if d, ok := decode[agent.ToolNote](e); ok && d.Child != "" {
			t.begin(e, "call "+d.Call, WaitingSpan, string(d.Child), ms)
		} else if ok {
			t.begin(e, "call "+d.Call, ToolSpan, d.Tool, ms)
		}
	case "tool.finished", "delegation.finished", "delegation.background":
		if d, ok := decode[agent.ToolNote](e); ok {
			t.end(e.Agent, "call "+d.Call, ms, d.Error)
		}
	case "query.asked":
		if d, ok := decode[agent.AgentParked](e); ok {
			t.begin(e, "query "+d.Query, WaitingSpan, forPerson, ms)
		}
	case "query.answered":
		if d, ok := decode[agent.QueryAnswered](e); ok {
			t.end(e.Agent, "query "+d.Query, ms, false)
		}
	}
}

// begin opens a span; one that is open under the same key ends there.
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

// Spans are all spans by their beginning; what has not ended reaches up to now,
// or up to the end of the run.
func (t *Timeline) Spans(now time.Time) []Span {
	end := t.until(now).Sub(t.began).Milliseconds()
	list := slices.Clone(t.spans)
	for i := range list {
		list[i].Of = t.tree.Name(list[i].Agent)
		if list[i].Open {
			list[i].EndMS = max(end, list[i].StartMS)
		}
	}
	// A wait that nobody can see is no wait.
	list = slices.DeleteFunc(list, func(s Span) bool { return s.Kind == WaitingSpan && s.EndMS == s.StartMS && !s.Open })
	slices.SortStableFunc(list, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.StartMS, b.StartMS), cmp.Compare(a.Agent, b.Agent))
	})
	return list
}

// until is the end of the time that is shown.
func (t *Timeline) until(now time.Time) time.Time {
	if !t.tree.Ended.IsZero() || now.Before(t.last) {
		return t.last
	}
	return now
}
