package agent_test

import (
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// gatedTask is the ordinary task with a hook at every point, two of them with a
// default, and a person to ask.
var gatedTask = func() agent.Task {
	t := ordinary
	t.Manners = agent.Manners{Ask: true, Hooks: []agent.Hook{
		{Name: "fold", Point: agent.HookContext}, {Name: "scope", Point: agent.HookInput}, {Name: "pii", Point: agent.HookOutput, Failing: agent.HookTrip},
		{Name: "critic", Point: agent.HookSampled}, {Name: "gate", Point: agent.HookPreTool}, {Name: "payer", Point: agent.HookPreTool, Tools: "charge", Failing: agent.HookDeny},
		{Name: "mender", Point: agent.HookToolError}, {Name: "scribe", Point: agent.HookPostTool}, {Name: "tests", Point: agent.HookStop},
		{Name: "pager", Point: agent.HookStopFailure}, {Name: "quiet", Point: agent.HookStop, Report: true},
	}}
	return t
}()

// aimHooked makes an answer one to a gate that is open, by the hooks that stand there.
func (r *source) aimHooked(f *agent.Hooked) {
	f.ID, f.Point = r.s.Gate.ID, r.s.Gate.Point
	tool := ""
	for _, c := range r.s.Calls {
		if c.Stage == agent.Gated && r.byte() > 100 {
			f.Point, tool = c.Gate, c.Name
			f.ID = string(f.Point) + "." + c.ID + "." + string(rune('0'+c.Attempt))
		}
	}
	if f.ID == "" && len(r.s.Rounds.Told) > 0 {
		f.ID, f.Point = r.s.Rounds.Told[0], agent.HookPostTool
	}
	f.Answers = nil
	for _, h := range r.s.Task.Manners.Hooks {
		if h.Point != f.Point || h.Tools != "" && h.Tools != tool {
			continue
		}
		a := agent.HookAnswer{Hook: h.Name, Text: r.word()}
		decisions := []agent.HookDecision{"", "", "", "", "allow", "allow", "deny", "ask", "skip", "override", "block", "block", "prevent", "trip", "nonsense"}
		a.Decision = decisions[int(r.byte())%len(decisions)]
		switch b := r.byte(); {
		case b > 235:
			a.Failed = "it crashed"
		case b > 200:
			a.Args = `{"q":"7"}`
		case b > 180:
			a.Args = `{"task":7}`
		case b > 80:
			a.Messages = []model.Message{{Role: model.User, Text: "in short"}, {Role: model.Assistant, Text: r.word()}, {Role: model.User, Text: r.word()}}
		}
		f.Answers = append(f.Answers, a)
	}
}

// TestHooksAnyFacts: with hooks at every point no order of facts makes the loop
// panic, begin a call twice, or send or leave what a provider refuses (A19).
func TestHooksAnyFacts(t *testing.T) {
	for seed := range uint64(3000) {
		if err := walk(noise(seed, 900), &gatedTask); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestHooksEnds: every stop reason and the transition that hooks bring about are
// met by chance, and no gate outlives its loop (A7, A17).
func TestHooksEnds(t *testing.T) {
	ended, transitions := map[agent.Reason]int{}, map[agent.Transition]int{}
	for seed := range uint64(2500) {
		r := &source{data: noise(seed, 1200), task: &gatedTask}
		var s agent.State
		for len(r.data) > 0 {
			r.s = s
			s, _ = agent.Step(s, agent.Event{At: s.Now + 1000, Life: s.Life, Fact: r.fact()})
			transitions[s.Transition]++
			if s.Phase == agent.Hooking && s.Gate.ID == "" || s.Phase == agent.Done && s.Gate.ID != "" {
				t.Fatalf("seed %d: in phase %s the gate is %+v", seed, s.Phase, s.Gate)
			}
		}
		ended[s.Outcome.Reason]++
	}
	for _, want := range []agent.Reason{agent.StopHookPrevented, agent.Guardrail, agent.PolicyBlocked, agent.ToolFailure, agent.Completed} {
		if ended[want] == 0 {
			t.Errorf("no run ended with %s: %v", want, ended)
		}
	}
	if transitions[agent.StopHookBlocking] == 0 {
		t.Errorf("no stop was sent back: %v", transitions)
	}
}
