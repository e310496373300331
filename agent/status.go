package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
)

// A log that loses its tail loses messages in either direction, and two logs that each
// wait for the other wait forever (PROTOCOL P13, P25). So both sides count: an agent
// counts the messages that it sent and those that it received, its supervisor does the same for
// each member. StatusAsked and Status compare the counts. Outbox messages between two
// actors keep their order, so a count that is ahead of the reader's proves a loss.

// StatusAsked is a supervisor's question to a member that, by the supervisor's
// log, has not ended. A member that has ended repeats its last Finish.
type StatusAsked struct {
	// Activation is the activation of the supervisor that asks: a crash may repeat a
	// question like any outbox message, and only the question of a new activation
	// shows that the supervisor's log is shorter than what the agent has read from it.
	Activation string `msgpack:"s,omitempty"`
	// Ordinal counts the messages to this member, this one included; 0: unknown.
	Ordinal int `msgpack:"o,omitempty"`
}

// Status answers that the agent works, or waits.
type Status struct {
	// Ordinal counts the messages of this agent to its supervisor, this one included.
	Ordinal int `msgpack:"o"`
}

// Kind is the fact's word in logs.
func (StatusAsked) Kind() string { return "status_asked" }

// Kind is the message's word in the supervisor's log.
func (Status) Kind() string { return "status" }

func (Status) effect() {}

// handleStatusAsked reports the agent's status. short: the log of the supervisor is shorter than
// what this agent has read from it, so no message of the supervisor arrives any more.
func handleStatusAsked(s *State, f StatusAsked, short bool) (*State, []Effect) {
	lost := ""
	switch {
	case s.Phase == "" || s.Phase == Done: // its log closes next, and answers: see internal/activation
		return s, nil
	case short:
		lost = "the log of the run is shorter than what the agent received from it"
	case f.Ordinal > s.Received:
		lost = fmt.Sprintf("the log of %s has %d messages of its supervisor, and %d were sent", s.Task.ID, s.Received, f.Ordinal)
	default:
		return s, []Effect{Status{}}
	}
	return prependEffects([]Effect{ReportLog{Activation: s.Activation, Node: s.Node, Damaged: lost}})(handleCanceled(s, Canceled{Why: lost, Now: true, As: spec.LogDamaged}))
}

// Closed is the last entry of a log: nothing after it counts.
type Closed struct {
	N uint64 `msgpack:"n"`
	// Finish is an agent's last message with its identity (PROTOCOL P6), so that it
	// can be repeated when nothing else is left of the log.
	Finish *Finish `msgpack:"f,omitempty"`
	FromN  uint64  `msgpack:"o,omitempty"`
	FromI  int     `msgpack:"i,omitempty"`
}

// newFinish returns the message with which the agent ends.
func newFinish(s *State) Finish {
	return Finish{Outcome: s.Outcome, Turns: s.Turn, Calls: s.ToolCalls, Usage: s.Usage, Node: s.Node,
		ModelMS: s.ModelMS, ToolMS: s.ToolMS, WorkedMS: s.Worked, Foreign: s.Foreign}
}

// countSent counts the messages to the supervisor among effects, and writes the count into those that carry it.
func countSent(s *State, fx []Effect) (*State, []Effect) {
	for i, e := range fx {
		if _, ok := e.(SupervisorMessage); !ok {
			continue
		}
		s.Sent++
		switch f := e.(type) {
		case Status:
			f.Ordinal = s.Sent
			fx[i] = f
		case Finish:
			f.Ordinal = s.Sent
			fx[i] = f
		case ReportLog:
			f.Ordinal, f.Received = s.Sent, s.Received
			fx[i] = f
		default: // the other messages carry no count
		}
	}
	return s, fx
}
