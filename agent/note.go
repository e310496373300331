package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Notes returns the events of a step, for observers.
func Notes(before State, e Event, after State) []event.Event {
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
		// Results still belong to their turn; later messages do not.
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
	list []event.Event
}

func (n *notes) add(kind string, data any) {
	n.list = append(n.list, event.Event{Kind: kind, Turn: n.turn, Data: data})
}

// arrival notes the event itself.
func (n *notes) arrival(before State, e Event, after State) {
	switch f := e.Fact.(type) {
	case Submitted:
		if before.Phase == "" {
			t := after.Task
			n.add(event.KindAgentStarted, event.AgentStarted{Name: t.Name, Parent: t.Parent, Model: t.Model.Name, Goal: t.Goal,
				Tools: len(t.Tools), MaxTurn: t.Limits.Turns, Recalled: after.Recalled})
		}
	case Resumed:
		if before.Phase != "" && before.Phase != Done && before.Life != "" && !before.Rested {
			n.add(event.KindAgentResumed, event.AgentResumed{Phase: string(before.Phase), Life: f.Life})
		}
	case Granted:
		if before.Phase == Leasing && after.Phase == Thinking {
			if after.Purpose == ForTurn {
				n.add(event.KindTurnStarted, event.TurnStarted{Transition: after.Transition, Lease: f.Lease, MaxOutput: f.Output})
			}
			n.add(event.KindModelStarted, event.ModelStarted{Model: after.calling(), Lease: f.Lease, Purpose: string(after.Purpose)})
		}
	case Replied:
		if before.Phase == Thinking && f.Lease == before.Lease {
			n.turn = before.Turn + 1
			n.add(event.KindModelFinished, event.ModelFinished{Model: before.calling(), Purpose: string(before.Purpose), Stop: f.Reply.Stop, Usage: f.Reply.Usage,
				UsageKnown: f.Reply.UsageKnown, TookMS: f.TookMS})
		}
	case Barred:
		n.unanswered(before, Failed{Lease: f.Lease, Class: model.RateLimit, Detail: f.Why, Unbilled: true, AfterMS: f.AfterMS}, after)
	case Failed:
		n.unanswered(before, f, after)
	case StopAllowed:
		if before.proposes(f.Proposal) {
			n.add(event.KindStopAllowed, event.Stop{Proposal: f.Proposal})
		}
	case StopVetoed:
		if before.proposes(f.Proposal) {
			n.turn = before.Turn
			n.add(event.KindStopVetoed, event.Stop{Proposal: f.Proposal, Why: f.Why, Final: f.Final})
		}
	case Woke:
		if after.Soft && !before.Soft {
			n.add(event.KindLimitSoft, event.LimitReached{What: "wall clock"})
		}
	case Answered:
		if before.Query.Query != "" && f.Query == before.Query.Query {
			n.add(event.KindQueryAnswered, event.QueryAnswered{Query: f.Query, Decision: f.Decision})
		}
	}
}

// messages notes the messages that were appended to the transcript, and those that were struck.
func (n *notes) messages(before, after State) {
	old := len(before.History)
	for i, m := range after.History {
		switch {
		case i < old:
			if i == old-1 && m.Tombstone && !before.History[i].Tombstone {
				n.add(event.KindMessageTombstoned, event.Said{Bytes: len(m.Text)})
			}
		case m.Tombstone:
			n.add(event.KindMessageTombstoned, event.Said{Bytes: len(m.Text)})
		case m.Role == model.Assistant:
			n.add(event.KindMessageAssistant, event.Said{Text: m.Text, Bytes: len(m.Text), Calls: len(m.Calls), Interrupted: m.Interrupted})
			for _, c := range m.Calls {
				n.add(event.KindToolProposed, event.ToolCall{Call: c.ID, Tool: c.Name, Args: c.Args})
			}
		case m.Role == model.User:
			n.add(event.KindMessageUser, event.Said{Text: m.Text, Bytes: len(m.Text)})
		}
	}
}

// calls notes the progress of the calls.
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
			n.add(event.KindToolValidated, event.ToolCall{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child})
		}
		if c.Stage == Running && (old.Stage != Running || old.Attempt != c.Attempt) {
			n.add(word(c.Child, event.KindToolStarted, event.KindDelegationRequested),
				event.ToolCall{Call: c.ID, Tool: c.Name, Class: c.Class, Child: c.Child, Attempt: c.Attempt, Args: c.Args})
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
			continue // an earlier step noted it
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

func (n *notes) ended(tool string, child spec.ID, r model.ToolResult, took int64) {
	finished := event.KindDelegationFinished
	if r.Call == n.live { // its answer is still to come
		finished = event.KindDelegationBackground
	}
	n.add(word(child, event.KindToolFinished, finished),
		event.ToolCall{Call: r.Call, Tool: tool, Child: child, Error: r.Error, Bytes: len(r.Text), Text: r.Text, TookMS: took})
}

func word(child spec.ID, tool, delegation string) string {
	if child != "" {
		return delegation
	}
	return tool
}

// phases notes the phase of the loop.
func (n *notes) phases(before, after State) {
	defer n.query(before, after)
	if before.Phase == after.Phase && before.Lease == after.Lease && before.Proposal == after.Proposal {
		return
	}
	if before.atWork() && !after.atWork() {
		n.turn = before.Turn
		if before.Phase == Thinking {
			n.turn++ // its reply is the first event of that turn
		}
		next := event.TurnFinished{Phase: string(after.Phase)}
		if after.Phase == Leasing || after.Phase == Hooking || after.Phase == Waiting && after.Query.Query == "" && !after.Idle {
			next.Transition = after.Transition // why the loop continues; at its end it does not
		}
		n.add(event.KindTurnFinished, next)
	}
	switch {
	case after.Phase == Stopping && after.Proposal > before.Proposal:
		n.add(event.KindStopProposed, event.Stop{Proposal: after.Proposal})
	case after.Phase == Done && before.Phase != Done:
		o := after.Outcome
		n.add(event.KindAgentFinished, event.AgentFinished{Name: after.Task.Name, Reason: o.Reason, Partial: o.Partial, Detail: o.Detail,
			Text: o.Text, Turns: after.Turn, Calls: after.ToolCalls, Usage: after.Usage, Journal: o.Journal})
	}
}

// query notes a question to a person.
func (n *notes) query(before, after State) {
	if q := after.Query; q.Query != "" && q.Query != before.Query.Query {
		data := event.AgentParked{Query: q.Query, Question: q.Question, Reason: q.Reason, Call: q.Call}
		n.add(event.KindQueryAsked, data)
		n.add(event.KindAgentParked, data)
	}
}
