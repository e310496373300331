package agent

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// declareTool is the tool by which a model says that it has failed, or refuses. The loop answers it: the call is a
// proposal to stop, as an answer with a mark is (declaredFailure), so stop hooks and the supervisor may send it back.
const declareTool = "declare_failure"

// declareArgs are the arguments of declare_failure.
type declareArgs struct {
	Reason, Kind string
	Condition    int
}

// DeclareSpec describes declare_failure to a model. The loop answers it if LoopOptions.DeclareFailure is set.
func DeclareSpec() model.ToolSpec {
	return model.ToolSpec{Name: declareTool, Class: model.Read,
		Description: "End your work as a failure: you could not do your task, or will not do it. Say what you tried and what is missing. Call it alone in a reply, when nothing is left to try.",
		Schema: `{"type":"object","properties":{"reason":{"type":"string"},"kind":{"type":"string","enum":["failed","refused"],"description":"failed (the default): you could not do the task; refused: you will not do it"},` +
			`"condition":{"type":"integer","minimum":1,"description":"the number of the failure condition that holds, if your task has such conditions"}},"required":["reason"],"additionalProperties":false}`}
}

// declaration is a failure that the agent has declared by a call. It stands until the next reply.
type declaration struct {
	Reason    spec.Reason // spec.Failed or spec.Refused; "": there is none
	Why       string
	Condition int // that holds, from 1; 0: none
}

// declareError returns the error in the arguments of declare_failure, or "" if they are valid.
func declareError(args string) string {
	var a declareArgs
	decodeArgs(args, &a) // arguments that do not decode are empty
	switch {
	case strings.TrimSpace(a.Reason) == "":
		return "the reason is empty"
	case len(a.Reason) > detailBytesMax:
		return fmt.Sprintf("the reason is %d bytes, at most %d are allowed", len(a.Reason), detailBytesMax)
	case a.Condition > 0 && a.Kind == string(spec.Refused):
		return "a condition is one of failure: leave condition out, or kind"
	}
	return ""
}

// answerDeclaration answers a call of declare_failure.
func answerDeclaration(c Call, conditions int) Call {
	var a declareArgs
	decodeArgs(c.Args, &a)
	switch {
	case a.Condition > 0 && conditions == 0:
		return c.fail("not declared: your task has no failure conditions; leave condition out")
	case a.Condition > conditions:
		return c.fail(fmt.Sprintf("not declared: there is no failure condition %d; they are numbered 1 to %d", a.Condition, conditions))
	}
	c.Disposition = failureDeclared
	return c.end(model.ToolResult{Text: "noted; your work ends here unless you are told to go on"})
}

// declarationOf returns the failure that a batch has declared.
func declarationOf(calls []Call) (d declaration) {
	for _, c := range calls {
		if c.Disposition != failureDeclared { //mutant:declared-failure-goes-on
			continue
		}
		var a declareArgs
		decodeArgs(c.Args, &a)
		d = declaration{Reason: spec.Failed, Why: clip.Text(strings.TrimSpace(a.Reason), detailBytesMax), Condition: a.Condition}
		if a.Kind == string(spec.Refused) {
			d.Reason = spec.Refused
		}
	}
	return d
}

// answer is the final answer of an agent that has declared a failure: what its reply says, and the reason.
func (d declaration) answer(said string) string {
	switch said = strings.TrimSpace(said); {
	case said == "":
		return d.Why
	case strings.Contains(said, d.Why):
		return said
	}
	return said + "\n\n" + d.Why
}
