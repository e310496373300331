package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
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

// Order of the events about the context. A step has at most one of each.
const (
	journalOrder = iota
	recoveryOrder
	compactionOrder
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
// what depends on the whole step is filled in once, by finishedStep. Each Step begins with an
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

// publishOnce adds an event unless the step has one of that kind already; finishedStep fills in its data.
func (c *stepEvents) publishOnce(g eventGroup, order int, kind event.Kind, data any) {
	if !slices.ContainsFunc(c.list, func(e stepEvent) bool { return e.Kind == kind }) {
		c.list = append(c.list, stepEvent{group: g, order: order, Event: event.Event{Kind: kind, Turn: turnOfStep, Data: data}})
	}
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

// prependEffects puts effects in front of those that follow. It is curried so that the results of
// another step can be its arguments: prependEffects(fx)(endTurn(s, reason)).
func prependEffects(first []Effect) func(*State, []Effect) (*State, []Effect) {
	return func(s *State, fx []Effect) (*State, []Effect) { return s, append(first, fx...) }
}
