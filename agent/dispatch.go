package agent

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// dispatchCalls runs the calls of a reply that may run, in batches.
func dispatchCalls(s *State, calls []Call) (*State, []Effect) {
	s.Phase, s.Calls, s.Cuts = Acting, calls, 0
	if !s.TurnPreempted {
		s.ToolCalls += callList(calls).countRunnable()
	}
	s.Useless, s.LoopDetection.Forbidden = countUseless(s, calls)
	return advanceCalls(s)
}

// advanceCalls begins every call that may begin now, and ends the turn when all
// calls have their result.
func advanceCalls(s *State) (*State, []Effect) {
	s, fx := endPreemptedCalls(s)
	for i := range s.Calls {
		if !s.Calls.mayBegin(i, &s.Task.Limits) || s.Cancel != nil { //mutant:begins-unless-canceled
			continue
		}
		var e Effect
		s, e = enterCall(s, i)
		if e != nil {
			fx = append(fx, e)
		}
	}
	if s, e := askAboutCall(s); e != nil {
		return s, append(fx, e)
	}
	if s.Calls.ended() {
		return prependEffects(fx)(endBatch(s))
	}
	return s, fx
}

// beginCall starts one call: a child through the supervisor, a read at once, any other
// call after its Started entry.
func beginCall(s *State, i int) (*State, Effect) {
	c := s.Calls[i]
	if why := s.tools.approvalError(c); why != "" {
		return s.withCall(i, c.deny(why).withLostNote()), nil
	}
	c.Attempt, c.Activation = c.Attempt+1, s.Activation //mutant:attempt-not-counted
	switch {
	case s.tools.isJournal(c.Name):
		s, c = callJournal(s, c)
		return s.withCall(i, c), nil
	case c.Kind == declarationCall:
		return s.withCall(i, answerDeclaration(c, len(s.Task.FailIf))), nil
	case c.Kind == questionCall:
		c.Stage = Running
		return parkFor(s.withCall(i, c), c.askedQuestion())
	case c.Kind.isDelegation():
		c.Stage, c.Attempt, c.Born = Running, 0, s.workTime()
		e, why := requestChild(s, c)
		if why != "" {
			return s.withCall(i, c.fail(why)), nil
		}
		return s.withCall(i, c), e
	case c.Kind.sends():
		c.Stage, c.Attempt = Running, 0
		return s.withCall(i, c), c.message(s.Tainted)
	case c.needsRecord(): //mutant:begins-from-the-reply
		c.Stage = Starting
		return recordBeginning(s.withCall(i, c), i)
	}
	c.Stage = Running
	return s.withCall(i, c), c.newToolCall(s.Turn, s.Tainted != nil)
}

// requestChild requests the child of a delegation or a handoff, or says why it cannot.
func requestChild(s *State, c Call) (e Delegate, why string) {
	if c.Kind == handoffCall {
		return handoffOf(s, c)
	}
	return delegationOf(s, c)
}

// decodeArgs reads arguments that have been validated; fields that do not fit stay zero.
func decodeArgs(args string, into any) { _ = json.Unmarshal([]byte(args), into) }

// newToolCall returns the effect that begins the current attempt.
func (c Call) newToolCall(turn int, tainted bool) CallTool {
	return CallTool{Call: c.ID, Attempt: c.Attempt, Turn: turn, Name: c.Name, Args: c.Args, MayWriteAny: c.Gate.Permit.MayWriteAny, Tainted: tainted}
}

// handleStarted handles the Started entry that a shell appends before any call that is not a read: if
// the loop reads it under the current epoch, the call begins, once.
func handleStarted(s *State, f Started) (*State, []Effect) {
	i := s.Calls.find(f.Call)
	if i < 0 || s.Phase != Acting || f.Activation != s.Activation { //mutant:started-in-its-life
		return s, nil
	}
	c := s.Calls[i]
	if c.Stage != Starting || c.Attempt != f.Attempt { //mutant:started-of-its-attempt
		return s, nil
	}
	if c.Stage, c.Activation = Running, f.Activation; c.Kind == foreignCall {
		s.Foreign++
	}
	return s.withCall(i, c), []Effect{c.newToolCall(s.Turn, s.Tainted != nil)}
}

