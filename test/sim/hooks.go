package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
)

// runHooks begins hooks. Each activation asks at most once at a hook point.
func (s *sim) runHooks(sh *shell, e agent.RunHooks) {
	a := sh.actor
	s.note("hooks of %s at %s: %s", a.id, e.Point, e.ID)
	if e.ID == "" || len(e.Hooks) == 0 {
		s.fail("%s runs no hooks at %s, as %q", a.id, e.Point, e.ID)
	}
	key := gateKey{sh.start, e.ID}
	if s.ledger.gates[key]++; s.ledger.gates[key] > 1 && !a.hurt {
		s.fail("%s asks the hooks of %s twice in the life %s", a.id, e.ID, sh.start)
	}
	for _, h := range e.Hooks {
		if h.Point != e.Point {
			s.fail("%s runs the hook %s of %s at %s", a.id, h.Name, h.Point, e.Point)
		}
	}
	s.runs = append(s.runs, &run{shell: sh, key: activation.HookKey(e.ID), hooks: &e})
}

// finishHooks posts the answers of hooks. A live process always gets an
// answer from them: a hook that crashes or hangs yields its default.
func (s *sim) finishHooks(r *run) {
	if r.shell.reader().Phase == activation.Superseded || r.aborted && s.percent(50) {
		return
	}
	e := r.hooks
	f := agent.Hooked{ID: e.ID, Point: e.Point}
	for _, h := range e.Hooks {
		f.Answers = append(f.Answers, s.hookAnswer(e, h))
	}
	if s.permille(10) {
		f.Answers = nil
	}
	for _, a := range f.Answers {
		s.note("hook %s of %s answers %s: %q, %.20q, args %q, %d messages, failed %q", a.Hook, r.shell.actor.id, e.ID, a.Decision, a.Text, a.Args,
			len(a.Messages), a.Failed)
	}
	s.done(r.shell, "hooked", r.key, f)
	if s.percent(3) { // and again, with another answer
		f.Answers = []spec.HookAnswer{s.hookAnswer(e, e.Hooks[0])}
		s.done(r.shell, "hooked", r.key+".again", f)
	}
}

func (s *sim) hookAnswer(e *agent.RunHooks, h spec.Hook) spec.HookAnswer {
	a := spec.HookAnswer{Hook: h.Name, TookMS: int64(s.IntN(50))}
	if s.percent(15) {
		a.Failed, a.Decision = oneOf(s.dice, "it hangs", "exit 3"), h.Failing
		return a
	}
	a.Text = oneOf(s.dice, "", "", "mind", "mind "+itoa(s.IntN(100)), " ", strings.Repeat("y", spec.HookTextMax+5))
	if s.permille(3) {
		a.Hook = "stranger"
	}
	if s.stubborn && e.Point == spec.HookStop {
		a.Decision, a.Text = spec.HookBlock, "mind "+itoa(s.step)
		return a
	}
	if !s.percent(s.bite) {
		return a
	}
	a.Decision = decisions[s.IntN(len(decisions))]
	switch e.Point {
	case spec.HookPreTool:
		a.Args = oneOf(s.dice, "", `{"x":7}`, `{"x":`, "7", `{}`)
	case spec.HookContext:
		a.Decision = oneOf(s.dice, a.Decision, spec.HookPass, spec.HookPass)
		a.Messages = s.reshaped(e.Input.Messages)
	}
	return a
}

// reshaped returns the prompt that a context hook makes: shorter, different, or
// one that no provider accepts.
func (s *sim) reshaped(in []model.Message) []model.Message {
	user := model.Message{Role: model.User, Text: "Only this."}
	switch s.IntN(6) {
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
