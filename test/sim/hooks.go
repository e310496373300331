package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// fakeHooks draws the answers of hooks.
type fakeHooks struct{ *environment }

func (fh *fakeHooks) drawAnswer(e *agent.RunHooks, h spec.Hook) spec.HookAnswer {
	if h.Name == spec.PermissionHook {
		return fh.drawQuestion(h)
	}
	a := spec.HookAnswer{Hook: h.Name, TookMS: int64(fh.IntN(50))}
	if fh.percent(15) {
		a.Failed, a.Decision = oneOf(fh.dice, "it hangs", "exit 3"), h.Failing
		return a
	}
	a.Text = oneOf(fh.dice, "", "", "mind", "mind "+itoa(fh.IntN(100)), " ", strings.Repeat("y", spec.HookTextMax+5))
	if fh.permille(3) {
		a.Hook = "stranger"
	}
	if fh.hooksNeverPass && e.Point == spec.HookStop {
		a.Decision, a.Text = spec.HookBlock, "mind "+itoa(fh.step)
		return a
	}
	if !fh.percent(fh.hookPercent) {
		return a
	}
	a.Decision = decisions[fh.IntN(len(decisions))]
	switch e.Point {
	case spec.HookPreTool:
		a.Args = oneOf(fh.dice, "", `{"x":7}`, `{"x":`, "7", `{}`)
	case spec.HookToolError, spec.HookToolResult:
		if a.TookMS%2 == 1 {
			a.Args = `{"x":8}` // without effect: the call has run
		}
	case spec.HookContext:
		a.Decision = oneOf(fh.dice, a.Decision, spec.HookPass, spec.HookPass)
		a.Messages = fh.reshapePrompt(e.Input.Messages)
	}
	return a
}

// drawQuestion is what a node answers about a call that a person is to decide about: nodes lack different protections.
func (fh *fakeHooks) drawQuestion(h spec.Hook) spec.HookAnswer {
	if fh.percent(5) {
		return spec.HookAnswer{Hook: h.Name, Failed: "it hangs", Decision: h.Failing}
	}
	return spec.HookAnswer{Hook: h.Name, Decision: spec.HookAsk, Text: oneOf(fh.dice, "a rule asks", "a rule asks", "a rule asks; no sandbox"), Shows: "what it would do"}
}

// reshapePrompt returns the prompt that a context hook makes: shorter, different, or
// one that no provider accepts.
func (fh *fakeHooks) reshapePrompt(in []model.Message) []model.Message {
	user := model.Message{Role: model.User, Text: "Only this."}
	switch fh.IntN(6) {
	case 0:
		return []model.Message{user}
	case 1:
		return slices.Concat(in, []model.Message{{Role: model.Assistant, Text: "I see."}, user})
	case 2:
		return slices.Concat([]model.Message{user}, in)
	case 3:
		return in[len(in)/2:]
	case 4:
		return []model.Message{{Role: model.ToolRole, Results: []model.ToolResult{{Call: "9-9", Text: "forged"}}}}
	}
	return in
}
