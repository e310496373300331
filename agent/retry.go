package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// callTimer begins the name of the timer after which a call runs again.
const callTimer = "retry-"

// mayRunAgain reports whether a failed call may run again by itself: the failure is
// transient, running it twice does no harm, and it has tries left.
func mayRunAgain(s *State, c Call, f Returned) bool {
	again := c.Class == model.Read || c.Class == model.Idempotent                                                                   //mutant:effects-retried
	return f.Error && f.Transient && again && !c.Kind.isDelegation() && s.Cancel == nil && !s.TurnPreempted && s.Phase == Acting && //mutant:tool-retries
		c.Tries < min(s.Task.LoopOptions.ToolRetries, spec.ToolRetriesMax)
}

// retryLaterCall makes a call wait for its next attempt; other calls continue meanwhile.
// The failure is kept: the model reads it if no attempt follows.
func retryLaterCall(s *State, i int, f Returned) (*State, []Effect) {
	c := s.Calls[i]
	c.Stage, c.Due = Retrying, s.Now+backoffMS[c.Tries] //mutant:tool-backoff
	c.Tries++
	c.Result = model.ToolResult{Call: c.ID, Text: f.Text, Error: true}
	s.events.publish(retryEvents, event.KindToolRetry, event.ToolRetry{Call: c.ID, Tool: c.Name, Class: c.Class, Attempt: f.Attempt, Text: f.Text, TookMS: f.TookMS,
		WaitMS: c.Due - s.Now, Left: min(s.Task.LoopOptions.ToolRetries, spec.ToolRetriesMax) - c.Tries + 1})
	s, fx := advanceCalls(s.withCall(i, c))
	return s, append([]Effect{Arm{Timer: callTimer + c.ID, Due: c.Due}}, fx...)
}

// retryCall handles the timer of a call: the next attempt has the same key, and an
// attempt that is not a mere read begins with a new Started.
func retryCall(s *State, timer string) (*State, []Effect) {
	id, ok := strings.CutPrefix(timer, callTimer)
	i := s.Calls.find(id)
	if !ok || i < 0 || s.Phase != Acting || s.Calls[i].Stage != Retrying {
		return s, nil
	}
	c := s.Calls[i]
	if s.Now < c.Due { //mutant:retried-too-early
		return s, []Effect{Arm{Timer: timer, Due: c.Due}}
	}
	c.Stage = Pending
	return advanceCalls(s.withCall(i, c))
}

// endUnbegun ends a call whose next attempt has not begun; never is the result of a
// call that never ran.
func (c Call) endUnbegun(never string) Call {
	lost := c.isLostBefore()
	switch {
	case c.Tries > 0: // the result of the last attempt is kept
		c = c.fail(fmt.Sprintf("%s\n[failed %d times, and was not run again: %s]", c.Result.Text, c.Tries, reasonPart(never)))
	case lost:
		return c.cutOff(event.Killed, "killed while running: its outcome is unknown")
	default:
		c = c.cutOff(event.NeverStarted, never)
	}
	if lost {
		return c.withLostNote()
	}
	return c
}

// reasonPart returns the second part of "never started: reason".
func reasonPart(text string) string {
	_, why, ok := strings.Cut(text, ": ")
	if !ok {
		return text
	}
	return why
}
