package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// enterCall begins a call, or asks the hooks before it. The gate precedes the record
// of a side effect: a call that the hooks reject leaves no Started.
func enterCall(s *State, i int) (*State, Effect) {
	c := s.Calls[i]
	if c.Gate.isPassedOn(s.Node) && !wasNarrowedSince(s, c) { //mutant:call-begins-by-earlier-rights
		return beginCall(s, i)
	}
	if s, c = applyPermissions(s, c); c.Stage == Ended {
		return s.withCall(i, c.withLostNote()), nil
	}
	if len(s.hooks.atCall(spec.HookPreTool, Call{ToolCall: c.ToolCall, Gate: callGate{Permit: c.Gate.Permit}})) == 0 { //mutant:gate-not-waited-for
		return beginCall(s.withCall(i, c), i)
	}
	if c.Gate.Passed { // on another node, or with more rights
		c.Gate.Passed, c.Gate.Again, c.Gate.Rewriter, c.Gate.Rewrites = false, c.Gate.Again+1, 0, 0
	}
	c.Stage, c.Gate.Point = Gated, spec.HookPreTool
	return s.withCall(i, c), runCallHooks(s, c)
}

// finishAttempt handles the result of a call that ran. After a failure it asks the tool_error
// hooks, unless the loop is about to end; then the guardrails judge the result.
func finishAttempt(s *State, i int, c Call) (*State, []Effect) {
	if c.Result.Error && s.Cancel == nil && len(s.hooks.at(spec.HookToolError, c.Name)) > 0 {
		c.Stage, c.Gate.Point, c.Gate.Returned = Gated, spec.HookToolError, s.events.returned
		return s.withCall(i, c), []Effect{runCallHooks(s, c)}
	}
	return judgeResult(s, i, c)
}

// judgeResult asks the guardrails about the result of a call before the model reads it. A loop that is about to end
// does not ask: a result that no guardrail has passed is in no transcript, from which another run could begin.
func judgeResult(s *State, i int, c Call) (*State, []Effect) {
	at := s.hooks.at(spec.HookToolResult, c.Name)
	if len(at) == 0 { //mutant:result-not-judged
		return keepResult(s, i, c)
	}
	if s.Cancel != nil {
		if slices.ContainsFunc(at, func(h spec.Hook) bool { return !h.Report }) { //mutant:unjudged-result-is-kept
			c = c.withholdResult(notJudged)
		}
		return keepResult(s, i, c)
	}
	c = c.awaitJudgment(s.events.returned)
	return s.withCall(i, c), []Effect{runCallHooks(s, c)}
}

// awaitJudgment makes a call wait for the guardrails of its result. The whole return is kept for observers.
func (c Call) awaitJudgment(f Returned) Call {
	c.Stage, c.Gate.Point, c.Gate.Returned = Gated, spec.HookToolResult, f
	return c
}

const notJudged = "the run ended before the guardrails had judged it"

// withholdResult ends a call with the reason why its result is not shown.
func (c Call) withholdResult(why string) Call {
	c.Tokens = 0 // the count belongs to the other result
	return c.fail("its result was withheld: " + why)
}

// resultHooked handles the guardrails' verdict on a result: the model reads it, or another one, or the loop ends.
func resultHooked(s *State, i int, v hookVerdict) (*State, []Effect) {
	c := s.Calls[i]
	s.events.returned, c.Gate.Returned = c.Gate.Returned, Returned{}
	switch v.decision {
	case spec.HookTrip:
		c = c.withholdResult("a guardrail ended the run") //mutant:tripped-result-is-read
		return haltByHook(s.withCall(i, c), spec.Guardrail, v.reasonText())
	case spec.HookDeny:
		c = c.withholdResult(v.reasonText()) //mutant:denied-result-is-read
	case spec.HookOverride:
		c.Tokens = 0 // the count belongs to the other result
		c = c.end(model.ToolResult{Text: cmp.Or(v.text, "replaced by "+v.reasonText())})
	default:
		c = c.end(c.Result)
	}
	s, fx := keepResult(s, i, c)
	return prependEffects(fx)(advanceCalls(s))
}

// keepResult puts the result of a call into the state and notifies the post_tool hooks.
func keepResult(s *State, i int, c Call) (*State, []Effect) {
	return notifyHooks(s.withCall(i, c), spec.HookPostTool, fmt.Sprintf("%s.%d", c.ID, c.Attempt), c.Name, c.hookData())
}

