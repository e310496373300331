package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// runHooks begins hooks. At a gate each life asks at most once.
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
	s.runs = append(s.runs, &run{shell: sh, hooks: &e})
}

// finishHooks posts what hooks answered. A process that lives always gets an
// answer from them: one that crashes or hangs has its default.
func (s *sim) finishHooks(r *run) {
	if r.shell.life.Phase == life.Silent || r.aborted && s.percent(50) {
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
	s.post(r.shell, "hooked", e.ID, f)
	if s.percent(3) { // and again, with another answer
		f.Answers = []agent.HookAnswer{s.hookAnswer(e, e.Hooks[0])}
		s.post(r.shell, "hooked", e.ID+".again", f)
	}
}

func (s *sim) hookAnswer(e *agent.RunHooks, h agent.Hook) agent.HookAnswer {
	a := agent.HookAnswer{Hook: h.Name, TookMS: int64(s.IntN(50))}
	if s.percent(15) {
		a.Failed, a.Decision = oneOf(s.dice, "it hangs", "exit 3"), h.Failing
		return a
	}
	a.Text = oneOf(s.dice, "", "", "mind", "mind "+itoa(s.IntN(100)), " ", strings.Repeat("y", agent.HookTextMax+5))
	if s.permille(3) {
		a.Hook = "stranger"
	}
	if s.stubborn && e.Point == agent.HookStop {
		a.Decision, a.Text = agent.HookBlock, "mind "+itoa(s.step)
		return a
	}
	if !s.percent(s.bite) {
		return a
	}
	a.Decision = decisions[s.IntN(len(decisions))]
	switch e.Point {
	case agent.HookPreTool:
		a.Args = oneOf(s.dice, "", `{"x":7}`, `{"x":`, "7", `{}`)
	case agent.HookContext:
		a.Decision = oneOf(s.dice, a.Decision, agent.HookPass, agent.HookPass)
		a.Messages = s.reshaped(e.Input.Messages)
	}
	return a
}

// reshaped is what a context hook makes of a prompt: shorter, other, or
// something that no provider takes.
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
