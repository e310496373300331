package agent

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Output holds the effects of a step, and its events for observers.
type Output struct {
	Effects []Effect
	Events  []event.Event
}

// eventGroup orders the events of one step: observers read them group by group,
// whatever order the decisions had.
type eventGroup int

const (
	entryEvents    eventGroup = iota // what the entry itself reports
	hookEvents                       // answers of hooks, and their consequences
	peerEvents                       // messages of related agents
	messageEvents                    // appended to the transcript, or struck from it
	callEvents                       // progress of the calls; before the messages while a batch runs
	retryEvents                      // replaced models and repeated calls
	resultEvents                     // results that were not kept
	loopEvents                       // detected loops
	contextEvents                    // the journal, recoveries and compactions
	turnEndEvents                    // the end of the turn
	stopEvents                       // proposed stops, and the end of the agent
	questionEvents                   // questions to people
	driftEvents                      // how the node differs from the record
)

// stepEvent is one event of the step under way.
type stepEvent struct {
	event.Event
	group   eventGroup
	order   int // within its group: the position of a call in its reply
	message int // messageEvents: the index of the message in History
}

// turnOfStep marks an event whose turn is that of the whole step.
const turnOfStep = -1

// stepEvents collects the events of the step under way. The code that makes a decision publishes it;
// what depends on the whole step is filled in once, by publishedEvents. Each Step begins with an
// empty collection, so that no two futures of a State share one.
type stepEvents struct {
	list []stepEvent

	entryTurn *int       // the turn to which the entry belongs; nil: the state says it
	cause     string     // why this entry makes the loop replace the model
	replied   bool       // the step read a reply: its calls are new
	returned  Returned   // the result that the step read
	restarted []callBase // attempts that observers have seen begin and that begin again
}

// callBase names an attempt of a call.
type callBase struct {
	call    string
	attempt int
}

// publish adds an event about the turn of the step.
func (c *stepEvents) publish(g eventGroup, kind event.Kind, data any) {
	c.publishIn(g, turnOfStep, kind, data)
}

// publishIn adds an event about another turn.
func (c *stepEvents) publishIn(g eventGroup, turn int, kind event.Kind, data any) {
	c.list = append(c.list, stepEvent{group: g, Event: event.Event{Kind: kind, Turn: turn, Data: data}})
}

// publishOnce adds an event of which a step has at most one; publishedEvents fills in its data.
func (c *stepEvents) publishOnce(g eventGroup, order int, kind event.Kind, data any) {
	if !slices.ContainsFunc(c.list, func(e stepEvent) bool { return e.Kind == kind }) {
		c.list = append(c.list, stepEvent{group: g, order: order, Event: event.Event{Kind: kind, Turn: turnOfStep, Data: data}})
	}
}

// publishedEvents takes the events of a step out of the state, in the order in which observers
// read them. It fills in the figures that only the whole step knows.
func (s State) publishedEvents(before State) (State, []event.Event) {
	turn, last := s.turnOfEvents(before)
	if s.turnEnded(before) {
		s.events.publish(turnEndEvents, event.KindTurnFinished, s.turnFinished())
	}
	c := s.events
	s.events = stepEvents{}
	if len(c.list) == 0 {
		return s, nil
	}
	c.list = slices.DeleteFunc(c.list, s.overtaken)
	rank := func(g eventGroup) int {
		if g == callEvents && before.Phase == Acting { // results belong to their turn, later messages do not
			return int(messageEvents)*2 - 1
		}
		return int(g) * 2
	}
	slices.SortStableFunc(c.list, func(a, b stepEvent) int {
		return cmp.Or(rank(a.group)-rank(b.group), a.order-b.order)
	})
	list := make([]event.Event, len(c.list))
	for i, e := range c.list {
		if e.Turn == turnOfStep {
			switch e.Turn = turn; {
			case e.group == callEvents && before.Phase == Acting, e.group == loopEvents:
				e.Turn = before.Turn
			case e.group >= turnEndEvents:
				e.Turn = last
			}
		}
		list[i] = s.withFigures(before, c, e)
	}
	return s, list
}

