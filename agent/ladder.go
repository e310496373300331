package agent

import (
	"cmp"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Rung is a step of the ladder that a loop climbs when it loses context faster
// than it recovers.
type Rung int

// Rungs. A compaction that does not last is followed by a deep prune, and that by a question
// to a person; an agent that continues after the question starts again at the first rung.
const (
	rungNone  Rung = iota
	rungFold       // R1: a compaction
	rungPrune      // R2: a deep prune
	rungAsk        // R3: a question to a person
)

// Ladder records how far the loop has climbed.
//
// A loop has at most RecoveriesMax recoveries in its lifetime. These count as
// recoveries: every rung that follows another within Context.Within turns, the
// reactive compaction, and a compaction that cannot shrink the prompt.
// Housekeeping does not count: a compaction that no rung precedes, or none within
// that many turns. So there are at most Turns/Within of those, and when the
// recoveries are used up the loop continues to its limits.
type Ladder struct {
	Rung     Rung // the last one
	Turn     int  // when
	Used     int  // recoveries so far
	Reactive bool // the one reactive compaction was made
}

// summaryPart is the part of the window that a summary may take.
const summaryPart = 8

// context returns the task's Context with its defaults.
func (s State) context() spec.Context {
	c := s.Task.LoopOptions.Context
	c.Tail = cmp.Or(c.Tail, spec.CompactTail)
	c.PruneTail = cmp.Or(c.PruneTail, spec.PruneTail)
	c.Within = cmp.Or(c.Within, spec.LadderTurns)
	c.Summary = cmp.Or(c.Summary, spec.SummaryTokens)
	if w := s.window(); w > 0 {
		c.Summary = min(c.Summary, max(spec.OutputUseful, w/summaryPart))
	}
	return c
}

// climb returns the next rung, and whether it counts as a recovery. If no person
// can be asked, a prune replaces the question.
func (s State) climb() (next Rung, counts bool) {
	switch l := s.Ladder; {
	case l.Rung == rungNone || s.Turn-l.Turn > s.context().Within:
		return rungFold, false
	case l.Rung == rungFold:
		return rungPrune, true
	case l.Rung == rungPrune && s.Task.LoopOptions.Ask:
		return rungAsk, true
	case l.Rung == rungPrune:
		return rungPrune, true
	}
	return rungFold, true
}

// climbed records a rung.
func (s State) climbed(r Rung, counts bool) State {
	s.Ladder.Rung, s.Ladder.Turn = r, s.Turn
	if counts {
		s.Ladder.Used++
		s.events.publishOnce(contextEvents, recoveryOrder, event.KindRecoveryFired, event.Recovery{})
	}
	return s
}

// exhausted reports whether no recovery is left.
func (s State) exhausted() bool { return s.Ladder.Used >= spec.RecoveriesMax } //mutant:recoveries-without-end

// losingContext is the question to a person on the last rung.
const losingContext = "I've made progress but I'm losing context faster than I can recover. Keep going, change direction, or stop?"
