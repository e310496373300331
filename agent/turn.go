package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// handleSubmitted opens the loop. It appends the prompt to the transcript before the first hook, summary
// or model call, so that an agent that ends early leaves a record of its task, too.
func handleSubmitted(s *State, f Submitted) (*State, []Effect) {
	if s.Phase != "" { //mutant:task-once
		return s, nil
	}
	f.Task = shareTexts(f.Task, &s.texts)
	s.Task = f.Task
	s = adoptModel(s)
	s.Task.Limits = s.Task.Limits.WithDefaults(s.Task.Depth)
	s.Began = s.Now
	s = adoptHistory(s)
	s.tools = compileTools(s.Task, f.Task.Tools)
	s.hooks, s.permissions, s.AddedRules = compileHooks(s.Task, s.tools), compilePermissions(s.Task), s.Task.AddedRules
	s = markTainted(restoreJournal(adoptContext(s)), s.Task.Tainted) //mutant:task-taints-nobody
	s.events.publish(entryEvents, event.KindAgentStarted, event.AgentStarted{Name: s.Task.Name, Parent: s.Task.Parent, Model: s.Task.Model.Name, Goal: s.Task.Goal,
		Tools: len(s.Task.Tools), MaxTurn: s.Task.Limits.Turns, Recalled: s.Recalled})
	s = s.appendMessage(firstMessage(f.Task))
	if s.Fork.First {
		s = appendWaiting(s)
	}
	s, fx, busy := beginCompaction(s, "") // an imported history may already be too large
	if !busy {
		s, fx = runHooksBeforeModel(s, "")
	}
	if s.Phase == Hooking { // hooks may take longer than the supervisor waits for a first message
		fx = append(fx, ReportLog{Activation: s.Activation, Node: s.Node})
	}
	return s, append(fx, s.allTimers()...)
}

// firstMessage is the message that opens the transcript. No provider takes an empty one.
func firstMessage(t spec.Task) model.Message {
	text := t.Goal
	if strings.TrimSpace(text) == "" {
		text = "(no goal was given)"
	}
	return model.Message{Role: model.User, Text: continuationText(t.Past) + text + requirementText(t.LoopOptions.Require), Media: t.Media}
}

// endTurn is the boundary between two turns. A cancel ends the loop here, and so does a closing turn that cannot
// be taken; otherwise beginTurn applies the limits.
func endTurn(s *State, transition spec.Transition) (*State, []Effect) {
	if s.Cancel != nil {
		return finishCanceled(s)
	}
	if s.ClosingReason != "" {
		// The closing turn was denied because the fallback in use has no known price (skipUnpriced).
		return finishAgent(s, spec.Outcome{Reason: s.ClosingReason, Text: partialResult(s), Partial: true})
	}
	s, transition = deliverMail(adoptModel(s), transition)
	s, fx, busy := beginCompaction(s, transition)
	if busy {
		return s, fx
	}
	return beginTurn(s, transition)
}

// beginTurn begins the next turn once no compaction is in progress: it appends the messages that
// arrived meanwhile and applies the limits.
func beginTurn(s *State, transition spec.Transition) (*State, []Effect) {
	s, transition = deliverMail(s, transition)
	if len(s.PendingSteers) > 0 { // a person has given direction: the loop need not ask for it
		transition = spec.Steering
		s = dropKeptText(s)
		s.Force, s.LoopDetection = "", s.LoopDetection.cleared()
	}
	s = appendWaiting(s)
	if reason, transition := s.reachedLimit(); reason != "" {
		return beginClosingTurn(s, reason, transition)
	}
	return runHooksBeforeModel(adoptContext(noteLimits(s)), transition)
}

// requestReservation requests the reservation of the next turn, or of the closing turn. If the agent's
// allowance covers the attempt, the attempt takes its reservation from there, and nothing is requested.
func requestReservation(s *State, transition spec.Transition) (*State, []Effect) {
	if s = adoptModel(s); mayChangeNow(s) {
		s = adoptContext(s)
	}
	s.Phase, s.Transition, s.Purpose = Reserving, transition, ForTurn
	s.Reservation++
	request := s.attemptRequest()
	if s.ClosingReason != "" {
		request.Final, request.Calls = true, 0
	}
	if s.ClosingReason == "" && !s.TurnPreempted && s.Allowance.mayBegin(request, s.Route) {
		return beginAhead(s, request), nil // Step continues with the attempt: grantAhead
	}
	s.Allowance = allowance{} // the supervisor takes it back when it reads the request
	e := newReserve(s, request)
	e.Ahead = s.attemptsAhead()
	return s, []Effect{e}
}

