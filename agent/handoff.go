package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// A handoff gives the conversation to another agent, with its history. It is a delegation whose child
// takes the place of its caller: the caller makes no further model request, passes on whatever still
// reaches it, and ends as the other agent ends, with the same answer. Until the supervisor has accepted
// the handoff, the caller has the conversation.

const handoffTool = toolname.Handoff

// handoffArgs are the arguments of handoff.
type handoffArgs struct{ Agent, Message string }

// HandoffSpec describes handoff to a model. The supervisor adds the agents that there are.
func HandoffSpec() model.ToolSpec {
	return model.ToolSpec{Name: handoffTool, Class: model.Read,
		Description: "Give this conversation to another agent, with all that was said and done so far. It answers in your place, and you do nothing more. Call it alone in a reply.",
		Schema: `{"type":"object","properties":{"agent":{"type":"string"},"message":{"type":"string","description":"what the other agent should know and do now"}},` +
			`"required":["agent","message"],"additionalProperties":false}`}
}

// handoffError returns the error in the arguments of handoff, or "" if they are valid.
func handoffError(args string) string {
	var a handoffArgs
	decodeArgs(args, &a) // arguments that do not decode are empty
	switch {
	case strings.TrimSpace(a.Agent) == "" || len(a.Agent) > nameMax:
		return "agent names no agent"
	case strings.TrimSpace(a.Message) == "":
		return "the message is empty"
	case len(args) > goalBytesMax:
		return fmt.Sprintf("the message is %d bytes, at most %d are allowed", len(args), goalBytesMax)
	}
	return ""
}

// handedAnswer is how the agent that has the conversation has ended.
type handedAnswer struct {
	Outcome spec.Outcome
	Text    string // of the result of the call
	Error   bool
}

// refuseEndsBesideCalls ends the handoffs and declared failures of a reply that makes other calls, too: the results of
// those would come after the end, so no agent would read them.
func refuseEndsBesideCalls(calls []Call) []Call {
	if len(calls) < 2 {
		return calls
	}
	for i, c := range calls {
		if c.Kind == declarationCall && c.Stage != Ended {
			calls[i] = c.fail("not declared: this must be the only call of its reply. Call it again alone when the other calls are done")
		}
		if c.Kind == handoffCall && c.Stage != Ended { //mutant:handoff-beside-calls
			calls[i] = c.fail("not handed off: a handoff must be the only call of its reply. Call it again alone when the other calls are done")
		}
	}
	return calls
}

// handoffOf requests that another agent takes over, or says why it cannot.
func handoffOf(s *State, c Call) (e Delegate, why string) {
	if len(s.BackgroundChildren) > 0 {
		return e, "not handed off: background agents have not answered yet. Reply without a call to wait for their answers, then hand off"
	}
	var args handoffArgs
	decodeArgs(c.Args, &args)
	e = Delegate{Call: c.ID, Child: c.Child, Name: args.Agent, Goal: args.Message, HandsOff: true, Require: unmetRequirements(s), Journal: s.Journal.Args(),
		Obstacles: lastItems(obstaclesBesideHandoffs(s, c), obstaclesListed), Past: historyForHandoff(s), Tainted: s.Tainted}
	e.SoftMS, e.HardMS = timeLeft(&s.Task.Limits, s.workTime())
	return e, ""
}

// obstaclesBesideHandoffs are the obstacles without denied handoffs: the handoff that is requested makes up for them.
func obstaclesBesideHandoffs(s *State, c Call) []obstacle {
	return slices.DeleteFunc(slices.Clone(s.Obstacles), func(o obstacle) bool { return o.Target == toolTarget(c) })
}

// unmetRequirements are the requirements of the task that the record does not meet yet: the
// agent that takes over has to.
func unmetRequirements(s *State) spec.Require {
	r := s.Task.LoopOptions.Require
	r.Evidence = slices.DeleteFunc(slices.Clone(r.Evidence), s.hasEvidence)
	return r
}

// historyForHandoff returns the messages with which the other agent begins: all messages that the caller's model had
// read, and the caller's reply with the handoff. If they exceed an entry, the oldest are left out.
func historyForHandoff(s *State) []model.Message {
	said := strings.TrimSpace(s.History[s.newestReply()].Text)
	withoutJournal := trialCopy(s)
	withoutJournal.Journal.Shown = shownJournal{} // it is handed over on its own
	list := historyForChild(withoutJournal)
	if said != "" {
		list = append(slices.Clip(list), model.Message{Role: model.Assistant, Text: said})
	}
	left := 0
	for left < len(list) {
		note := []model.Message{}
		if left > 0 {
			note = append(note, model.Message{Role: model.User, Text: fmt.Sprintf(handoffCut, left)})
		}
		if _, ok := message.FitsEntry(append(note, list[left:]...)...); ok {
			return append(note, list[left:]...)
		}
		left++
		for left < len(list) && list[left].Role == model.ToolRole { // results without their calls
			left++
		}
	}
	return []model.Message{{Role: model.User, Text: fmt.Sprintf(handoffCut, left)}}
}

const handoffCut = "[The oldest %d messages of this conversation were left out when it was handed off: together they are too large.]"

// acceptHandoff records that the other agent has the conversation.
func acceptHandoff(s *State, i int) *State {
	c := s.Calls[i]
	if c.Disposition == handedOff {
		return s
	}
	c.Disposition = handedOff
	var args handoffArgs
	decodeArgs(c.Args, &args)
	s.events.publish(peerEvents, event.KindAgentHandedOff, event.AgentHandedOff{Call: c.ID, To: c.Child, Name: args.Agent})
	return s.withCall(i, c)
}

// passOn passes messages of people and agents on to the agent that has the conversation: those that have come since the
// newest turn, too.
func passOn(s *State, fx []Effect) (*State, []Effect) {
	if len(s.Mail)+len(s.PendingSteers) == 0 || !slices.ContainsFunc(s.Calls, func(c Call) bool { return c.Disposition == handedOff && c.Stage == Running }) {
		return s, fx
	}
	for _, m := range s.Mail {
		m.Call = "" // the call is one of this agent: the other one awaits no answer to it
		fx = append(fx, m)
	}
	fx = append(fx, steeredFacts(s)...)
	s.Mail = nil
	return withoutSteers(s), fx
}

func (Messaged) effect() {}

// noteHandedAnswer keeps how the agent that has the conversation has ended.
func noteHandedAnswer(s *State, i int, f Returned) *State {
	c := s.Calls[i]
	if f.Outcome == nil || c.Kind != handoffCall {
		return s
	}
	c.Handed = &handedAnswer{*f.Outcome, f.Text, f.Error}
	return s.withCall(i, c)
}

// handedOutcome is the outcome of an agent whose conversation another agent has ended: that agent's outcome, word for
// word. What hooks and guardrails of this agent say about the answer comes first, and so does an end for another
// reason than a person's cancel.
func handedOutcome(s *State, calls []Call) (o spec.Outcome, ended bool) {
	for _, c := range calls {
		if c.Handed == nil || s.Cancel != nil && s.Cancel.As != "" {
			continue
		}
		o = c.Handed.Outcome
		if c.Result.Text != c.Handed.Text {
			o.Text = c.Result.Text
		}
		if c.Result.Error && !c.Handed.Error {
			o.Reason, o.Partial = spec.Guardrail, true
		}
		return o, true //mutant:goes-on-after-a-handoff
	}
	return o, false
}
