package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// Resumed begins an activation of the actor's shell (PROTOCOL P1).
type Resumed struct {
	Activation string `msgpack:"s"`
	Node       string `msgpack:"n,omitempty"`
	// Damaged is set by the shell when the log is not whole.
	Damaged string `msgpack:"d,omitempty"`
	// Found lists how the node differs from Task.Hashes, if it Looked: see drift.go.
	// Without Looked, the report of the previous activation holds.
	Found  map[string]string `msgpack:"f,omitempty"`
	Looked bool              `msgpack:"l,omitempty"`
}

// Released ends an activation in order: everything that it began has ended, and is in the log
// before this entry. Any call that still seems to be in progress was never begun.
type Released struct {
	// Rests: there is nothing to do before the next entry, or before Due. The process
	// side is passivated until then, and no node needs to look after the log (P19).
	Rests bool `msgpack:"r,omitempty"`
	// Due is when the next timer is due, in Unix milliseconds; 0: there is none.
	Due int64 `msgpack:"d,omitempty"`
}

// Kind is the fact's word in logs.
func (Released) Kind() string { return "released" }

// handleResumed begins an activation of the shell: only the outside world can have lost
// something, so only the phases that wait for the outside world have something to do.
func handleResumed(s *State, f Resumed) (*State, []Effect) {
	if s.Phase != "" && s.Phase != Done && s.Activation != "" && !s.Rested {
		s.events.publish(entryEvents, event.KindAgentResumed, event.AgentResumed{Phase: string(s.Phase), Activation: f.Activation})
	}
	shell, again := s.resume(f)
	whole := shell.Whole
	s.shellState, s.Fork = shell, s.Fork.resume(again, s.Suspended.Why == AwaitsDriftAnswer)
	s.Allowance.Attempts = 0 // a log that lost its tail counts less than was spent
	if f.Damaged == "" && s.Phase == "" {
		return s, nil
	}
	fx := []Effect{ReportLog{Activation: f.Activation, Node: f.Node, Damaged: f.Damaged}}
	if s.Phase == Done {
		// The supervisor may not know of the end that a damaged log records.
		o := s.Outcome
		return s, []Effect{ReportLog{Activation: f.Activation, Node: f.Node, Damaged: f.Damaged, Ended: &o}}
	}
	if f.Damaged != "" { //mutant:own-log-damaged
		s = answerOpenCalls(s, "never started: the log is damaged", "outcome unknown: the log is damaged")
		s = endCanceled(s)
		return prependEffects(fx)(finishAgent(s, spec.Outcome{Reason: spec.LogDamaged, Text: partialResult(s), Partial: true, Detail: f.Damaged}))
	}
	if !s.isClockPaused() {
		fx = append(fx, s.allTimers()...) //mutant:late-timers-are-not-due
	}
	s.HookEffects.Unawaited = nil // they ended with the activation that ran them
	s, more, decided := compareNode(s, f, whole)
	fx = append(fx, more...)
	if decided {
		return s, fx
	}
	switch s.Phase {
	case Hooking, Stopping:
		if s.Gate.ID != "" {
			fx = append(fx, runGateHooks(s)) //mutant:gate-lost-in-a-crash
		}
	case Thinking:
		if abandonsTurn(s) {
			return prependEffects(fx)(lostModelCall(s, whole || s.Fork.Originals))
		}
		unsent := whole || s.Fork.Originals // the original's request is the original's to pay for //mutant:fork-pays-for-its-original
		if unsent && s.Cancel == nil && s.NextModel != nil {
			return prependEffects(fx)(replaceReservation(s))
		}
		if unsent && s.Cancel == nil { // its reservation was granted and not used
			return s, append(fx, newModelCall(s))
		}
		return prependEffects(fx)(lostModelCall(s, unsent)) //mutant:lost-reply-waited-for
	case Acting:
		if whole {
			s = resetUnbegun(s)
		}
		return prependEffects(fx)(lostCalls(s))
	case Waiting:
		switch s.Suspended.Why { // a question and background children need nothing
		case AwaitsPerson, AwaitsDriftAnswer:
			fx = append(fx, s.Suspended.armQuestion()...)
		case AwaitsThrottle:
			return s, append(fx, awaitThrottle(s)...) //mutant:wait-forgotten-by-a-crash
		case AwaitsRetry: //mutant:idle-takes-a-retry's-timer
			fx = append(fx, Arm{Timer: retryTimer, Due: s.Suspended.Due})
		}
	}
	return s, fx
}

// lostModelCall handles a model call whose reply is lost. Its reservation is spent
// in full unless the call was never made, and another attempt requests its own
// reservation.
func lostModelCall(s *State, never bool) (*State, []Effect) {
	s, fx := settleAhead(s, Settle{Reservation: s.Reservation, Lost: !never, Turn: s.Turn + 1}) //mutant:blind-lost-call-is-free
	s.Open = false
	if s.Cancel != nil && s.Purpose == ForSummary {
		return prependEffects(fx)(finishCanceled(withoutReservation(s)))
	}
	if s.Cancel != nil {
		s, more := finishAgent(withoutReservation(s), abortedOutcome(s, spec.AbortedStreaming))
		return s, append(fx, more...)
	}
	if abandonsTurn(s) {
		return prependEffects(fx)(endTurn(endSuspension(s), spec.Steering))
	}
	return prependEffects(fx)(anotherAttempt(s)) //mutant:lost-reservation-used-again
}