// newReserve returns the effect that requests the budget for the current reservation. The first request names the
// agent's node: without hooks it is the agent's first message.
func newReserve(s *State, request budget.AttemptRequest) Reserve {
	e := Reserve{Reservation: s.Reservation, Request: request, Turn: s.Turn + 1}
	if s.Reservation == 1 {
		e.Node = s.Node
	}
	e.Facts = policyFacts(s)
	return e
}

// attemptRequest returns the upper bounds of the next attempt, which a reservation must cover.
func (s *State) attemptRequest() budget.AttemptRequest {
	l := s.Task.Limits
	calls := s.callsLeft(&l)
	if len(s.Task.Tools) == 0 {
		calls = 0 // without tools the reply makes no calls, so it reserves none
	}
	m := s.currentModel(&s.Task)
	output, closing := outputLimit(m, l.Output), outputLimit(m, l.Closing)
	request := budget.AttemptRequest{Input: s.inputBound(), Output: output, OutputMin: min(spec.OutputUseful, output),
		Closing: closing, Calls: calls, Price: m.Price}
	if output > spec.OutputDefault {
		request.Enough = spec.OutputDefault
	}
	return request
}

// handleGranted begins an attempt. A grant of only the closing turn ends the loop after
// that turn, for the reason that the supervisor names.
func handleGranted(s *State, f Granted) (*State, []Effect) {
	s = takeAllowance(s, f)
	s.LimitNotes = s.LimitNotes.withRun(f.Left, s.Spent, s.ToolCalls)
	if s.Suspended.Then == ThenGrant && f.Reservation == s.Reservation {
		return returnReservation(s) // a drift question is open: the attempt must not begin
	}
	if s.Phase != Reserving || f.Reservation != s.Reservation { //mutant:stale-grant
		return s, nil
	}
	if s.Cancel != nil { //mutant:granted-after-cancel
		return finishCanceled(s)
	}
	if s.NextModel != nil { //mutant:reservation-of-the-model-before
		return replaceReservation(s)
	}
	if abandonsTurn(s) && !f.Closing { //mutant:request-without-the-message
		return restartTurn(s)
	}
	if s.Purpose == ForTurn && !f.Closing && mayChangeNow(s) { //mutant:outdated-reservation-used
		return replaceOutdated(s)
	}
	if len(s.Drift.blocking(&s.Task)) > 0 { //mutant:reservation-used-before-the-answer
		return returnReservation(s) // this node differs: ask before using the reservation
	}
	if s.Purpose == ForSummary {
		return handleSummaryGranted(s, f)
	}
	s.Open, s.Grant = true, f
	s.Phase = Thinking
	if f.Closing && s.ClosingReason == "" {
		s.ClosingReason, s.Transition = f.Why, spec.ClosingTurn
	}
	s.events.publish(entryEvents, event.KindTurnStarted, event.TurnStarted{Transition: s.Transition, Reservation: f.Reservation, MaxOutput: f.Output, Policy: decidedBy(s, f).Event()})
	s.events.publishModelStarted(s.attempt())
	if text := closingText(s.ClosingReason); s.ClosingReason != "" && s.newest().Text != text {
		s = appendToTranscriptAndPrompt(s, text)
	}
	return s, []Effect{newModelCall(s)}
}

// newModelCall returns the effect that begins the granted attempt, from the state alone: a
// later activation can begin it.
func newModelCall(s *State) CallModel {
	if s.Purpose == ForSummary {
		return callSummary(s)
	}
	m := s.currentModel(&s.Task)
	stable, volatile := systemPrompt(s)
	return CallModel{Reservation: s.Reservation, Turn: s.Turn + 1, Model: m.Name, Request: model.Request{
		Model: m.Name, System: stable, Dynamic: volatile, Messages: s.messagesToSend(), Tools: s.Task.Tools,
		MaxOutput: s.Grant.Output, NoTools: s.ClosingReason != "", Choice: s.Force,
		Temperature: m.Temperature, Effort: m.Effort, Schema: s.replySchema(),
	}}
}

