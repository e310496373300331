package agent

import "cmp"

// Rung is a step of the ladder that a loop climbs when it loses context faster
// than it recovers.
type Rung int

// Rungs. Above a compaction that does not last comes a deep prune, above that
// a person; who goes on after the question begins again at the first.
const (
	rungNone  Rung = iota
	rungFold       // R1: a compaction
	rungPrune      // R2: a deep prune
	rungAsk        // R3: a question to a person
)

// Ladder is how far the loop has climbed.
//
// What counts as a recovery, at most RecoveriesMax in the life of a loop: every
// rung that follows another within Context.Within turns, the reactive
// compaction, and a compaction that cannot shrink the prompt. What does not
// count is housekeeping: a compaction that no rung has come before, or none
// within that many turns. So there are at most Turns/Within of those, and when
// the recoveries are used up the loop goes on to its limits.
type Ladder struct {
	Rung     Rung // the last one
	Turn     int  // when
	Used     int  // recoveries so far
	Reactive bool // the one reactive compaction was made
}

// summaryPart is the part of the window that a summary may take.
const summaryPart = 8

// context is what the task says, with its defaults.
func (s State) context() Context {
	c := s.Task.Manners.Context
	c.Tail = cmp.Or(c.Tail, CompactTail)
	c.PruneTail = cmp.Or(c.PruneTail, PruneTail)
	c.Within = cmp.Or(c.Within, LadderTurns)
	c.Summary = cmp.Or(c.Summary, SummaryTokens)
	if w := s.window(); w > 0 {
		c.Summary = min(c.Summary, max(OutputUseful, w/summaryPart))
	}
	return c
}

// climb is the rung that comes next, and whether it counts as a recovery.
// Where nobody can be asked, a prune stands in for the question.
func (s State) climb() (next Rung, counts bool) {
	switch l := s.Ladder; {
	case l.Rung == rungNone || s.Turn-l.Turn > s.context().Within:
		return rungFold, false
	case l.Rung == rungFold:
		return rungPrune, true
	case l.Rung == rungPrune && s.Task.Manners.Ask:
		return rungAsk, true
	case l.Rung == rungPrune:
		return rungPrune, true
	}
	return rungFold, true
}

// climbed notes a rung.
func (s State) climbed(r Rung, counts bool) State {
	s.Ladder.Rung, s.Ladder.Turn = r, s.Turn
	if counts {
		s.Ladder.Used++
	}
	return s
}

// exhausted reports whether no recovery is left.
func (s State) exhausted() bool { return s.Ladder.Used >= RecoveriesMax } //mutant:recoveries-without-end

// losingContext is what a person is asked on the last rung.
const losingContext = "I've made progress but I'm losing context faster than I can recover. Keep going, change direction, or stop?"