// anotherAttempt requests a reservation that replaces a lost one.
func anotherAttempt(s *State) (*State, []Effect) {
	switch {
	case s.Purpose == ForSummary:
		return lostSummary(s)
	case s.ClosingReason != "":
		return requestReservation(s, spec.ClosingTurn)
	}
	return requestReservation(s, spec.Resumption)
}

// withoutReservation marks that no reservation is open, for finishAgent.
func withoutReservation(s *State) *State {
	s.Phase = Stopping
	return s
}

// callAttemptsMax is how often a repeatable call begins: a call that ends its own
// process each time, by the memory it takes, would otherwise do so forever.
const callAttemptsMax = 10

// lostCalls sorts the calls that were in progress: children answer by themselves,
// reads and idempotent calls run again with the same key, and a person decides
// about a side effect of unknown outcome. A fork has other keys than its original, so a person also decides about an
// idempotent call that the original began.
func lostCalls(s *State) (*State, []Effect) {
	s, fx := endPreemptedCalls(s)
	for i, c := range s.Calls {
		var e Effect
		switch {
		case s.TurnPreempted && s.Cancel == nil && c.Stage == Running && c.Class == model.Read && !c.Kind.isRemote():
			s = s.withCall(i, c.cutOff(event.Killed, abortedRead).skippedByPerson())
			continue
		case c.Stage == Ended || c.Stage == Pending || c.Stage == Retrying || c.Gate.Person != "":
			continue // the timer of a retry is among the clocks
		case c.Stage == Gated: // nothing waits at a gate after a cancel
			e = runCallHooks(s, c) //mutant:call's-gate-lost-in-a-crash
		case c.Kind.isRemote() && s.Cancel == nil:
			continue
		case s.Cancel != nil:
			if c.Stage == Running && !c.Kind.isRemote() || c.isLostBefore() {
				s = s.withCall(i, c.cutOff(event.Killed, "killed while running: its outcome is unknown"))
			} else if c.Stage == Starting {
				s = s.withCall(i, c.cutOff(event.NeverStarted, "never started: the run was canceled"))
			}
			continue
		case c.Kind == questionCall: // the log of the run holds the question
			continue
		case c.Stage == Starting: // nothing had begun
			c.Attempt--
			s, e = enterCall(s.withCall(i, c), i)
		case c.Attempt >= callAttemptsMax:
			s = s.withCall(i, c.cutOff(event.Killed, fmt.Sprintf("not run again: it was begun %d times, and its process ended each time before it did", c.Attempt)))
			continue
		case c.Class == model.Idempotent && s.Fork.Originals: //mutant:original-repeated-by-a-fork
			s, e = unknownOutcome(s, c)
		case c.Class == model.Read || c.Class == model.Idempotent: //mutant:repeatable-call
			s, e = enterCall(s, i)
		default:
			s, e = unknownOutcome(s, c)
		}
		if e != nil {
			fx = append(fx, e)
		}
	}
	if s.Phase == Waiting {
		return s, fx
	}
	return prependEffects(fx)(advanceCalls(s))
}

// resetUnbegun resets the calls that seem to run to the stage before their beginning.
func resetUnbegun(s *State) *State {
	for i, c := range s.Calls {
		if c.Stage == Running && !c.Kind.isRemote() && c.Kind != questionCall {
			c.Stage = Starting
			s = s.withCall(i, c)
		}
	}
	return s
}

// unknownOutcome asks a person: a side effect began, and the log does not show
// whether it completed. A late result resolves the question.
func unknownOutcome(s *State, c Call) (*State, Effect) {
	return parkFor(s, needApprovals(s, Park{ //mutant:parked-without-a-question
		Query: fmt.Sprintf("%s.%d", c.ID, c.Attempt), Call: c.ID, Reason: spec.ResumeUnsafe,
		Question: fmt.Sprintf("%s (call %s, attempt %d) was started and its outcome is unknown. "+
			"approve: run it again; skip: go on without; or say what happened.", c.lostName(s.Task.Name), c.ID, c.Attempt),
	}))
}

// lostName names a call in the question about its outcome. For a delegation to an agent of another program, by A2A or
// by the member that represents it, the name includes the agent and its task. own is the name of the caller.
func (c Call) lostName(own string) string {
	var asked delegateArgs
	decodeArgs(c.Args, &asked)
	if c.Kind != foreignCall || !strings.HasPrefix(asked.Agent, a2aPrefix) && asked.Agent != own {
		return c.Name
	}
	return fmt.Sprintf("%s to %s with the task %q", c.Name, asked.Agent, clip.Text(asked.Task, taskShown))
}

// taskShown bounds the task in a question.
const taskShown = 400

// endCanceled appends the results of calls that will not continue to the transcript.
func endCanceled(s *State) *State {
	if len(s.Calls) == 0 {
		return s
	}
	results, _ := s.Calls.results()
	s = markResults(s, s.Calls).appendMessage(model.Message{Role: model.ToolRole, Results: results})
	s.Calls = nil
	return s
}