// handleDenied ends the loop with a partial result, without another call. Exceptions: a denied summary continues
// without a model, and an unpriced fallback is skipped.
func handleDenied(s *State, f Denied) (*State, []Effect) {
	if s.Suspended.Then == ThenGrant && f.Reservation == s.Reservation {
		s, fx := endQuestion(s) // a drift question held this request: close it first
		s.Phase = Reserving
		return prependEffects(fx)(handleDenied(s, f))
	}
	if s.Phase != Reserving || f.Reservation != s.Reservation {
		return s, nil
	}
	if s.Cancel != nil {
		return finishCanceled(s)
	}
	if s.NextModel != nil { // it was denied to the model before
		return anotherAttempt(adoptModel(s))
	}
	if s.Purpose == ForTurn && mayChangeNow(s) { // it was denied to the prompt before
		return requestReservation(s, s.Transition)
	}
	if s.Purpose == ForSummary {
		return compactWithoutModel(s)
	}
	if f.Why == spec.CostBudget && s.Route > 0 && !s.currentModel(&s.Task).Price.Covered() {
		return skipUnpriced(s, f)
	}
	why := f.Why
	if s.ClosingReason != "" {
		why = s.ClosingReason
	}
	return finishAgent(s, spec.Outcome{Reason: why, Text: partialResult(s), Partial: true, Detail: f.By.explain(f.Detail)})
}

// handleReplied records a reply, settles its reservation, and then acts on it. Calls in the reply
// are dispatched whatever the provider's stop reason says, except in a closing turn; the reason decides only about a
// reply without calls.
func handleReplied(s *State, f Replied) (*State, []Effect) {
	if s.Phase != Thinking || f.Reservation != s.Reservation { //mutant:reply-of-its-reservation
		return s, nil
	}
	s.events.publishAttempt(s.attempt(), event.KindModelFinished, event.ModelFinished{Stop: f.Reply.Stop, Usage: f.Reply.Usage, UsageKnown: f.Reply.UsageKnown,
		CostUSD: float64(s.currentModel(&s.Task).Price.Cost(f.Reply.Usage).Nano) / budget.NanoPerUSD, TookMS: f.TookMS})
	s.ModelMS += f.TookMS
	s.failureStreaks = s.withoutWait()
	if s.Purpose == ForSummary { //mutant:summary-is-a-turn
		return handleSummary(s, f.Reply)
	}
	s = calibrate(s, f.Reply)
	f.Reply.Message.Tokens = f.Tokens
	s, calls := appendReply(s, f.Reply)
	runnable := callList(calls).countRunnable()
	if s.Cancel != nil || s.ClosingReason != "" || s.TurnPreempted {
		runnable = 0
	}
	s, fx := settleReservation(s, f.Reply, runnable)
	s.Retries = 0
	if s.ClosingReason == "" {
		s.Turn++
	}
	s.Force, s.LoopDetection.BlockedTool = "", ""
	if s.Cancel != nil {
		return prependEffects(fx)(finishBeforeCalls(s, calls))
	}
	// the text of such a reply is not an answer: the model wanted to continue
	if f.Dropped > 0 && len(calls) == 0 && s.ClosingReason == "" {
		return prependEffects(fx)(rejectUseless(s, "Your reply had tool calls that are too long to be kept, so none of them ran."))
	}
	s = remarkDropped(s, f.Dropped)
	if s.newest().Tombstone { // hooks check what a reply contains, and this one is empty
		return prependEffects(fx)(actOnReply(s, f.Reply.Stop))
	}
	s, notifications := notifyHooks(s, spec.HookSampled, fmt.Sprint(s.Reservation), "", replyHookData(s))
	return prependEffects(append(fx, notifications...))(checkOutput(s, calls, f.Reply.Stop))
}

// actOnReply acts on a reply that guardrails have passed: it dispatches the calls in s.Calls, or handles a reply
// without calls.
func actOnReply(s *State, stop model.Stop) (*State, []Effect) {
	calls, text := s.Calls, s.newest().Text
	s.Calls = nil
	switch {
	case s.ClosingReason != "": //mutant:closing-turn
		return endClosingTurn(s, text, calls)
	case len(calls) > 0:
		return dispatchCalls(s, calls)
	case abandonsTurn(s): // a claimed completion, too: the user has said something since
		return endTurn(s, spec.Steering)
	case s.LoopDetection.Forced && stop != model.StopRefusal: //mutant:question-not-forced
		return askInsteadOfModel(s, text)
	case stop == model.StopRefusal: // some models refuse without a text
		return finishAgent(s, spec.Outcome{Reason: spec.Refused, Text: cmp.Or(strings.TrimSpace(text), partialResult(s)), Partial: true})
	case strings.TrimSpace(text) == "":
		return rejectUseless(s, "Your reply was empty.")
	case stop == model.StopMaxOutput:
		return continueCut(s)
	}
	return proposeCompletion(s)
}