// turnOfEvents returns the turn of the events of a step, and that of the events about its end.
func (s State) turnOfEvents(before State) (turn, last int) {
	turn = max(before.Turn, s.Turn)
	if s.Phase == Leasing || s.Phase == Thinking {
		turn = s.Turn + 1
	}
	if s.events.entryTurn != nil {
		turn = *s.events.entryTurn
	}
	switch {
	case !s.turnEnded(before):
		return turn, turn
	case before.Phase == Thinking: // its reply is the first event of that turn
		return turn, before.Turn + 1
	}
	return turn, before.Turn
}

// turnEnded reports whether the step has ended a turn.
func (s State) turnEnded(before State) bool {
	moved := before.Phase != s.Phase || before.Lease != s.Lease || before.Proposal != s.Proposal
	return moved && before.atWork() && !s.atWork()
}

// turnFinished describes the end of a turn: why the loop continues, unless it ends.
func (s State) turnFinished() event.TurnFinished {
	d := event.TurnFinished{Phase: string(s.Phase)}
	if s.Phase == Leasing || s.Phase == Hooking || s.Phase == Waiting && s.Query.Query == "" && !s.Idle {
		d.Transition = s.Transition
	}
	return d
}

// atWork reports whether a turn is in progress, from its model call to the end of
// its calls, including the time in which a person is asked about one of them.
func (s State) atWork() bool {
	switch s.Phase {
	case Thinking:
		return s.Purpose == ForTurn
	case Hooking:
		return s.Gate.Point == spec.HookOutput
	case Waiting:
		return len(s.Calls) > 0
	}
	return s.Phase == Acting
}

// withFigures fills in the data of an event that depend on the whole step.
func (s State) withFigures(before State, c stepEvents, e stepEvent) event.Event {
	switch d := e.Data.(type) {
	case event.ModelFinished:
		if e.Kind == event.KindErrorRaised && s.Phase == Waiting {
			e.Kind = event.KindModelRetry
		}
	case event.GuardrailFired:
		if e.Kind == event.KindGuardrailEscalated {
			e.Data = s.escalation(d)
		}
	case event.LoopDetected:
		d.Level = s.Habits.Level
		e.Data = d
	case event.JournalUpdated:
		e.Data = event.JournalUpdated{Edits: s.Journal.Edits, Sections: changed(before.Journal, s.Journal),
			Bytes: len(s.Journal.whole()), Digest: s.Journal.digest()}
	case event.Recovery:
		e.Data = event.Recovery{Stage: s.recoveryStage(before), Used: s.Ladder.Used, Most: spec.RecoveriesMax,
			Tokens: s.Estimate(), Messages: len(s.Prompt()), Window: s.window()}
	case event.Compaction:
		e.Data = s.compaction(before)
	case event.ToolCall:
		if e.group == callEvents {
			s.settleCall(c, &e, d)
		}
	}
	return e.Event
}

// publishMessage publishes a message that is appended to the transcript. Observers learn of results with their calls.
func (c *stepEvents) publishMessage(at int, m model.Message) {
	add := func(kind event.Kind, data any) {
		c.list = append(c.list, stepEvent{group: messageEvents, message: at, Event: event.Event{Kind: kind, Turn: turnOfStep, Data: data}})
	}
	switch {
	case m.Tombstone:
		add(event.KindMessageTombstoned, event.Said{Bytes: len(m.Text)})
	case m.Role == model.Assistant:
		add(event.KindMessageAssistant, event.Said{Text: m.Text, Bytes: len(m.Text), Calls: len(m.Calls), Interrupted: m.Interrupted})
		for _, call := range m.Calls {
			add(event.KindToolProposed, event.ToolCall{Call: call.ID, Tool: call.Name, Args: call.Args})
		}
	case m.Role == model.User:
		add(event.KindMessageUser, event.Said{Text: m.Text, Bytes: len(m.Text)})
	}
}

// publishTombstone publishes that a message is struck, instead of what the step has published of it.
func (c *stepEvents) publishTombstone(at int, m model.Message) {
	c.list = slices.DeleteFunc(c.list, func(e stepEvent) bool { return e.group == messageEvents && e.message == at })
	m.Tombstone = true
	c.publishMessage(at, m)
}
