package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
)

const declareTool = "declare_failure"

// drawDeclaration is a call that declares a failure, or has arguments that do not.
func (fm *fakeModel) drawDeclaration() model.ToolCall {
	return model.ToolCall{Name: declareTool, Args: oneOf(fm.dice, `{"reason":"no such order"}`, `{"reason":"no","kind":"refused"}`, `{"reason":"no","condition":9}`, `{"kind":"failed"}`)}
}

// checkDeclared checks that an agent that has declared a failure proposes to stop, or waits for those that it has to
// hear before, and does not go on as after any other call.
func (j *backgroundJudge) checkDeclared(before, after *agent.State, f activation.Fact) {
	if len(after.History) < 2 || len(after.History) == len(before.History) || after.Cancel != nil {
		return
	}
	said, got := after.History[len(after.History)-2], after.History[len(after.History)-1]
	if len(said.Calls) != 1 || said.Calls[0].Name != declareTool || len(got.Results) != 1 || got.Results[0].Error {
		return
	}
	if after.Phase == agent.Reserving && after.Transition == spec.NextTurn {
		j.fail(completedMeansDone, "%s has declared a failure, and goes on (%s after %s)", j.actor.id, after.Phase, f.Kind)
	}
}