// appendReply appends a reply to the transcript. It numbers the calls by turn and index (the provider's own ids never
// reach a log), validates each, and answers those that may not run.
func appendReply(s *State, r model.Reply) (*State, []Call) {
	m := r.Message
	m.Role, m.Results = model.Assistant, nil // a model has no results to report //mutant:results-of-a-model
	m.Media = nil                            // and no media
	calls := make([]Call, len(m.Calls))
	m.Calls = slices.Clone(m.Calls)
	for i := range m.Calls {
		m.Calls[i].ID = fmt.Sprintf("%d-%d", s.Turn+1, i) //mutant:provider-ids-kept
		calls[i] = validateCall(s, m.Calls[i], i)
	}
	calls = refuseEndsBesideCalls(calls)
	if r.UsageKnown {
		u := r.Usage
		m.Usage = &u
	}
	// A message without content stays in the record, and no provider accepts it back.
	m.Tombstone = len(calls) == 0 && strings.TrimSpace(m.Text) == ""
	s = s.appendMessage(m)
	s.Calls, s.Declared, s.events.replied = nil, declaration{}, true
	return s, answerCallsNotRun(s, limitCalls(s, calls))
}

// settleReservation settles the open reservation: with the reported usage, or in full if the provider reported none.
func settleReservation(s *State, r model.Reply, calls int) (*State, []Effect) {
	e := Settle{Reservation: s.Reservation, Usage: r.Usage, Turn: s.Turn + 1, Lost: !r.UsageKnown} //mutant:blind-unknown-usage-is-free
	if r.UsageKnown {
		e.Used = s.currentModel(&s.Task).Price.Cost(r.Usage)
		s.spending = s.withReply(r.Usage, e.Used)
		if !s.HookEffects.changedPrompt() { // a prompt that hooks changed is no measure of the transcript
			s.Anchor = promptAnchor{Messages: len(s.History), Tokens: r.Usage.Total(), Route: s.Route, Formless: s.Task.LoopOptions.Require.Schema != "" && s.replySchema() == ""}
		}
	}
	s.HookEffects.Sent, s.HookEffects.System = nil, nil
	e.Used.Calls = min(int64(calls), s.Grant.Calls)
	s.Open = false
	return settleAhead(s, e)
}

// refuseCalls answers every call with the same error.
func refuseCalls(s *State, calls []Call, text string) *State {
	if len(calls) == 0 {
		return s
	}
	results := make([]model.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = model.ToolResult{Call: c.ID, Text: text, Error: true}
	}
	s.events.publishRefusal(calls, results, s.tools)
	return s.appendMessage(model.Message{Role: model.ToolRole, Results: results}) //mutant:refused-calls-unanswered
}

// finishAgent is the only function that ends an agent. It aborts running hooks and the model call, settles the
// reservation, withdraws an open question and sends Finish. Callers have ended all tool calls before.
func finishAgent(s *State, o spec.Outcome) (*State, []Effect) {
	if s.Phase == Done {
		return s, nil
	}
	s.Worked = s.workTime()
	s, fx := abortHooks(s) //mutant:hooks-left-running
	if s.Open || s.Phase == Reserving {
		// A reservation that is open or requested is closed for good.
		var more []Effect
		s, more = settleAhead(s, Settle{Reservation: s.Reservation, Lost: s.Open, Turn: s.Turn})
		fx = append(fx, more...)
		if s.Open {
			fx = append(fx, AbortModel{Reservation: s.Reservation})
		}
		s.Open = false
	}
	switch s.Suspended.Why {
	case AwaitsThrottle:
		fx = append(fx, LeaveThrottle{})
	case AwaitsPerson, AwaitsDriftAnswer:
		fx = append(fx, Unpark{Query: s.Suspended.Question.Query})
	}
	if left := backgroundChildrenText(s.BackgroundChildren); left != "" { //mutant:leaves-in-silence
		o.Detail = strings.TrimPrefix(clip.Text(o.Detail, detailBytesMax/2)+"; "+left, "; ")
	}
	s.correspondence = correspondence{}
	// The last message must fit an entry, whatever a provider or a person wrote.
	o.Text, o.Detail = clip.Text(o.Text, answerBytesMax), clip.Text(o.Detail, detailBytesMax)
	if o.Reason != spec.Completed && o.Journal == "" { // one that handed off has that of the other agent
		o.Journal = s.Journal.fullText()
	}
	if o.Tainted == nil {
		o.Tainted = s.Tainted
	}
	s.Phase, s.Suspended, s.Outcome = Done, suspension{}, o
	s.events.publish(stopEvents, event.KindAgentFinished, event.AgentFinished{Name: s.Task.Name, Reason: o.Reason, Partial: o.Partial, Detail: o.Detail,
		Text: o.Text, Turns: s.Turn, Calls: s.ToolCalls, Usage: s.Usage, Journal: o.Journal})
	return s, append(fx, newFinish(s))
}
