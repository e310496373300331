package agent

import (
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Note is something that happened in a step, for observers: a pure function of
// the state before, the event and the state after, so that it can be told
// again from the log at any time.
type Note struct {
	Kind string
	Turn int
	Data any // one of the types below, by Kind
}

// Data of notes. Text of people and models is left out where content is off.
type (
	// AgentStarted is agent.started.
	AgentStarted struct {
		Name    string `json:"name"`
		Parent  ID     `json:"parent,omitempty"`
		Model   string `json:"model"`
		Goal    string `json:"goal,omitempty"`
		Tools   int    `json:"tools"`
		MaxTurn int    `json:"max_turns"`
		// Recalled is how many messages of an earlier history it begins with.
		Recalled int `json:"recalled,omitempty"`
	}
	// AgentResumed is agent.resumed.
	AgentResumed struct {
		Phase Phase  `json:"phase"`
		Life  string `json:"life"`
	}
	// AgentParked is agent.parked and query.asked.
	AgentParked struct {
		Query    string `json:"query"`
		Question string `json:"question,omitempty"`
		Reason   Reason `json:"reason"`
		Call     string `json:"call,omitempty"`
	}
	// QueryAnswered is query.answered.
	QueryAnswered struct {
		Query    string `json:"query"`
		Decision string `json:"decision"`
	}
	// AgentFinished is agent.finished.
	AgentFinished struct {
		Name    string      `json:"name"`
		Reason  Reason      `json:"stop_reason"`
		Partial bool        `json:"partial"`
		Detail  string      `json:"detail,omitempty"`
		Text    string      `json:"text,omitempty"`
		Turns   int         `json:"turns"`
		Calls   int         `json:"tool_calls"`
		Journal string      `json:"journal,omitempty"` // of an agent that did not complete
		Usage   model.Usage `json:"usage"`
	}
	// TurnStarted is turn.started.
	TurnStarted struct {
		Transition Transition `json:"transition,omitempty"`
		Lease      int        `json:"lease"`
		MaxOutput  int64      `json:"max_output_tokens"`
	}
	// TurnFinished is turn.finished: Transition is why the loop goes on, empty at the end.
	TurnFinished struct {
		Transition Transition `json:"transition,omitempty"`
		Phase      Phase      `json:"phase"`
	}
	// ModelStarted is model.started.
	ModelStarted struct {
		Model   string  `json:"model"`
		Lease   int     `json:"lease"`
		Purpose Purpose `json:"purpose,omitempty"` // summary, or empty for a turn
	}
	// ModelFinished is model.finished, model.retry and error.raised of a model.
	ModelFinished struct {
		Model      string           `json:"model"`
		Purpose    Purpose          `json:"purpose,omitempty"`
		Stop       model.Stop       `json:"stop,omitempty"`
		Usage      model.Usage      `json:"usage"`
		UsageKnown bool             `json:"usage_known"`
		TookMS     int64            `json:"took_ms"`
		Error      model.ErrorClass `json:"error,omitempty"`
		Detail     string           `json:"detail,omitempty"`
	}
	// Said is message.user, message.assistant and message.tombstoned.
	Said struct {
		Text  string `json:"text,omitempty"`
		Bytes int    `json:"bytes"`
		Calls int    `json:"calls,omitempty"`
		// Interrupted: the stream was cut here by a cancel.
		Interrupted bool `json:"interrupted,omitempty"`
	}
	// ToolNote is tool.proposed, tool.validated, tool.started and tool.finished, and the
	// delegation kinds, where Child is set.
	ToolNote struct {
		Call    string      `json:"call"`
		Tool    string      `json:"tool"`
		Class   model.Class `json:"class,omitempty"`
		Child   ID          `json:"child,omitempty"`
		Attempt int         `json:"attempt,omitempty"`
		Args    string      `json:"args,omitempty"`
		Error   bool        `json:"error,omitempty"`
		Bytes   int         `json:"bytes,omitempty"`
		Text    string      `json:"text,omitempty"`
		TookMS  int64       `json:"took_ms,omitempty"`
		// Ref names the whole of a result of which Text is a part, Size is its bytes.
		Ref  string `json:"ref,omitempty"`
		Size int64  `json:"size,omitempty"`
	}
	// StopNote is stop.proposed, stop.allowed and stop.vetoed.
	StopNote struct {
		Proposal int    `json:"proposal"`
		Why      string `json:"why,omitempty"`
		Final    bool   `json:"final,omitempty"`
	}
	// Limited is limit.soft.
	Limited struct {
		What string        `json:"what"`
		Used budget.Amount `json:"used,omitzero"`
	}
)

// Notes tells what a step did.
func Notes(before State, e Event, after State) []Note {
	before = before.adopted(e, after)
	turn := max(before.Turn, after.Turn)
	if after.Phase == Leasing || after.Phase == Thinking {
		turn = after.Turn + 1
	}
	n := notes{turn: turn}
	n.arrival(before, e, after)
	n.hooks(before, e, after)
	n.kin(before, e, after)
	if before.Phase == Acting {
		// Results are still part of their turn; what is said after them is not.
		n.turn = before.Turn
		n.calls(before, e, after)
		n.turn = turn
		n.messages(before, after)
	} else {
		n.messages(before, after)
		n.calls(before, e, after)
	}
	n.retries(before, e, after)
	n.kept(before, e)
	n.watch(before, after)
	n.context(before, after)
	n.phases(before, after)
	n.drift(before, after)
	return n.list
}

type notes struct {
	turn int
	live string // the call by which a child went into the background
	list []Note
}

func (n *notes) add(kind string, data any) { n.list = append(n.list, Note{kind, n.turn, data}) }

// arrival tells of the event itself.
func (n *notes) arrival(before State, e Event, after State) {
	switch f := e.Fact.(type) {
	case Submitted:
		if before.Phase == "" {
			t := after.Task
			n.add("agent.started", AgentStarted{Name: t.Name, Parent: t.Parent, Model: t.Model.Name, Goal: t.Goal,
				Tools: len(t.Tools), MaxTurn: t.Limits.Turns, Recalled: after.Recalled})
		}
	case Resumed:
		if before.Phase != "" && before.Phase != Done && before.Life != "" && !before.Rested {
			n.add("agent.resumed", AgentResumed{Phase: before.Phase, Life: f.Life})
		}
	case Granted:
		if before.Phase == Leasing && after.Phase == Thinking {
			if after.Purpose == ForTurn {
				n.add("turn.started", TurnStarted{Transition: after.Transition, Lease: f.Lease, MaxOutput: f.Output})
			}
			n.add("model.started", ModelStarted{Model: after.calling(), Lease: f.Lease, Purpose: after.Purpose})
		}
	case Replied:
		if before.Phase == Thinking && f.Lease == before.Lease {
			n.turn = before.Turn + 1
			n.add("model.finished", ModelFinished{Model: before.calling(), Purpose: before.Purpose, Stop: f.Reply.Stop, Usage: f.Reply.Usage,
				UsageKnown: f.Reply.UsageKnown, TookMS: f.TookMS})
		}
	case Barred:
		n.unanswered(before, Failed{Lease: f.Lease, Class: model.RateLimit, Detail: f.Why, Unbilled: true, AfterMS: f.AfterMS}, after)
	case Failed:
		n.unanswered(before, f, after)
	case StopAllowed:
		if before.proposes(f.Proposal) {
			n.add("stop.allowed", StopNote{Proposal: f.Proposal})
		}
	case StopVetoed:
		if before.proposes(f.Proposal) {
			n.turn = before.Turn
			n.add("stop.vetoed", StopNote{Proposal: f.Proposal, Why: f.Why, Final: f.Final})
		}
	case Woke:
		if after.Soft && !before.Soft {
			n.add("limit.soft", Limited{What: "wall clock"})
		}
	case Answered:
		if before.Query.Query != "" && f.Query == before.Query.Query {
			n.add("query.answered", QueryAnswered{Query: f.Query, Decision: f.Decision})
		}
	}
}

// messages tells what was appended to the transcript, and what was struck.
func (n *notes) messages(before, after State) {
	old := len(before.History)
	for i, m := range after.History {
		switch {
		case i < old:
			if i == old-1 && m.Tombstone && !before.History[i].Tombstone {
				n.add("message.tombstoned", Said{Bytes: len(m.Text)})
			}
		case m.Tombstone:
			n.add("message.tombstoned", Said{Bytes: len(m.Text)})
		case m.Role == model.Assistant:
			n.add("message.assistant", Said{Text: m.Text, Bytes: len(m.Text), Calls: len(m.Calls), Interrupted: m.Interrupted})
			for _, c := range m.Calls {
				n.add("tool.proposed", ToolNote{Call: c.ID, Tool: c.Name, Args: c.Args})
			}
		case m.Role == model.User:
			n.add("message.user", Said{Text: m.Text, Bytes: len(m.Text)})
		}
	}
}

// calls tells how far the calls have come.
func (n *notes) calls(before State, e Event, after State) {
	was := map[string]Call{}
	for _, c := range before.Calls {
		was[c.ID] = c
	}
	took := int64(0)
	if f, ok := e.Fact.(Returned); ok {
		took = f.TookMS
		if f.Live {
			n.live = f.Call
		}
	}
	for _, c := range after.Calls {
		old, known := was[c.ID]
		if !known && c.Stage != Ended {
			n.add("tool.validated", ToolNote{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child})
		}
		if c.Stage == Running && (old.Stage != Running || old.Attempt != c.Attempt) {
			n.add(word(c.Child, "tool.started", "delegation.requested"),
				ToolNote{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child, Attempt: c.Attempt, Args: c.Args})
		}
		if c.Stage == Ended && old.Stage != Ended {
			n.ended(c.Name, c.Child, c.Result, took)
			n.loaded(after, c, c.Result)
		}
	}
	if len(after.Calls) > 0 || len(after.History) == len(before.History) {
		return
	}
	names := map[string]string{}
	for i, m := range after.History[max(0, len(before.History)-1):] {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		if i == 0 && len(before.History) > 0 {
			continue // told before
		}
		for _, r := range m.Results {
			old, known := was[r.Call]
			if name := names[r.Call]; !known || old.Stage != Ended {
				if known {
					name = old.Name
				}
				n.ended(name, old.Child, r, took)
				n.loaded(after, old, r)
			}
		}
	}
}

func (n *notes) ended(tool string, child ID, r model.ToolResult, took int64) {
	finished := "delegation.finished"
	if r.Call == n.live { // its answer is still to come
		finished = "delegation.background"
	}
	n.add(word(child, "tool.finished", finished),
		ToolNote{Call: r.Call, Tool: tool, Child: child, Error: r.Error, Bytes: len(r.Text), Text: r.Text, TookMS: took})
}

func word(child ID, tool, delegation string) string {
	if child != "" {
		return delegation
	}
	return tool
}

// phases tells where the loop is now.
func (n *notes) phases(before, after State) {
	defer n.query(before, after)
	if before.Phase == after.Phase && before.Lease == after.Lease && before.Proposal == after.Proposal {
		return
	}
	if before.atWork() && !after.atWork() {
		n.turn = before.Turn
		if before.Phase == Thinking {
			n.turn++ // its reply was the first that was heard of it
		}
		next := TurnFinished{Phase: after.Phase}
		if after.Phase == Leasing || after.Phase == Hooking || after.Phase == Waiting && after.Query.Query == "" && !after.Idle {
			next.Transition = after.Transition // why the loop goes on; at its end it does not
		}
		n.add("turn.finished", next)
	}
	switch {
	case after.Phase == Stopping && after.Proposal > before.Proposal:
		n.add("stop.proposed", StopNote{Proposal: after.Proposal})
	case after.Phase == Done && before.Phase != Done:
		o := after.Outcome
		n.add("agent.finished", AgentFinished{Name: after.Task.Name, Reason: o.Reason, Partial: o.Partial, Detail: o.Detail,
			Text: o.Text, Turns: after.Turn, Calls: after.ToolCalls, Usage: after.Usage, Journal: o.Journal})
	}
}

// query tells of a question that was put to a person.
func (n *notes) query(before, after State) {
	if q := after.Query; q.Query != "" && q.Query != before.Query.Query {
		data := AgentParked{Query: q.Query, Question: q.Question, Reason: q.Reason, Call: q.Call}
		n.add("query.asked", data)
		n.add("agent.parked", data)
	}
}

// Bare is a note's data without what people, models and tools said.
func Bare(data any) any {
	switch d := data.(type) {
	case AgentStarted:
		d.Goal = ""
		return d
	case AgentParked:
		d.Question = ""
		return d
	case AgentFinished:
		d.Text, d.Journal = "", ""
		return d
	case Said:
		d.Text = ""
		return d
	case AgentSaid:
		d.Text = ""
		return d
	case ToolNote:
		d.Args, d.Text = "", ""
		return d
	case ToolRetry:
		d.Text = ""
		return d
	case StopNote:
		d.Why = ""
		return d
	case JournalUpdated:
		d.Digest = ""
		return d
	case Warned:
		d.Why = ""
		return d
	}
	return bareHook(data)
}