// handleReturned handles a result: a tool's by its attempt, a child's from the
// supervisor. A late result resolves a call that waits for a person.
func handleReturned(s *State, f Returned) (*State, []Effect) {
	i := s.Calls.find(f.Call)
	if s.events.returned = f; i >= 0 && f.Size != 0 && f.Ref == "" && s.Calls[i].Stage == Running {
		s.events.publish(resultEvents, event.KindWarningRaised, event.Warning{What: "a whole result of " + s.Calls[i].Name + " was not kept", Call: f.Call})
	}
	if i < 0 || s.Phase != Acting && s.Phase != Waiting {
		return s, nil
	}
	c := s.Calls[i]
	if c.Stage != Running || c.Attempt != f.Attempt { //mutant:late-result-of-other-attempt
		return s, nil
	}
	s = noteReturnedTaint(noteHandedAnswer(creditChild(s, c.Born, f.WorkedMS), i, f), i, f)
	c = s.Calls[i]
	if f.Live && c.Kind == handoffCall {
		return acceptHandoff(s, i), nil
	}
	if f.Live && c.Kind.isDelegation() { // the child is live, whatever this agent waits for //mutant:refused-child-is-waited-for
		s = recordBackground(s, c)
	}
	if s.Suspended.Why == AwaitsDriftAnswer {
		return recordResultDuringQuestion(s, i, f)
	}
	s.ToolMS += f.TookMS
	if mayRunAgain(s, c, f) {
		return retryLaterCall(s, i, f)
	}
	if f.Error && c.Tries > 0 {
		f.Text += fmt.Sprintf("\n[tried %d times]", c.Attempt)
	}
	c.Tokens = f.Tokens
	var fx []Effect
	if s.Suspended.asksPerson() {
		s, fx = endQuestion(s)
	}
	s, more := finishAttempt(s, i, c.end(model.ToolResult{Text: f.Text, Error: f.Error}))
	return prependEffects(append(fx, more...))(advanceCalls(s))
}

// endBatch appends the results to the transcript in the order of the calls and
// proceeds to the turn boundary.
func endBatch(s *State) (*State, []Effect) {
	calls := s.Calls
	s = markResults(s, calls)
	results, counted := calls.results()
	s = s.appendMessage(model.Message{Role: model.ToolRole, Results: results, Tokens: counted})
	s.Calls = nil
	s = noteObstacles(s, calls)
	if o, ended := handedOutcome(s, calls); ended {
		return finishAgent(s, o)
	}
	if s.Declared = declarationOf(calls); s.Declared.Reason != "" && s.Cancel == nil {
		return proposeCompletion(s)
	}
	if s.Useless >= s.Task.Limits.Malformed {
		return finishAgent(s, spec.Outcome{Reason: spec.Malformed, Text: partialResult(s), Partial: true,
			Detail: fmt.Sprintf("%d useless replies in a row; %s", s.Useless, missingTools(s, calls))})
	}
	if s.Cancel != nil {
		return endTurn(s, spec.NextTurn)
	}
	s, fx, busy := applyBreaker(s, calls) //mutant:breaker-under-direction
	if busy {
		return s, fx
	}
	s, transition, fx, busy := watchCalls(s, calls, spec.NextTurn)
	if busy {
		return s, fx
	}
	return prependEffects(fx)(endTurn(s, transition))
}

// missingTools says which tools the calls of a useless reply named, and whether the agent lacks a directory to have them in.
func missingTools(s *State, calls []Call) string {
	text := "the last called tools that the agent does not have: " + s.tools.namesUnknown(calls)
	if s.Task.Workspace == "" {
		text += " (" + spec.NoDirectory + ")"
	}
	return text
}
