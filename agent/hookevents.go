package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
)

// byPerson is the author of a decision that no hook made.
const byPerson = "a person"

// publishAnswers publishes what the hooks of a point answered.
func (c *stepEvents) publishAnswers(f Hooked, turn int, call Call, list []judged) {
	for _, j := range list {
		c.publishIn(hookEvents, turn, event.KindHookFired, event.HookFired{ID: f.ID, Hook: j.hook.Name, Point: f.Point, Decision: j.answer.Decision, Text: j.answer.Text,
			Call: call.ID, Tool: call.Name, Failed: history.Clip(j.failed, errorShown), Report: j.hook.Report, TookMS: j.answer.TookMS})
		c.publishHookFailure(turn, j.hook.Name, j.failed)
	}
}

// publishHookFailure warns about a hook that gave no verdict: its author should fix it.
func (c *stepEvents) publishHookFailure(turn int, hook, why string) {
	if why != "" {
		c.publishIn(hookEvents, turn, event.KindWarningRaised, event.Warning{What: "hook " + hook + " failed", Why: history.Clip(why, errorShown)})
	}
}

// publishRemarks publishes the answers of hooks that the loop did not wait for: they decide nothing.
func (s State) publishRemarks(f Hooked) State {
	for _, a := range f.Answers {
		s.events.publishIn(hookEvents, s.Turn, event.KindHookFired, event.HookFired{ID: f.ID, Hook: a.Hook, Point: f.Point, Text: history.Clip(a.Text, spec.HookTextMax),
			Failed: history.Clip(a.Failed, errorShown), Report: s.hooks.reports(a.Hook), TookMS: a.TookMS})
		s.events.publishHookFailure(s.Turn, a.Hook, a.Failed)
	}
	return s
}

// publishGate publishes the answers at a gate outside of calls, and what its guardrails
// and transforms decided.
func (s State) publishGate(f Hooked, v verdict) State {
	turn := s.Turn
	if f.Point == spec.HookContext || f.Point == spec.HookInput {
		turn++
	}
	list := s.hooks.judge(f.Point, Call{}, f.Answers)
	s.events.publishAnswers(f, turn, Call{}, list)
	switch f.Point {
	case spec.HookInput, spec.HookOutput:
		for _, j := range list {
			if d := j.answer.Decision; d == spec.HookDeny || d == spec.HookTrip {
				s.events.publishIn(hookEvents, turn, event.KindGuardrailTriggered, event.GuardrailFired{Guardrails: []string{j.hook.Name}, Point: f.Point,
					Decision: d, Why: j.answer.Text, Report: j.hook.Report})
			}
		}
		if v.decision == spec.HookDeny || v.decision == spec.HookTrip {
			s.events.publishIn(hookEvents, turn, event.KindGuardrailEscalated, event.GuardrailFired{Guardrails: v.by, Point: f.Point, Decision: v.decision, Why: v.text})
		}
	case spec.HookContext:
		if v.messages != nil && v.decision != spec.HookTrip {
			s.events.publishIn(hookEvents, turn, event.KindContextTransformed, s.transformation(list, v))
		}
	}
	return s
}

// transformation compares the prompt with the messages that replace it.
func (s State) transformation(list []judged, v verdict) event.ContextTransformed {
	prompt := s.Prompt()
	d := event.ContextTransformed{Messages: len(prompt), SentMessages: len(v.messages)}
	for _, j := range list {
		if !j.hook.Report && (j.answer.Messages != nil || j.answer.Sent > 0) {
			d.Hooks = append(d.Hooks, j.hook.Name)
		}
	}
	for _, m := range prompt {
		d.Bytes += history.BytesOf(m)
	}
	for _, m := range v.messages {
		d.SentBytes += history.BytesOf(m)
	}
	return d
}

// publishCallGate publishes the answers at the gate of a call, and what they decide about it.
func (s State) publishCallGate(f Hooked, c Call, v verdict) State {
	s.events.publishAnswers(f, s.Turn, c, s.hooks.judge(f.Point, c, f.Answers))
	if f.Point != spec.HookPreTool || v.decision == spec.HookAsk && s.Task.LoopOptions.Ask || v.decision == spec.HookPass && v.args == "" {
		return s
	}
	d := event.ToolDecided{Call: c.ID, Tool: c.Name, Decision: v.decision, By: v.by, Why: v.text}
	kind := decisionKind(v.decision)
	if v.args != "" && (v.decision == spec.HookPass || v.decision == spec.HookOverride || v.decision == spec.HookAllow) {
		kind, d.Args = event.KindToolApproved, v.args
	}
	s.events.publishIn(hookEvents, s.Turn, kind, d)
	return s
}

// publishApproval publishes what a person decided about a call.
func (c *stepEvents) publishApproval(call Call, f Answered) {
	d := map[string]spec.HookDecision{"approve": spec.HookAllow, "skip": spec.HookSkip, "text": spec.HookOverride}[f.Decision]
	if d == "" {
		d = spec.HookDeny
	}
	c.publish(hookEvents, decisionKind(d), event.ToolDecided{Call: call.ID, Tool: call.Name, Decision: d, By: []string{byPerson}, Why: f.Text})
}

// decisionKind returns the event of a decision: only one that lets the call run approves it.
func decisionKind(d spec.HookDecision) event.Kind {
	if d == spec.HookAllow {
		return event.KindToolApproved
	}
	return event.KindToolDenied
}
