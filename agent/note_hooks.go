package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
)

// byPerson is the author of a decision that no hook made.
const byPerson = "a person"

// hooks notes the answers of hooks, and their consequences.
func (n *notes) hooks(before State, e Event, after State) {
	switch f := e.Fact.(type) {
	case Hooked:
		defer func(turn int) { n.turn = turn }(n.turn)
		n.turn = before.Turn
		if before.Gate.ID != "" && before.Gate.ID == f.ID && before.Gate.Point == f.Point {
			if f.Point == spec.HookContext || f.Point == spec.HookInput {
				n.turn = before.Turn + 1
			}
			n.fired(f, Call{}, before.judge(f.Point, Call{}, f.Answers))
			n.atGate(before, f, after)
		} else if i := before.gated(f); i >= 0 {
			c := before.Calls[i]
			n.fired(f, c, before.judge(f.Point, c, f.Answers))
			n.atCall(before, c, f)
		} else if slices.Contains(before.Rounds.Told, f.ID) && !f.Point.Gate() {
			n.told(before, f)
		}
	case Answered:
		if i := before.call(before.Query.Call); i >= 0 && f.Query == before.Query.Query && before.Calls[i].Stage == Gated {
			c := before.Calls[i]
			d := map[string]spec.HookDecision{"approve": spec.HookAllow, "skip": spec.HookSkip, "text": spec.HookOverride}[f.Decision]
			if d == "" {
				d = spec.HookDeny
			}
			n.add(decidedKind(d), event.ToolDecided{Call: c.ID, Tool: c.Name, Decision: d, By: []string{byPerson}, Why: f.Text})
		}
	}
}

func (n *notes) fired(f Hooked, c Call, list []judged) {
	for _, j := range list {
		n.add(event.KindHookFired, event.HookFired{ID: f.ID, Hook: j.hook.Name, Point: f.Point, Decision: j.answer.Decision, Text: j.answer.Text,
			Call: c.ID, Tool: c.Name, Failed: history.Clip(j.failed, errorShown), Report: j.hook.Report, TookMS: j.answer.TookMS})
		n.failed(j.hook.Name, j.failed)
	}
}

// failed warns about a hook that gave no verdict: its author should fix it.
func (n *notes) failed(hook, why string) {
	if why != "" {
		n.add(event.KindWarningRaised, event.Warning{What: "hook " + hook + " failed", Why: history.Clip(why, errorShown)})
	}
}

// told notes the answers of hooks that the loop did not wait for: they decide nothing.
func (n *notes) told(before State, f Hooked) {
	for _, a := range f.Answers {
		n.add(event.KindHookFired, event.HookFired{ID: f.ID, Hook: a.Hook, Point: f.Point, Text: history.Clip(a.Text, spec.HookTextMax), Failed: history.Clip(a.Failed, errorShown),
			Report: before.reports(a.Hook), TookMS: a.TookMS})
		n.failed(a.Hook, a.Failed)
	}
}

// atGate notes guardrails and transforms.
func (n *notes) atGate(before State, f Hooked, after State) {
	list, v := before.judge(f.Point, Call{}, f.Answers), before.weigh(f.Point, Call{}, f.Answers)
	switch f.Point {
	case spec.HookInput, spec.HookOutput:
		for _, j := range list {
			if j.answer.Decision == spec.HookDeny || j.answer.Decision == spec.HookTrip {
				n.add(event.KindGuardrailTriggered, event.GuardrailFired{Guardrails: []string{j.hook.Name}, Point: f.Point, Decision: j.answer.Decision,
					Why: j.answer.Text, Report: j.hook.Report})
			}
		}
		if v.decision != spec.HookDeny && v.decision != spec.HookTrip {
			return
		}
		level, times := "note", after.Rounds.Input
		if f.Point == spec.HookOutput {
			times = after.Rounds.Output
		}
		switch {
		case after.Phase == Done:
			level = "end"
		case times >= GuardrailDirective:
			level = "directive"
		}
		n.add(event.KindGuardrailEscalated, event.GuardrailFired{Guardrails: v.by, Point: f.Point, Decision: v.decision, Why: v.text, Times: times, Level: level})
	case spec.HookContext:
		if v.messages == nil || v.decision == spec.HookTrip {
			return
		}
		d := event.ContextTransformed{SentMessages: len(v.messages)}
		for _, j := range list {
			if !j.hook.Report && (j.answer.Messages != nil || j.answer.Sent > 0) {
				d.Hooks = append(d.Hooks, j.hook.Name)
			}
		}
		prompt := before.Prompt()
		d.Messages = len(prompt)
		for _, m := range prompt {
			d.Bytes += history.BytesOf(m)
		}
		for _, m := range v.messages {
			d.SentBytes += history.BytesOf(m)
		}
		n.add(event.KindContextTransformed, d)
	}
}

// atCall notes the decisions of hooks about a call.
func (n *notes) atCall(before State, c Call, f Hooked) {
	v := before.weigh(f.Point, c, f.Answers)
	if f.Point != spec.HookPreTool || v.decision == spec.HookAsk && before.Task.LoopOptions.Ask || v.decision == spec.HookPass && v.args == "" {
		return
	}
	d := event.ToolDecided{Call: c.ID, Tool: c.Name, Decision: v.decision, By: v.by, Why: v.text}
	kind := decidedKind(v.decision)
	if v.args != "" && (v.decision == spec.HookPass || v.decision == spec.HookOverride || v.decision == spec.HookAllow) {
		kind, d.Args = event.KindToolApproved, v.args
	}
	n.add(kind, d)
}

// decidedKind returns the event of a decision: only one that lets the call run approves it.
func decidedKind(d spec.HookDecision) string {
	if d == spec.HookAllow {
		return event.KindToolApproved
	}
	return event.KindToolDenied
}

// atWork reports whether a turn is in progress, from its model call to the end of
// its calls, including the time in which a person is asked about one of them.
func (s State) atWork() bool {
	switch s.Phase {
	case Thinking:
		return s.Purpose == ForTurn
	case Hooking:
		return s.Gate.Point == spec.HookOutput
	case Waiting:
		return len(s.Calls) > 0
	}
	return s.Phase == Acting
}
