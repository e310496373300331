package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// enter begins a call, or asks the hooks before it. The gate stands before the
// record of a side effect: what is not let through leaves no Started.
func (s State) enter(i int) (State, Effect) {
	c := s.Calls[i]
	if s.letThrough(c) || len(s.hooksAt(HookPreTool, c.Name)) == 0 { //mutant:gate-not-waited-for
		return s.begin(i)
	}
	if c.Passed { // elsewhere
		c.Passed, c.Again = false, c.Again+1
	}
	c.Stage, c.Gate = Gated, HookPreTool
	return s.with(i, c), s.atCall(c)
}

// landed takes the result of a call that ran. After a failure hooks are asked,
// unless the loop is about to end; otherwise hooks are told.
func (s State) landed(i int, c Call) (State, []Effect) {
	if c.Result.Error && s.Cancel == nil && len(s.hooksAt(HookToolError, c.Name)) > 0 {
		c.Stage, c.Gate = Gated, HookToolError
		return s.with(i, c), []Effect{s.atCall(c)}
	}
	return s.ended(i, c)
}

// ended tells hooks of a result.
func (s State) ended(i int, c Call) (State, []Effect) {
	return s.with(i, c).tell(HookPostTool, fmt.Sprintf("%s.%d", c.ID, c.Attempt), c.Name, c.told())
}

// told is what hooks are told of a call.
func (c Call) told() HookData {
	return HookData{Call: c.ID, Tool: c.Name, Args: c.Args, Result: c.Result.Text, Error: c.Result.Error}
}

// gateID names one gate of one call; before a call there was no attempt yet.
func (c Call) gateID() string { return string(c.Gate) + "." + c.askedAs() }

// atCall asks the hooks at the gate of a call. All of it follows from the
// state, so that a later life can ask again.
func (s State) atCall(c Call) RunHooks {
	return RunHooks{ID: c.gateID(), Point: c.Gate, Turn: s.Turn, Hooks: s.hooksAt(c.Gate, c.Name), Input: c.told()}
}

// gated is the call at whose gate an answer came, or -1.
func (s State) gated(f Hooked) int {
	if s.Phase != Acting {
		return -1
	}
	return slices.IndexFunc(s.Calls, func(c Call) bool {
		return c.Stage == Gated && c.Person == "" && c.Gate == f.Point && c.gateID() == f.ID //mutant:answer-of-another-call's-gate
	})
}

// callHooked goes on behind the gate of a call.
func callHooked(s State, i int, f Hooked) (State, []Effect) {
	c := s.Calls[i]
	v := s.weigh(c.Gate, c, f.Answers)
	s = s.remark(v.remarks)
	if c.Gate == HookToolError {
		return errorHooked(s, i, v)
	}
	if v.args != "" && v.decision != HookDeny && v.decision != HookSkip && v.decision != HookPrevent {
		if v.args != c.Args {
			c.Agreed = ""
		}
		c.Args = v.args
	}
	c = s.heardOf(c)
	switch v.decision {
	case HookPrevent:
		return halt(s.with(i, c.fail(c.unrun()+": the run was ended by "+v.why()).confessing()), PolicyBlocked, v.why()) //mutant:prevented-call-runs
	case HookDeny:
		c = c.fail("denied by " + v.why()) //mutant:denied-call-runs
	case HookAsk:
		if c.Agreed == v.why() {
			c.Stage, c.Passed = Pending, true
			break
		}
		c = c.ask(v, s.Task.Manners.Ask) //mutant:call-to-ask-about-runs
	case HookSkip:
		c = c.end(model.ToolResult{Text: cmp.Or(v.text, "skipped by "+v.why())}) //mutant:skipped-call-runs
	case HookOverride:
		if v.args == "" { //mutant:answered-call-runs-too
			c = c.end(model.ToolResult{Text: cmp.Or(v.text, "answered by "+v.why()+" instead of the tool")})
			break
		}
		c.Stage, c.Passed = Pending, true
	default:
		c.Stage, c.Passed = Pending, true
	}
	return advance(s.with(i, c.confessing()))
}

// errorHooked takes what hooks say about a call that failed: its result stands,
// or theirs does, or the loop ends.
func errorHooked(s State, i int, v verdict) (State, []Effect) {
	c := s.Calls[i]
	c = c.end(c.Result)
	if v.decision == HookPrevent {
		return halt(s.with(i, c), ToolFailure, v.why())
	}
	if v.decision == HookOverride {
		c.Tokens = 0 // they were of another result
		c = c.end(model.ToolResult{Text: cmp.Or(v.text, "answered by "+v.why()+" instead of the tool, which failed")})
	}
	s, fx := s.ended(i, c)
	return then(fx)(advance(s))
}

// halt ends the loop from within a batch, as a hook decided: like a cancel, so
// every open call gets its truthful result.
func halt(s State, as Reason, why string) (State, []Effect) {
	return canceled(s, Canceled{Why: why, Now: true, As: as})
}

// ask keeps a call waiting for a person. The decision is about this call with
// these arguments: they cannot change any more.
func (c Call) ask(v verdict, may bool) Call {
	if !may {
		return c.fail("denied: " + v.why() + " wants a person to decide, and nobody can be asked") //mutant:ask-without-a-person
	}
	c.Person = v.why()
	return c
}

// putCall asks a person about the first call that waits for it, as soon as
// nothing else is under way.
func (s State) putCall() (State, Effect) {
	if s.Phase != Acting || s.Cancel != nil {
		return s, nil
	}
	first := -1
	for i, c := range s.Calls {
		switch {
		case c.Stage == Ended || c.Stage == Pending:
		case c.Person == "":
			return s, nil
		case first < 0:
			first = i
		}
	}
	if first < 0 {
		return s, nil
	}
	c := s.Calls[first]
	s.Phase, s.Parked = Waiting, s.Now
	s.Query = Park{Query: c.askedAs(), Call: c.ID, Reason: NeedsHuman,
		Question: clip(fmt.Sprintf("May %s run with %s? Asked by %s (approve: run it; deny; skip: go on without it; or say its result)",
			c.Name, clip(c.Args, approvalShown), clip(c.Person, approvalShown)), DetailBytesMax)}
	if c.lost() {
		s.Query.Question = clip(s.Query.Question, DetailBytesMax-len(lostNote)) + lostNote
	}
	return s, s.Query
}

const approvalShown = 1500

// approved is a call after a person has decided about it.
func (c Call) approved(f Answered) Call {
	c.Person = ""
	switch text := strings.TrimSpace(f.Text); f.Decision {
	case "approve":
		c.Stage, c.Passed = Pending, true
		return c
	case "skip":
		return c.end(model.ToolResult{Text: strings.TrimSuffix("skipped by a person: "+text, ": ")})
	case "text":
		return c.end(model.ToolResult{Text: "a person answered instead of the tool: " + cmp.Or(text, "nothing")})
	default:
		return c.fail(strings.TrimSuffix("denied by a person: "+text, ": ")) //mutant:person's-no-is-a-yes
	}
}

// ungated is a call whose hooks nobody waits for any more: one that failed has
// its result, any other has not begun.
func (c Call) ungated(never string) Call {
	c.Person = ""
	if c.Gate == HookToolError {
		return c.end(c.Result)
	}
	if c.lost() {
		return c.fail("killed while running: its outcome is unknown")
	}
	return c.fail(never)
}
