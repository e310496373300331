package term

import (
	"encoding/json"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// Tree is a run as a tree, built from its events. The zero Tree is ready.
type Tree struct {
	Goal   string
	Model  string
	Began  time.Time
	Ended  time.Time // zero while the run lives
	Budget event.BudgetChanged
	Calls  int // tool calls, as their limit counts them
	// Handoffs are those of conversations from one agent to another, the newest.
	Handoffs []Handoff
	Result   *event.Result
	// AgentsMax is how many agents the tree keeps: the events of later ones are ignored, and IsFull is set; 0: all.
	AgentsMax int
	IsFull    bool

	agents    map[string]*member
	frozen    frozenAgents
	order     []string // of arrival
	handoffs  int
	notice    string // about the run as a whole
	clock     runClock
	cancelers cancelers
	shortage  string // the limit that did not cover the newest attempt that was refused or made the last one
	arranged  *arrangement
}

// arrangement is the order in which the agents are drawn. It is made anew once an agent, a parent or a name has come.
type arrangement struct {
	rows []treeRow
	ids  []string
	at   map[string]int // index in rows
	need treeColumns
}

func (t *Tree) arrange() *arrangement {
	if t.arranged != nil {
		return t.arranged
	}
	rows := t.listRows(false)
	a := &arrangement{rows: rows, ids: make([]string, len(rows)), at: make(map[string]int, len(rows)), need: columnsOf(rows)}
	for i, r := range rows {
		a.ids[i], a.at[r.m.id] = r.m.id, i
	}
	t.arranged = a
	return a
}

// Agents returns the ids of the agents in the order in which Lines draws them: a parent stands before those below it.
// The caller must not change the list.
func (t *Tree) Agents() []string { return t.arrange().ids }

// Row draws one agent as Lines does, in at most width columns; "" if there is no such agent. The rows of
// one width stand in columns.
func (t *Tree) Row(s Style, id string, width int, now time.Time) string {
	a := t.arrange()
	i, ok := a.at[id]
	if !ok {
		return ""
	}
	return Truncate(t.drawing(s, width, now).row(a.rows[i], a.need.within(width)), width)
}

// ParentOf returns the id of the agent that has delegated to an agent; "" for the first one.
func (t *Tree) ParentOf(id string) string {
	if m := t.agents[id]; m != nil {
		return m.parent
	}
	return ""
}

// EndOf returns why an agent has stopped, with the detail; "" while it works.
func (t *Tree) EndOf(id string) (reason spec.Reason, detail string) {
	if m := t.agents[id]; m != nil {
		return m.reason, m.detail
	}
	return "", ""
}

// member is one agent of the tree.
type member struct {
	id, name, parent string
	turn             int
	pastTurns        pastTurns
	activity         string
	calls            []openCall // in progress
	tokens           int64      // that the pool was charged
	counted          int        // calls of it in Tree.Calls
	began, ended     time.Time
	reason           spec.Reason
	detail           string
	asks             bool
	inModel          bool   // a call of its model is in progress
	frozen           bool   // its budget, or that of an agent above it: it waits at its next turn
	handedTo         string // the agent that has its conversation
	writing          string // the end of the text that its model is writing
}

// writingBytes is how much of the text that a model is writing a Tree keeps.
const writingBytes = 2 << 10

// openCall is a call in progress; a child's is not the agent's own work.
type openCall struct {
	id, label string
	child     bool
}

// IsToolRunning reports whether a tool is running. An agent that asks the user runs none: the call
// that it asks about was lost with the process that began it.
func (t *Tree) IsToolRunning() bool {
	for _, m := range t.agents {
		for _, c := range m.calls {
			if !c.child && !m.asks {
				return true
			}
		}
	}
	return false
}

// CallsInProgress lists what the agents at or below one are doing that a cancel lets end, one line each: calls of
// tools and of models. "" is for all agents.
func (t *Tree) CallsInProgress(below string) (lines []string) {
	for _, id := range t.arrange().ids {
		m := t.agents[id]
		if m.reason != "" || m.asks || below != "" && id != below && !spec.ID(id).IsBelow(spec.ID(below)) {
			continue
		}
		head := CleanLine(id) + " " + CleanLine(m.displayName()) + ": "
		for _, c := range m.calls {
			if !c.child {
				lines = append(lines, head+CleanLine(c.label))
			}
		}
		if m.inModel {
			lines = append(lines, head+"a call of its model")
		}
	}
	return lines
}

// CountAsking counts the queries that wait for the user: how many agents ask.
func (t *Tree) CountAsking() int {
	n := 0
	for _, m := range t.agents {
		if m.asks {
			n++
		}
	}
	return n
}

// AgentName returns the name of an agent's definition, or its id.
func (t *Tree) AgentName(id string) string {
	if m := t.agents[id]; m != nil && m.name != "" {
		return m.name
	}
	return id
}

// Shortage says which limit did not cover a model call, and by how much; "": all were covered.
func (t *Tree) Shortage() string { return t.shortage }

// AddEvent adds the next event of the run.
func (t *Tree) AddEvent(e client.Event) {
	at, _ := time.Parse(time.RFC3339, e.TS) // zero if the sender wrote none
	t.clock.note(at)
	switch e.Agent {
	case "super":
		t.applyRunEvent(e, at)
		return
	case "":
		return // it has no place in a tree
	}
	if !t.hasRoomFor(e.Agent) {
		return
	}
	m := t.ensureMember(e.Agent)
	if m.parent == "" && e.Parent != "" {
		m.parent, t.arranged = e.Parent, nil
	}
	m.turn = max(m.turn, e.Turn)
	switch e.Kind {
	case event.KindAgentStarted:
		if d, ok := decodeData[event.AgentStarted](e); ok {
			t.nameMember(m, d.Name)
			m.began, m.activity = at, "started"
		}
	case event.KindAgentResumed:
		m.inModel = false
		if !m.asks { // its question is still open
			m.activity = "continues"
		}
	case event.KindAgentFinished:
		if d, ok := decodeData[event.AgentFinished](e); ok {
			m.reason, m.detail, m.ended = spec.Reason(clipText(string(d.Reason))), clipText(t.cancelers.endingOf(m, t.agents, d.Detail)), at
			m.turn, m.calls, m.asks = d.Turns, nil, false
			t.setCalls(m, d.Calls)
		}
	default:
		m.trackModel(e.Kind)
		m.pastTurns.addEvent(e)
		m.applyEvent(e)
		t.countWork(m, e)
	}
}

// applyRunEvent processes an event of the supervisor.
func (t *Tree) applyRunEvent(e client.Event, at time.Time) {
	switch e.Kind {
	case event.KindRunStarted:
		if d, ok := decodeData[event.RunStarted](e); ok {
			t.Goal, t.Model, t.Began = d.Goal, d.Model, at
			t.Budget.Limit.Tokens, t.Budget.Limit.Nano = d.Limits.Tokens, d.Limits.Nano
		}
	case event.KindRunFinished:
		if d, ok := decodeData[event.Result](e); ok {
			t.Result, t.Ended, t.notice = &d, at, ""
			t.applyResult(d)
			t.Budget.Used, t.Budget.Reserved = d.Budget.Used, d.Budget.Reserved
			t.Budget.UsedUSD, t.Budget.ReservedUSD, t.Budget.Estimated = d.CostUSD, d.Budget.ReservedUSD, d.CostEstimated
		}
	case event.KindAgentSpawned:
		if d, ok := decodeData[event.AgentSpawned](e); ok && d.Agent != "" && t.hasRoomFor(string(d.Agent)) {
			m := t.ensureMember(string(d.Agent))
			t.nameMember(m, d.Name)
			m.parent, t.arranged = string(d.Parent), nil
		}
	case event.KindBudgetReserved, event.KindBudgetSettled, event.KindBudgetDenied, event.KindBudgetExhausted, event.KindBudgetChanged, event.KindBudgetOverrun:
		if d, ok := decodeData[event.BudgetChanged](e); ok {
			chargeUnknown(t.agents[string(d.Agent)], t.Budget.Unknown, e.Kind, d)
			t.Budget = d
			if d.Subtree != nil {
				t.frozen.note(string(d.Agent), d.Subtree.Frozen, t.agents)
			}
			if d.Short != nil {
				t.shortage = describeShortage(*d.Short)
			}
			if d.Why != "" && e.Kind != event.KindBudgetSettled {
				t.notice = "closing: " + string(d.Why)
			}
		}
	case event.KindWarningRaised:
		if d, ok := decodeData[event.Warning](e); ok && d.What == event.WarningOfCancel {
			t.cancelers = t.cancelers.with(d)
			if d.Agent == "" {
				t.notice = "stopping"
				if d.Now {
					t.notice = "stopping now"
				}
			}
		}
	}
}

func (t *Tree) ensureMember(id string) *member {
	if t.agents == nil {
		t.agents = map[string]*member{}
	}
	m := t.agents[id]
	if m == nil {
		m = &member{id: id, activity: "queued", frozen: t.frozen.has(id)}
		t.agents[id] = m
		t.order = append(t.order, id)
		t.arranged = nil
	}
	return m
}

// hasRoomFor reports whether an agent is in the tree, or may come into it.
func (t *Tree) hasRoomFor(id string) bool {
	if t.AgentsMax > 0 && len(t.order) >= t.AgentsMax && t.agents[id] == nil {
		t.IsFull = true
		return false
	}
	return true
}

func (t *Tree) nameMember(m *member, name string) {
	name = clipText(name)
	if m.name != name {
		m.name, t.arranged = name, nil
	}
}

func (t *Tree) countWork(m *member, e client.Event) {
	switch e.Kind {
	case event.KindToolValidated:
		t.setCalls(m, m.counted+1)
	case event.KindAgentHandedOff:
		t.addHandoff(e)
	}
}

// trackModel keeps whether a call of the agent's model is in progress.
func (m *member) trackModel(kind string) {
	switch kind {
	case event.KindModelStarted:
		m.inModel = true
	case event.KindModelFinished, event.KindModelRetry, event.KindErrorRaised:
		m.inModel = false
	}
}

// applyEvent processes an event of an agent.
func (m *member) applyEvent(e client.Event) {
	if e.Kind != event.KindMessageDelta {
		m.writing = ""
	}
	switch e.Kind {
	case event.KindTurnStarted:
		m.activity = "thinking"
		if d, ok := decodeData[event.TurnStarted](e); ok && d.Transition != "" && d.Transition != spec.NextTurn {
			m.activity = "thinking (" + string(d.Transition) + ")"
		}
	case event.KindMessageDelta:
		m.activity = "writing"
		if d, ok := decodeData[event.Delta](e); ok {
			m.writing += d.Text
			m.writing = m.writing[max(0, len(m.writing)-writingBytes):]
		}
	case event.KindMessageReasoning:
		m.activity = "reasoning"
	case event.KindModelFinished:
		if d, ok := decodeData[event.ModelFinished](e); ok {
			m.tokens += d.Usage.Total()
		}
	case event.KindModelRetry, event.KindErrorRaised:
		if d, ok := decodeData[event.ModelFinished](e); ok {
			m.tokens += d.Usage.Total()
			m.activity = "model " + string(d.Error)
		}
	case event.KindToolStarted, event.KindDelegationRequested:
		if d, ok := decodeData[event.ToolCall](e); ok {
			m.calls = append(m.callsWithout(d.Call), openCall{d.Call, callLabel(d), d.Child != ""})
		}
	case event.KindAgentHandedOff:
		if d, ok := decodeData[event.AgentHandedOff](e); ok {
			m.handedTo, m.calls = clipText(d.Name), m.callsWithout(d.Call)
			m.activity = "handed off to " + m.handedTo
		}
	case event.KindAgentWaiting:
		m.activity = "waits for its children"
	case event.KindToolFinished, event.KindDelegationFinished, event.KindDelegationBackground:
		if d, ok := decodeData[event.ToolCall](e); ok {
			m.calls = m.callsWithout(d.Call)
		}
	case event.KindGatePaused:
		if d, ok := decodeData[event.GatePaused](e); ok {
			m.activity = "waits for " + ModelName(d.Model)
		}
	case event.KindModelFallback:
		if d, ok := decodeData[event.Fallback](e); ok {
			m.activity = "continues with " + d.To
		}
	case event.KindToolRetry:
		if d, ok := decodeData[event.ToolRetry](e); ok {
			m.calls, m.activity = m.callsWithout(d.Call), "will retry "+d.Tool
		}
	case event.KindStopProposed:
		m.activity = "has an answer"
	case event.KindStopVetoed:
		if d, ok := decodeData[event.Stop](e); ok {
			m.activity = "sent back: " + clipText(d.Why)
		}
	case event.KindQueryAsked, event.KindAgentParked:
		if d, ok := decodeData[event.AgentParked](e); ok {
			m.activity, m.asks = "asks: "+QuestionGist(clipText(d.Question)), true
		}
	case event.KindQueryAnswered:
		m.activity, m.asks = "answered", false
	}
}

func (m *member) callsWithout(id string) []openCall {
	var rest []openCall
	for _, c := range m.calls {
		if c.id != id {
			rest = append(rest, c)
		}
	}
	return rest
}

// decodeData decodes an event's data; ok is false if the data does not fit its kind.
func decodeData[D any](e client.Event) (d D, ok bool) {
	return d, json.Unmarshal(e.Data, &d) == nil
}