// hookData returns the data of a call that hooks receive.
func (c Call) hookData() spec.HookData {
	d := spec.HookData{Call: c.ID, Tool: c.Name, Args: c.Args, Result: c.Result.Text, Error: c.Result.Error}
	if c.Stage == Gated && c.Gate.Point == spec.HookToolResult {
		d.Size = c.Gate.Returned.Size
	}
	return d
}

// gateID names one gate of one call; at the gate before a call there is no attempt yet.
func (c Call) gateID() string { return string(c.Gate.Point) + "." + c.askedAs() }

// runCallHooks asks the hooks at the gate of a call. The request follows from the state
// alone, so that a later activation can repeat it.
func runCallHooks(s *State, c Call) RunHooks {
	return RunHooks{ID: c.gateID(), Point: c.Gate.Point, Turn: s.Turn, Hooks: s.hooks.atCall(c.Gate.Point, c), Input: c.hookData()}
}

// rewritesMax is how often hooks may change the arguments of one call before it is denied.
const rewritesMax = 8

// rewriteCall replaces the arguments of a call by those that a hook gave, and asks every other hook
// about them: a hook that has passed a call, such as that of a parent, judges what runs. again is
// false if no other hook decides.
func rewriteCall(s *State, i int, c Call, v hookVerdict) (next *State, fx []Effect, again bool) {
	c.Args, c.Gate.AgreedReason, c.Gate.Rewriter, c.Gate.Rewrites = v.args, "", v.rewriter, c.Gate.Rewrites+1
	if s, c = applyPermissions(s, c); c.Stage == Ended {
		next, fx = advanceCalls(s.withCall(i, c.withLostNote()))
		return next, fx, true
	}
	if !slices.ContainsFunc(s.hooks.atCall(c.Gate.Point, c), func(h spec.Hook) bool { return !h.Report }) { //mutant:changed-arguments-not-judged
		return s, nil, false
	}
	if c.Gate.Rewrites > rewritesMax {
		next, fx = advanceCalls(s.withCall(i, c.deny("denied: hooks change its arguments again and again").withLostNote()))
		return next, fx, true
	}
	c.Gate.Again++
	return s.withCall(i, c), []Effect{runCallHooks(s, c)}, true
}

// callHooked continues after the gate of a call: the hooks' verdict changes the call, ends it, has a person asked, or
// lets it begin.
func callHooked(s *State, i int, f Hooked) (*State, []Effect) {
	c := s.Calls[i]
	v := s.hooks.weigh(c.Gate.Point, c, f.Answers)
	list := s.hooks.judge(f.Point, c, f.Answers)
	s.events.publishAnswers(f, s.Turn, c, list)
	if f.Point == spec.HookToolResult {
		s.events.publishTriggers(f, s.Turn, c, list)
	}
	s = keepRemarks(s, v.remarks)
	if v.args != c.Args && v.runsWithArgs() {
		if next, fx, again := rewriteCall(trialCopy(s), i, c, v); again {
			return next, fx
		}
		c.Args, c.Gate.AgreedReason = v.args, ""
		s, c = applyPermissions(s, c)
	}
	s = publishCallDecision(s, f, c, v)
	switch c.Gate.Point {
	case spec.HookToolError:
		return errorHooked(s, i, v)
	case spec.HookToolResult:
		return resultHooked(s, i, v)
	}
	c.Gate.Node = s.Node
	switch v.decision {
	case spec.HookPrevent:
		return haltByHook(s.withCall(i, c.cutOff(c.notRunAs(), c.notRunText()+": the run was ended by "+v.reasonText()).withLostNote()), spec.PolicyBlocked, v.reasonText()) //mutant:prevented-call-runs
	case spec.HookDeny:
		c = c.deny("denied by " + v.reasonText()) //mutant:denied-call-runs
	case spec.HookAsk:
		c.Gate.Permit.Asked = true
		if c.Gate.AgreedReason == v.reasonText() {
			c.Stage, c.Gate.Passed, c.Gate.Permit.MayWriteAny, c.Gate.Permit.Digest = Pending, true, true, s.tools.digest(c)
			break
		}
		if !s.mayAsk() {
			c = c.deny("denied: a person must decide, and " + spec.NobodyAsked + ": " + v.reasonText()) //mutant:ask-without-a-person
			break
		}
		c.Gate = c.Gate.awaitPerson(v) //mutant:call-to-ask-about-runs
	case spec.HookSkip:
		c = c.end(model.ToolResult{Text: cmp.Or(v.text, "skipped by "+v.reasonText())}) //mutant:skipped-call-runs
	case spec.HookOverride:
		if v.args == "" { //mutant:answered-call-runs-too
			c = c.end(model.ToolResult{Text: cmp.Or(v.text, "answered by "+v.reasonText()+" instead of the tool")})
			break
		}
		c.Stage, c.Gate.Passed = Pending, true
	case spec.HookPass, spec.HookAllow:
		c.Stage, c.Gate.Passed = Pending, true
	default: // weigh knows no other
		c = c.deny("denied: a hook decided " + string(v.decision) + ", which is not a decision about a call")
	}
	return advanceCalls(s.withCall(i, c.withLostNote()))
}

