package agent

import (
	"fmt"
	"slices"
)

// Failing is a target that a tool fails on, without a success of any tool since.
type Failing struct {
	Target uint64 // of tool and canonical arguments
	Times  int
}

const failingMax = 32 // targets that are remembered

// forbids reports whether a tool is there in the run and not for this agent.
func (s State) forbids(tool string) bool { return slices.Contains(s.Task.Forbidden, tool) }

// forbiddenAt is the first forbidden proposal among calls, or -1.
func (s State) forbiddenAt(calls []Call) int {
	return slices.IndexFunc(calls, func(c Call) bool { return s.forbids(c.Name) })
}

// tally counts a reply's proposals: useless replies in a row, and those with
// forbidden proposals. A reply counts once, however much it proposes: its calls
// were made before the first answer could be read. A forbidden proposal alone
// is neither useful nor useless.
func (s State) tally(calls []Call) (useless, forbidden int) {
	known := slices.ContainsFunc(calls, func(c Call) bool { _, ok := s.check.specs[c.Name]; return ok && !s.forbids(c.Name) })
	barred := s.forbiddenAt(calls) >= 0
	switch {
	case barred && known:
		return 0, s.Habits.Forbidden + 1
	case barred:
		return s.Useless, s.Habits.Forbidden + 1
	case known:
		return 0, 0
	}
	return s.Useless + 1, s.Habits.Forbidden
}

// What the calls of a reply are answered with when the loop will not act on it.
const (
	notRunRefused = "not run: forbidden tools were proposed again and again"
	notRunAsking  = "not run: a person is asked first"
)

// hold answers the calls that will not run because of what else is in the
// reply: it is one forbidden proposal too many, it does not ask the person
// whom it has to ask, or it asks where nobody can be asked.
func (s State) hold(calls []Call) []Call {
	from, text := len(calls), ""
	limit := s.Task.Manners.Breaker.Forbidden
	_, forbidden := s.tally(calls)
	switch {
	case limit > 0 && forbidden >= limit:
		from, text = 0, notRunRefused
	case s.Habits.Forced && !slices.ContainsFunc(calls, Call.asks): //mutant:acts-instead-of-asking
		from, text = 0, notRunAsking
	default:
		if i := slices.IndexFunc(calls, Call.inVain); i >= 0 {
			from, text = i, notRunAsking
		}
	}
	for i := from; i < len(calls); i++ {
		if calls[i].Stage != Ended {
			calls[i] = calls[i].fail(text)
		}
	}
	return calls
}

// broken escalates a tool that fails again and again on one target, and ends a
// loop whose model proposes forbidden tools again and again, or asks where
// nobody can be asked.
func broken(s State, calls []Call) (next State, fx []Effect, busy bool) {
	b := s.Task.Manners.Breaker
	if i := s.forbiddenAt(calls); i >= 0 && b.Forbidden > 0 && s.Habits.Forbidden >= b.Forbidden { //mutant:forbidden-proposals-for-ever
		next, fx = finish(s, Outcome{Reason: Refused, Text: s.found(), Partial: true,
			Detail: fmt.Sprintf("it may not use %s, and proposed such tools in %d replies in a row", calls[i].Name, s.Habits.Forbidden)})
		return next, fx, true
	}
	if i := slices.IndexFunc(calls, Call.inVain); i >= 0 {
		next, fx = finish(s, Outcome{Reason: NeedsHuman, Text: s.found(), Partial: true, Detail: asked(calls[i].Args)})
		return next, fx, true
	}
	if b.Failures <= 0 {
		return s, nil, false
	}
	var tripped *Call
	s.Habits.Failing, tripped = failures(slices.Clone(s.Habits.Failing), calls, b.Failures)
	if tripped == nil {
		return s, nil, false
	}
	next, fx = escalate(s, fmt.Sprintf("%s failed %d times in a row on %s: %s.", tripped.Name, b.Failures,
		clip(tripped.Args, argsShown), clip(tripped.Result.Text, resultShown)), ToolFailure, ApprovalResolved)
	return next, fx, true
}

const (
	argsShown   = 512
	resultShown = 1 << 10
)

// failures counts the failures of calls that ran. What a model got wrong is not
// a failure of the tool, and a child that ended early is not one either.
func failures(list []Failing, calls []Call, limit int) ([]Failing, *Call) {
	var tripped *Call
	for i, c := range calls {
		ran := c.Attempt > 0 || c.delegate()
		switch {
		case !ran:
		case !c.Result.Error:
			list = nil
		case c.delegate():
		default:
			at := slices.IndexFunc(list, func(f Failing) bool { return f.Target == target(c) })
			if at < 0 {
				list = newest(append(list, Failing{Target: target(c)}), failingMax)
				at = len(list) - 1
			}
			list[at].Times++
			if list[at].Times >= limit && tripped == nil { //mutant:failures-for-ever
				tripped = &calls[i]
			}
		}
	}
	return list, tripped
}
