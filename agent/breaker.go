package agent

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
)

// failingTarget is a target on which a tool keeps failing, with no success of any tool since.
type failingTarget struct {
	Target uint64 // hash of the tool and its canonical arguments
	Times  int
}

const failingMax = 32 // targets that are remembered

// countUseless counts consecutive useless replies, and consecutive replies that propose
// forbidden tools. A reply counts once, however many calls it proposes: the model
// makes all of them before it can read the first answer. A forbidden proposal
// alone makes a reply neither useful nor useless.
func countUseless(s *State, calls []Call) (useless, forbidden int) {
	known := slices.ContainsFunc(calls, func(c Call) bool { return s.tools.knows(c.Name) && !s.tools.forbids(c.Name) })
	barred := s.tools.firstForbidden(calls) >= 0
	switch {
	case barred && known:
		return 0, s.LoopDetection.Forbidden + 1
	case barred:
		return s.Useless, s.LoopDetection.Forbidden + 1
	case known:
		return 0, 0
	}
	return s.Useless + 1, s.LoopDetection.Forbidden
}

// Results of the calls of a reply on which the loop will not act.
const (
	notRunRefused = "not run: forbidden tools were proposed again and again"
	notRunAsking  = "not run: a person is asked first"
)

// answerCallsNotRun answers the calls that will not run because of the rest of their reply: the
// reply exceeds the limit of forbidden proposals, it does not ask a person
// although it must, or it asks although no person can be asked.
func answerCallsNotRun(s *State, calls []Call) []Call {
	from, text := len(calls), ""
	limit := s.Task.LoopOptions.Breaker.Forbidden
	_, forbidden := countUseless(s, calls)
	switch {
	case limit > 0 && forbidden >= limit:
		from, text = 0, notRunRefused
	case s.LoopDetection.Forced && !slices.ContainsFunc(calls, Call.asksPerson): //mutant:acts-instead-of-asking
		from, text = 0, notRunAsking
	default:
		if i := slices.IndexFunc(calls, Call.asksNobody); i >= 0 {
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

// applyBreaker escalates when a tool fails repeatedly on one target. It ends a loop
// whose model repeatedly proposes forbidden tools, or asks although no person can
// be asked.
func applyBreaker(s *State, calls []Call) (next *State, fx []Effect, busy bool) {
	b := s.Task.LoopOptions.Breaker
	if i := s.tools.firstForbidden(calls); i >= 0 && b.Forbidden > 0 && s.LoopDetection.Forbidden >= b.Forbidden { //mutant:forbidden-proposals-for-ever
		next, fx = finishAgent(s, spec.Outcome{Reason: spec.Refused, Text: partialResult(s), Partial: true,
			Detail: fmt.Sprintf("it may not use %s, and proposed such tools in %d replies in a row", calls[i].Name, s.LoopDetection.Forbidden)})
		return next, fx, true
	}
	if i := slices.IndexFunc(calls, Call.asksNobody); i >= 0 {
		next, fx = finishAgent(s, spec.Outcome{Reason: spec.NeedsHuman, Text: partialResult(s), Partial: true, Detail: questionText(calls[i].Args)})
		return next, fx, true
	}
	if b.Failures <= 0 {
		return s, nil, false
	}
	var tripped *Call
	s.LoopDetection.Failing, tripped = countFailures(slices.Clone(s.LoopDetection.Failing), calls, b.Failures)
	if tripped == nil {
		return s, nil, false
	}
	next, fx = escalateToPerson(s, fmt.Sprintf("%s failed %d times in a row on %s: %s.", tripped.Name, b.Failures,
		clip.Text(tripped.Args, argsShown), clip.Text(tripped.Result.Text, resultShown)), spec.ToolFailure, spec.ApprovalResolved)
	return next, fx, true
}

const (
	argsShown   = 512
	resultShown = 1 << 10
)

// countFailures counts the failures of calls that ran. An invalid call is the model's
// mistake, not a failure of the tool, and neither is a child that ended early.
func countFailures(list []failingTarget, calls []Call, limit int) ([]failingTarget, *Call) {
	var tripped *Call
	for i, c := range calls {
		ran := c.Attempt > 0 || c.Kind.isDelegation()
		switch {
		case !ran:
		case !c.Result.Error:
			list = nil
		case c.Kind.isDelegation():
		default:
			at := slices.IndexFunc(list, func(f failingTarget) bool { return f.Target == callTarget(c) })
			if at < 0 {
				list = lastItems(append(list, failingTarget{Target: callTarget(c)}), failingMax)
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