// errorHooked handles the hooks' verdict on a call that failed: the call's own
// result stands, the hooks' result replaces it, or the loop ends.
func errorHooked(s *State, i int, v hookVerdict) (*State, []Effect) {
	c := s.Calls[i]
	s.events.returned, c.Gate.Returned = c.Gate.Returned, Returned{}
	c = c.end(c.Result)
	if v.decision == spec.HookPrevent {
		return haltByHook(s.withCall(i, c), spec.ToolFailure, v.reasonText())
	}
	if v.decision == spec.HookOverride {
		c.Tokens, s.events.returned.Size = 0, 0 // they belong to the other result
		c = c.end(model.ToolResult{Text: cmp.Or(v.text, "answered by "+v.reasonText()+" instead of the tool, which failed")})
	}
	s, fx := judgeResult(s, i, c)
	return prependEffects(fx)(advanceCalls(s))
}

// haltByHook ends the loop within a batch because a hook decided so. It acts like a
// cancel, so that every open call gets its truthful result.
func haltByHook(s *State, as spec.Reason, why string) (*State, []Effect) {
	return handleCanceled(s, Canceled{Why: why, Now: true, As: as})
}

// askAboutCall asks a person about the first call that waits for one, as soon as no
// other call is in progress.
func askAboutCall(s *State) (*State, Effect) {
	if s.Phase != Acting || s.Cancel != nil {
		return s, nil
	}
	first := s.Calls.forPerson()
	if first < 0 {
		return s, nil
	}
	c := s.Calls[first]
	q := needApprovals(s, Park{Query: c.askedAs(), Call: c.ID, Reason: spec.NeedsHuman,
		Question: clip.Text(c.describeQuestion(&s.Task), detailBytesMax), Digest: s.tools.digest(c), Rule: s.alwaysRule(c), Tainted: taintOfQuestion(s, c)})
	if c.isLost() {
		q.Question = clip.Text(q.Question, detailBytesMax-len(lostNote)) + lostNote
	}
	return parkFor(s, q)
}

// applyDecision applies a person's decision to a call; digest is that of the call.
func (c Call) applyDecision(f Answered, digest string) Call {
	why := c.Gate.Person
	c.Gate.Person, c.Gate.Shows = "", ""
	switch text := strings.TrimSpace(f.Text); f.Decision {
	case spec.Approve:
		c.Stage, c.Gate.Passed = Pending, true
		c.Gate.AgreedReason = why
		c.Gate.Permit.MayWriteAny, c.Gate.Permit.Digest = true, digest
		return c
	case spec.Skip:
		return c.end(model.ToolResult{Text: strings.TrimSuffix("skipped by a person: "+text, ": ")})
	case spec.TextOnly:
		return c.end(model.ToolResult{Text: "a person answered instead of the tool: " + cmp.Or(text, "nothing")})
	default:
		if f.By == byClock {
			return c.deny("denied: " + text)
		}
		c.Disposition = refusedByPerson
		return c.fail(strings.TrimSuffix("denied by a person: "+text, ": ")) //mutant:person's-no-is-a-yes
	}
}

// endGate ends a call whose hooks or person are no longer awaited: a call that failed keeps its result, any other has
// not begun and gets notBegun as its result.
func (c Call) endGate(notBegun string) Call {
	c.Gate.Person = ""
	switch c.Gate.Point {
	case spec.HookToolError:
		return c.end(c.Result)
	case spec.HookToolResult:
		return c.withholdResult(notJudged)
	}
	if c.isLost() {
		return c.cutOff(event.Killed, "killed while running: its outcome is unknown")
	}
	return c.cutOff(event.NeverStarted, notBegun)
}
