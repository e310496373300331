package term

import (
	"encoding/json"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// Tree is a run as its events tell it. The zero Tree is ready.
type Tree struct {
	Goal   string
	Model  string
	Began  time.Time
	Ended  time.Time // zero while the run lives
	Budget supervisor.BudgetNote
	Calls  int // tool calls that have ended
	Result *supervisor.Result

	agents map[string]*member
	order  []string // of arrival
	notice string   // about the run as a whole
}

// member is one agent of the tree.
type member struct {
	id, name, parent string
	turn             int
	doing            string
	calls            []call // under way
	tokens           int64
	began, ended     time.Time
	reason           agent.Reason
	detail           string
	asks             bool
}

// call is one that is under way; a child's is not work of our own.
type call struct {
	id, label string
	child     bool
}

// Busy reports whether a tool is running. An agent that asks a person runs
// none: the call that it asks about was lost with the process that began it.
func (t *Tree) Busy() bool {
	for _, m := range t.agents {
		for _, c := range m.calls {
			if !c.child && !m.asks {
				return true
			}
		}
	}
	return false
}

// Asking is the queries that wait for a person: how many agents ask.
func (t *Tree) Asking() int {
	n := 0
	for _, m := range t.agents {
		if m.asks {
			n++
		}
	}
	return n
}

// Name is the name of an agent's definition, or its id.
func (t *Tree) Name(id string) string {
	if m := t.agents[id]; m != nil && m.name != "" {
		return m.name
	}
	return id
}

// Take takes the next event of the run.
func (t *Tree) Take(e client.Event) {
	at, _ := time.Parse(time.RFC3339, e.TS) // zero if the sender wrote none
	switch e.Agent {
	case "super":
		t.run(e, at)
		return
	case "":
		return // it has no place in a tree
	}
	m := t.member(e.Agent)
	if m.parent == "" {
		m.parent = e.Parent
	}
	m.turn = max(m.turn, e.Turn)
	switch e.Kind {
	case "agent.started":
		if d, ok := decode[agent.AgentStarted](e); ok {
			m.name, m.began, m.doing = d.Name, at, "started"
		}
	case "agent.resumed":
		m.doing = "resumed"
	case "agent.finished":
		if d, ok := decode[agent.AgentFinished](e); ok {
			m.reason, m.detail, m.ended = d.Reason, d.Detail, at
			m.turn, m.calls, m.asks = d.Turns, nil, false
		}
	default:
		m.step(e)
		t.count(e)
	}
}

// run takes an event of the supervisor.
func (t *Tree) run(e client.Event, at time.Time) {
	switch e.Kind {
	case "run.started":
		if d, ok := decode[supervisor.RunStarted](e); ok {
			t.Goal, t.Model, t.Began = d.Goal, d.Model, at
			t.Budget.Limit.Tokens, t.Budget.Limit.Nano = d.Limits.Tokens, d.Limits.Nano
		}
	case "run.finished":
		if d, ok := decode[supervisor.Result](e); ok {
			t.Result, t.Ended, t.notice = &d, at, ""
			t.Budget.Used, t.Budget.Reserved = d.Budget.Used, d.Budget.Reserved
		}
	case "agent.spawned":
		if d, ok := decode[supervisor.AgentSpawned](e); ok && d.Agent != "" {
			m := t.member(string(d.Agent))
			m.name, m.parent = d.Name, string(d.Parent)
		}
	case "budget.reserved", "budget.settled", "budget.denied", "budget.exhausted", "budget.changed", "budget.overrun":
		if d, ok := decode[supervisor.BudgetNote](e); ok {
			t.Budget = d
			if d.Why != "" && e.Kind != "budget.settled" {
				t.notice = "closing: " + string(d.Why)
			}
		}
	case "warning.raised":
		if d, ok := decode[agent.Warned](e); ok && d.What == "cancel" {
			t.notice = "stopping"
			if d.Now {
				t.notice = "stopping now"
			}
		}
	}
}

func (t *Tree) member(id string) *member {
	if t.agents == nil {
		t.agents = map[string]*member{}
	}
	m := t.agents[id]
	if m == nil {
		m = &member{id: id, doing: "queued"}
		t.agents[id] = m
		t.order = append(t.order, id)
	}
	return m
}

func (t *Tree) count(e client.Event) {
	if e.Kind == "tool.finished" {
		t.Calls++
	}
}

// step takes an event of an agent at work.
func (m *member) step(e client.Event) {
	switch e.Kind {
	case "turn.started":
		m.doing = "thinking"
		if d, ok := decode[agent.TurnStarted](e); ok && d.Transition != "" && d.Transition != agent.NextTurn {
			m.doing = "thinking (" + string(d.Transition) + ")"
		}
	case "message.delta":
		m.doing = "writing"
	case "message.reasoning":
		m.doing = "reasoning"
	case "model.finished":
		if d, ok := decode[agent.ModelFinished](e); ok {
			m.tokens += d.Usage.Total()
		}
	case "model.retry", "error.raised":
		if d, ok := decode[agent.ModelFinished](e); ok {
			m.tokens += d.Usage.Total()
			m.doing = "model " + string(d.Error)
		}
	case "tool.started", "delegation.requested":
		if d, ok := decode[agent.ToolNote](e); ok {
			m.calls = append(m.without(d.Call), call{d.Call, label(d), d.Child != ""})
		}
	case "agent.waiting":
		m.doing = "waits for its children"
	case "tool.finished", "delegation.finished", "delegation.background":
		if d, ok := decode[agent.ToolNote](e); ok {
			m.calls = m.without(d.Call)
		}
	case "gate.paused":
		if d, ok := decode[agent.GatePaused](e); ok {
			m.doing = "waits for " + d.Model
		}
	case "model.fallback":
		if d, ok := decode[agent.Fallback](e); ok {
			m.doing = "goes on with " + d.To
		}
	case "tool.retry":
		if d, ok := decode[agent.ToolRetry](e); ok {
			m.calls, m.doing = m.without(d.Call), "will run "+d.Tool+" again"
		}
	case "stop.proposed":
		m.doing = "has an answer"
	case "stop.vetoed":
		if d, ok := decode[agent.StopNote](e); ok {
			m.doing = "sent back: " + d.Why
		}
	case "query.asked", "agent.parked":
		if d, ok := decode[agent.AgentParked](e); ok {
			m.doing, m.asks = "asks: "+d.Question, true
		}
	case "query.answered":
		m.doing, m.asks = "answered", false
	}
}

func (m *member) without(id string) []call {
	var rest []call
	for _, c := range m.calls {
		if c.id != id {
			rest = append(rest, c)
		}
	}
	return rest
}

// decode reads an event's data; ok is false if it is not what its kind says.
func decode[D any](e client.Event) (d D, ok bool) {
	return d, json.Unmarshal(e.Data, &d) == nil
}
