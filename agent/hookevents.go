package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/internal/permission/person"
	"github.com/troupe-run/troupe/model"
)

// byPerson is the author of a decision that no hook made.
const byPerson = person.ByPerson

// publishAnswers publishes what the hooks of a point answered.
func (e *stepEvents) publishAnswers(f Hooked, turn int, call Call, list []judgedAnswer) {
	for _, j := range list {
		e.publishIn(hookEvents, turn, event.KindHookFired, event.HookFired{ID: f.ID, Hook: j.hook.Name, Point: f.Point, Decision: j.answer.Decision, Severity: j.answer.Severity, Text: j.answer.Text,
			Call: call.ID, Tool: call.Name, Failed: clip.Text(j.failed, errorShownBytes), Report: j.hook.Report, TookMS: j.answer.TookMS})
		e.publishHookFailure(turn, j.hook.Name, j.failed)
	}
}

// publishTriggers publishes what guardrails found: each that did not pass a prompt, a reply or a result.
func (e *stepEvents) publishTriggers(f Hooked, turn int, call Call, list []judgedAnswer) {
	for _, j := range list {
		if d := j.answer.Decision; d == spec.HookDeny || d == spec.HookTrip {
			e.publishIn(hookEvents, turn, event.KindGuardrailTriggered, event.GuardrailFired{Guardrails: []string{j.hook.Name}, Point: f.Point,
				Decision: d, Severity: j.answer.Severity, Call: call.ID, Tool: call.Name, Why: j.answer.Text, Report: j.hook.Report})
		}
	}
}

// publishHookFailure warns about a hook that gave no verdict: its author should fix it.
func (e *stepEvents) publishHookFailure(turn int, hook, why string) {
	if why != "" {
		e.publishIn(hookEvents, turn, event.KindWarningRaised, event.Warning{What: "hook " + hook + " failed", Why: clip.Text(why, errorShownBytes)})
	}
}

// publishRemarks publishes the answers of hooks that the loop did not wait for: they decide nothing.
func (e *stepEvents) publishRemarks(f Hooked, turn int, hooks *hookRules) {
	for _, a := range f.Answers {
		e.publishIn(hookEvents, turn, event.KindHookFired, event.HookFired{ID: f.ID, Hook: a.Hook, Point: f.Point, Text: clip.Text(a.Text, spec.HookTextMax),
			Failed: clip.Text(a.Failed, errorShownBytes), Report: hooks.reports(a.Hook), TookMS: a.TookMS})
		e.publishHookFailure(turn, a.Hook, a.Failed)
	}
}

// publishGate publishes the answers at a gate outside of calls, and what its guardrails
// and transforms decided.
func publishGate(s *State, f Hooked, v hookVerdict) *State {
	turn := s.Turn
	if f.Point == spec.HookContext || f.Point == spec.HookInput {
		turn++
	}
	list := s.hooks.judge(f.Point, Call{}, f.Answers)
	s.events.publishAnswers(f, turn, Call{}, list)
	switch f.Point {
	case spec.HookInput, spec.HookOutput:
		s.events.publishTriggers(f, turn, Call{}, list)
		if v.decision == spec.HookDeny || v.decision == spec.HookTrip {
			s.events.publishIn(hookEvents, turn, event.KindGuardrailEscalated, event.GuardrailFired{Guardrails: v.by, Point: f.Point, Decision: v.decision, Severity: v.severity, Why: v.text})
		}
	case spec.HookContext:
		if (v.messages != nil || v.system != nil) && v.decision != spec.HookTrip {
			s.events.publishIn(hookEvents, turn, event.KindContextTransformed, describeTransform(s.Prompt(), list, v))
		}
	}
	return s
}

// describeTransform compares the prompt with the messages that replace it.
func describeTransform(prompt []model.Message, list []judgedAnswer, v hookVerdict) event.ContextTransformed {
	d := event.ContextTransformed{Messages: len(prompt)}
	for _, j := range list {
		if !j.hook.Report && (j.answer.Messages != nil || j.answer.Sent > 0 || j.answer.System != nil) {
			d.Hooks = append(d.Hooks, j.hook.Name)
		}
	}
	for _, m := range prompt {
		d.Bytes += message.BytesOf(m)
	}
	sent := v.messages
	if sent == nil {
		sent = prompt
	}
	d.SentMessages = len(sent)
	if v.system != nil {
		d.SystemBytes = len(*v.system)
	}
	for _, m := range sent {
		d.SentBytes += message.BytesOf(m)
	}
	return d
}

// publishCallDecision publishes what the answers at the gate of a call decide about it.
func publishCallDecision(s *State, f Hooked, c Call, v hookVerdict) *State {
	// the sandbox confines the call, so it needs no approval
	if f.Point == spec.HookPreTool && v.decision == spec.HookPass && c.Gate.Permit.Query != "" {
		confined := s.decidePermission(c)
		confined.Why += ", and the sandbox confines it"
		s.events.publishVerdict(c, spec.HookAllow, confined, s.tools.digest(c))
	}
	if f.Point != spec.HookPreTool || v.decision == spec.HookAsk && s.mayAsk() || v.decision == spec.HookPass && v.args == "" && c.Gate.Rewrites == 0 {
		return s
	}
	// other hooks approve the arguments that a hook has changed
	if runs := v.decision == spec.HookPass || v.decision == spec.HookAllow; runs && v.args == "" && c.Gate.Rewriter > 0 {
		v.args, v.by = c.Args, append(v.by, s.hooks.at(spec.HookPreTool, c.Name)[c.Gate.Rewriter-1].Name)
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
func (e *stepEvents) publishApproval(call Call, f Answered, q Park) {
	d := map[spec.Decision]spec.HookDecision{spec.Approve: spec.HookAllow, spec.Skip: spec.HookSkip, spec.TextOnly: spec.HookOverride}[f.Decision]
	if d == "" {
		d = spec.HookDeny
	}
	e.publish(hookEvents, decisionKind(d), event.ToolDecided{Call: call.ID, Tool: call.Name, Decision: d, By: q.deciders(f), Why: f.Text, Digest: q.Digest, Rule: q.addedRule(f)})
}

// publishAnswer publishes a person's answer. Its text is published if it is the reason of a decision about a call: the
// answer to another question is in the transcript.
func (e *stepEvents) publishAnswer(f Answered, q Park) {
	d := event.QueryAnswered{Query: f.Query, Decision: f.Decision, By: f.By, Always: f.Always, Digest: q.Digest}
	if q.Digest != "" || q.Reason == spec.ResumeUnsafe {
		d.Why = f.Text
	}
	if q.isApproval(f) && !q.isSecond(f) {
		d.Missing = q.Approvals - 1
	}
	e.publish(entryEvents, event.KindQueryAnswered, d)
}

// addedRule is the rule that an answer to the question adds.
func (q Park) addedRule(f Answered) string {
	if f.Decision != spec.Approve || f.Always == "" {
		return ""
	}
	return q.Rule
}

// decisionKind returns the event of a decision: only one that lets the call run approves it.
func decisionKind(d spec.HookDecision) event.Kind {
	if d == spec.HookAllow {
		return event.KindToolApproved
	}
	return event.KindToolDenied
}
