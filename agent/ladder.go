package agent

import (
	"cmp"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/estimate"
)

// recoveryRung is a step of the ladder that a loop climbs when it loses context faster
// than it recovers.
type recoveryRung int

// Rungs. A compaction that does not last is followed by a deep prune, and that by a question
// to a person; an agent that continues after the question starts again at the first rung.
const (
	rungNone  recoveryRung = iota
	rungFold               // R1: a compaction
	rungPrune              // R2: a deep prune
	rungAsk                // R3: a question to a person
)

// recoveryLadder records how far the loop has climbed.
//
// A loop has at most RecoveriesMax recoveries in its lifetime. These count as
// recoveries: every rung that follows another within Context.Within turns, the
// reactive compaction, and a compaction that cannot shrink the prompt.
// Housekeeping does not count: a compaction that no rung precedes, or none within
// that many turns. So there are at most Turns/Within of those, and when the
// recoveries are used up the loop continues to its limits.
type recoveryLadder struct {
	Rung     recoveryRung // the last one
	Turn     int          // when
	Used     int          // recoveries so far
	Reactive bool         // the one reactive compaction was made
}

// summaryPart is the part of the window that a summary may take.
const summaryPart = 8

// contextLimits says how large a prompt may become, and how much of it a compaction keeps.
type contextLimits struct {
	spec.Context       // of the task, with its defaults
	window       int64 // of the model in use; 0: unknown
	output       int64 // of a reply
}

// contextLimits returns the limits of the prompts of the model in use.
func (s *State) contextLimits() contextLimits {
	c := contextLimits{s.Task.LoopOptions.Context, s.contextWindow(&s.Task), s.Task.Limits.Output}
	c.Tail = cmp.Or(c.Tail, spec.CompactTail)
	c.PruneTail = cmp.Or(c.PruneTail, spec.PruneTail)
	c.Within = cmp.Or(c.Within, spec.LadderTurns)
	c.Summary = cmp.Or(c.Summary, spec.SummaryTokens)
	if w := c.window; w > 0 {
		c.Summary = min(c.Summary, max(spec.OutputUseful, w/summaryPart))
	}
	return c
}

// roomMin is the part of a window that a prompt may take, however much output
// is asked for.
const roomMin = 4

// threshold is the estimate at which a compaction begins: a percentage of the
// window, or less if the reply would not fit behind it. 0: never.
func (c contextLimits) threshold() int64 {
	percent := int64(c.Percent)
	if c.window <= 0 || percent <= 0 {
		return 0
	}
	return max(min(c.window*percent/100, c.window-c.output), c.window/roomMin, 1)
}

// room is the highest estimate at which a prompt and its reply fit the window.
func (c contextLimits) room() int64 {
	return c.window - min(c.output, c.window/roomMin)
}

// tails lists how many messages a rung keeps verbatim: its own number, and fewer
// only if the prompt would not fit otherwise.
func (c contextLimits) tails(r recoveryRung) []int {
	if r == rungPrune {
		return []int{c.PruneTail, 2, 0}
	}
	return []int{c.Tail, min(c.Tail, c.PruneTail), 2, 0}
}

// pinBytes is how many bytes all pins together may have.
func (c contextLimits) pinBytes() int {
	if w := c.window; w > 0 {
		return int(min(pinsBytesMax, w*estimate.BytesPerToken/pinsPart))
	}
	return pinsBytesMax
}

// summaryBytes bounds a summary, whether a model or the loop wrote it.
func (c contextLimits) summaryBytes() int { return int(c.Summary) * summaryPerToken }

// nextRung returns the next rung, and whether it counts as a recovery. If no person
// can be asked, a prune replaces the question.
func (l recoveryLadder) nextRung(turn, within int, ask bool) (next recoveryRung, counts bool) {
	switch {
	case l.Rung == rungNone || turn-l.Turn > within:
		return rungFold, false
	case l.Rung == rungFold:
		return rungPrune, true
	case l.Rung == rungPrune && ask:
		return rungAsk, true
	case l.Rung == rungPrune:
		return rungPrune, true
	}
	return rungFold, true
}

// recordRung records a rung.
func recordRung(s *State, r recoveryRung, counts bool) *State {
	s.Ladder.Rung, s.Ladder.Turn = r, s.Turn
	if counts {
		s.Ladder.Used++
		s.events.publishOnce(contextEvents, recoveryOrder, event.KindRecoveryFired, event.Recovery{})
	}
	return s
}

// exhausted reports whether no recovery is left.
func (l recoveryLadder) exhausted() bool { return l.Used >= spec.RecoveriesMax } //mutant:recoveries-without-end

// losingContext is the question to a person on the last rung.
const losingContext = "I've made progress but I'm losing context faster than I can recover. Keep going, change direction, or stop?"
