package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// enterCall begins a call, or asks the hooks before it. The gate precedes the record
// of a side effect: a call that the hooks reject leaves no Started.
func enterCall(s State, i int) (State, Effect) {
	c := s.Calls[i]
	if c.isApprovedOn(s.Node) {
		return beginCall(s, i)
	}
	if s, c = applyPermissions(s, c); c.Stage == Ended {
		return s.withCall(i, c.withLostNote()), nil
	}
	if len(s.hooks.atCall(spec.HookPreTool, Call{ToolCall: c.ToolCall, Gate: callGate{Permit: c.Gate.Permit}})) == 0 { //mutant:gate-not-waited-for
		return beginCall(s.withCall(i, c), i)
	}
	if c.Gate.Passed { // on another node
		c.Gate.Passed, c.Gate.Again, c.Gate.Rewriter, c.Gate.Rewrites = false, c.Gate.Again+1, 0, 0
	}
	c.Stage, c.Gate.Point = Gated, spec.HookPreTool
	return s.withCall(i, c), runCallHooks(s, c)
}

// finishAttempt handles the result of a call that ran. After a failure it asks the tool_error
// hooks, unless the loop is about to end; otherwise it only notifies hooks.
func finishAttempt(s State, i int, c Call) (State, []Effect) {
	if c.Result.Error && s.Cancel == nil && len(s.hooks.at(spec.HookToolError, c.Name)) > 0 {
		c.Stage, c.Gate.Point = Gated, spec.HookToolError
		return s.withCall(i, c), []Effect{runCallHooks(s, c)}
	}
	return keepResult(s, i, c)
}

// keepResult puts the result of a call into the state and notifies the post_tool hooks.
func keepResult(s State, i int, c Call) (State, []Effect) {
	return notifyHooks(s.withCall(i, c), spec.HookPostTool, fmt.Sprintf("%s.%d", c.ID, c.Attempt), c.Name, c.hookData())
}

// hookData returns the data of a call that hooks receive.
func (c Call) hookData() spec.HookData {
	return spec.HookData{Call: c.ID, Tool: c.Name, Args: c.Args, Result: c.Result.Text, Error: c.Result.Error}
}

// gateID names one gate of one call; at the gate before a call there is no attempt yet.
func (c Call) gateID() string { return string(c.Gate.Point) + "." + c.askedAs() }

// runCallHooks asks the hooks at the gate of a call. The request follows from the state
// alone, so that a later activation can repeat it.
func runCallHooks(s State, c Call) RunHooks {
	return RunHooks{ID: c.gateID(), Point: c.Gate.Point, Turn: s.Turn, Hooks: s.hooks.atCall(c.Gate.Point, c), Input: c.hookData()}
}

// rewritesMax is how often hooks may change the arguments of one call before it is denied.
const rewritesMax = 8

// rewriteCall replaces the arguments of a call by those that a hook gave, and asks every other hook
// about them: a hook that has passed a call, such as that of a parent, judges what runs. again is
// false if no other hook decides.
func rewriteCall(s State, i int, c Call, v hookVerdict) (next State, fx []Effect, again bool) {
	c.Args, c.Gate.AgreedReason, c.Gate.Rewriter, c.Gate.Rewrites = v.args, "", v.rewriter, c.Gate.Rewrites+1
	if s, c = applyPermissions(s, c); c.Stage == Ended {
		next, fx = advanceCalls(s.withCall(i, c.withLostNote()))
		return next, fx, true
	}
	if !slices.ContainsFunc(s.hooks.atCall(c.Gate.Point, c), func(h spec.Hook) bool { return !h.Report }) { //mutant:changed-arguments-not-judged
		return s, nil, false
	}
	if c.Gate.Rewrites > rewritesMax {
		next, fx = advanceCalls(s.withCall(i, c.fail("denied: hooks change its arguments again and again").withLostNote()))
		return next, fx, true
	}
	c.Gate.Again++
	return s.withCall(i, c), []Effect{runCallHooks(s, c)}, true
}

