package agent

import "fmt"

// A log that loses its tail forgets what was said before, in either direction, and
// two logs that each wait for the other wait forever (PROTOCOL P13, P25). So each
// counts: an agent what it has asked and what it was told, its supervisor the same
// for each member. StatusAsked and Status compare the counts. Letters between two
// actors keep their order, so a count that is ahead of the reader's names a loss.

// StatusAsked is the question of a supervisor to a member that has not ended by
// what its log says. A member that has ended repeats its last Finish.
type StatusAsked struct {
	// Life is the activation of the supervisor that asks: a question is sent again
	// after a crash like any letter, and only a new activation's shows that the
	// supervisor's log is shorter than what was heard from it.
	Life string `msgpack:"s,omitempty"`
	// Ordinal counts the facts that this member was told, this one included; 0: unknown.
	Ordinal int `msgpack:"o,omitempty"`
}

// Status answers: the agent works, or waits.
type Status struct {
	// Ordinal counts the asks of this agent, this one included.
	Ordinal int `msgpack:"o"`
}

// Kind is the fact's word in logs.
func (StatusAsked) Kind() string { return "status_asked" }

// Kind is the ask's word in the supervisor's log.
func (Status) Kind() string { return "status" }

func (Status) effect() {}

// statusAsked says how the agent stands. short: the log of the supervisor is shorter
// than what this agent heard from it, so nothing that it says arrives any more.
func statusAsked(s State, f StatusAsked, short bool) (State, []Effect) {
	lost := ""
	switch {
	case s.Phase == "" || s.Phase == Done: // its log is closed next, and answers: see actors/life
		return s, nil
	case short:
		lost = "the log of the run is shorter than what was heard from it"
	case f.Ordinal > s.Received:
		lost = fmt.Sprintf("the log of %s has %d messages of its supervisor, and %d were sent", s.Task.ID, s.Received, f.Ordinal)
	default:
		return s, []Effect{Status{}}
	}
	return then([]Effect{Back{Life: s.Life, Node: s.Node, Damaged: lost}})(canceled(s, Canceled{Why: lost, Now: true, As: LogDamaged}))
}

// Closed is the last entry of a log: nothing after it counts.
type Closed struct {
	N uint64 `msgpack:"n"`
	// Finish is an agent's last word with its identity (PROTOCOL P6), so that it can
	// be repeated when nothing else is left of the log.
	Finish *Finish `msgpack:"f,omitempty"`
	FromN  uint64  `msgpack:"o,omitempty"`
	FromI  int     `msgpack:"i,omitempty"`
}

// lastWord is how the agent ends.
func (s State) lastWord() Finish {
	return Finish{Outcome: s.Outcome, Turns: s.Turn, Calls: s.ToolCalls, Usage: s.Usage, Node: s.Node,
		ModelMS: s.ModelMS, ToolMS: s.ToolMS, WorkedMS: s.worked()}
}

// numbered counts the asks among effects, and writes the count into those that say it.
func (s State) numbered(fx []Effect) (State, []Effect) {
	for i, e := range fx {
		if _, ok := e.(Ask); !ok {
			continue
		}
		s.Sent++
		if !s.countsWork() { // a log of older rules says what it said
			continue
		}
		switch f := e.(type) {
		case Status:
			f.Ordinal = s.Sent
			fx[i] = f
		case Finish:
			f.Ordinal = s.Sent
			fx[i] = f
		case Back:
			f.Ordinal, f.Heard = s.Sent, s.Received
			fx[i] = f
		}
	}
	return s, fx
}