// callHooked continues after the gate of a call: the hooks' verdict changes the call, ends it, has a person asked, or
// lets it begin.
func callHooked(s State, i int, f Hooked) (State, []Effect) {
	c := s.Calls[i]
	v := s.hooks.weigh(c.Gate.Point, c, f.Answers)
	s.events.publishAnswers(f, s.Turn, c, s.hooks.judge(f.Point, c, f.Answers))
	s = keepRemarks(s, v.remarks)
	if v.args != c.Args && v.runsWithArgs() {
		if next, fx, again := rewriteCall(s, i, c, v); again {
			return next, fx
		}
		c.Args, c.Gate.AgreedReason = v.args, ""
		s, c = applyPermissions(s, c)
	}
	s = publishCallDecision(s, f, c, v)
	if c.Gate.Point == spec.HookToolError {
		return errorHooked(s, i, v)
	}
	c.Gate.Node = s.Node
	switch v.decision {
	case spec.HookPrevent:
		return haltByHook(s.withCall(i, c.fail(c.notRunText()+": the run was ended by "+v.reasonText()).withLostNote()), spec.PolicyBlocked, v.reasonText()) //mutant:prevented-call-runs
	case spec.HookDeny:
		c = c.fail("denied by " + v.reasonText()) //mutant:denied-call-runs
	case spec.HookAsk:
		c.Gate.Permit.Asked = true
		if c.Gate.AgreedReason == v.reasonText() {
			c.Stage, c.Gate.Passed, c.Gate.Permit.MayWriteAny, c.Gate.Permit.Digest = Pending, true, true, s.tools.digest(c)
			break
		}
		if !s.mayAsk() {
			c = c.fail("denied: " + v.reasonText() + " wants a person to decide, and nobody can be asked") //mutant:ask-without-a-person
			break
		}
		c = c.waitForPerson(v) //mutant:call-to-ask-about-runs
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
		c = c.fail("denied: a hook decided " + string(v.decision) + ", which is no decision about a call")
	}
	return advanceCalls(s.withCall(i, c.withLostNote()))
}

// errorHooked handles the hooks' verdict on a call that failed: the call's own
// result stands, the hooks' result replaces it, or the loop ends.
func errorHooked(s State, i int, v hookVerdict) (State, []Effect) {
	c := s.Calls[i]
	c = c.end(c.Result)
	if v.decision == spec.HookPrevent {
		return haltByHook(s.withCall(i, c), spec.ToolFailure, v.reasonText())
	}
	if v.decision == spec.HookOverride {
		c.Tokens = 0 // the count belongs to the other result
		c = c.end(model.ToolResult{Text: cmp.Or(v.text, "answered by "+v.reasonText()+" instead of the tool, which failed")})
	}
	s, fx := keepResult(s, i, c)
	return prependEffects(fx)(advanceCalls(s))
}

// haltByHook ends the loop within a batch because a hook decided so. It acts like a
// cancel, so that every open call gets its truthful result.
func haltByHook(s State, as spec.Reason, why string) (State, []Effect) {
	return handleCanceled(s, Canceled{Why: why, Now: true, As: as})
}

// waitForPerson makes a call wait for a person, who decides about it with the arguments that it has now.
func (c Call) waitForPerson(v hookVerdict) Call {
	c.Gate.Person, c.Gate.Shows = v.reasonText(), v.shows
	return c
}

// askAboutCall asks a person about the first call that waits for one, as soon as no
// other call is in progress.
func askAboutCall(s State) (State, Effect) {
	if s.Phase != Acting || s.Cancel != nil {
		return s, nil
	}
	first := s.Calls.forPerson()
	if first < 0 {
		return s, nil
	}
	c := s.Calls[first]
	q := Park{Query: c.askedAs(), Call: c.ID, Reason: spec.NeedsHuman,
		Question: clip.Text(c.describeQuestion(&s.Task), detailBytesMax), Digest: s.tools.digest(c), Rule: s.alwaysRule(c)}
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
			return c.fail("denied: " + text)
		}
		return c.fail(strings.TrimSuffix("denied by a person: "+text, ": ")) //mutant:person's-no-is-a-yes
	}
}

// endGate ends a call whose hooks or person are no longer awaited: a call that failed keeps its result, any other has
// not begun and gets notBegun as its result.
func (c Call) endGate(notBegun string) Call {
	c.Gate.Person = ""
	if c.Gate.Point == spec.HookToolError {
		return c.end(c.Result)
	}
	if c.isLost() {
		return c.fail("killed while running: its outcome is unknown")
	}
	return c.fail(notBegun)
}
