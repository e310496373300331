package agent

import "slices"

// Data of notes about hooks.
type (
	// HookFired is hook.fired: what one hook answered, or why it gave no verdict.
	HookFired struct {
		ID       string       `json:"id"`
		Hook     string       `json:"hook"`
		Point    HookPoint    `json:"point"`
		Decision HookDecision `json:"decision,omitempty"`
		Text     string       `json:"text,omitempty"`
		Call     string       `json:"call,omitempty"`
		Tool     string       `json:"tool,omitempty"`
		// Failed says why it is no verdict; Decision is then the default of the hook.
		Failed string `json:"failed,omitempty"`
		Report bool   `json:"report,omitempty"` // its decision has no effect
		TookMS int64  `json:"took_ms,omitempty"`
	}
	// GuardrailFired is guardrail.triggered and guardrail.escalated.
	GuardrailFired struct {
		Guardrails []string     `json:"guardrails"`
		Point      HookPoint    `json:"point"`
		Decision   HookDecision `json:"decision"`
		Why        string       `json:"why,omitempty"`
		Times      int          `json:"times,omitempty"`  // in a row
		Level      string       `json:"level,omitempty"`  // escalated: note, directive, end
		Report     bool         `json:"report,omitempty"` // it has no effect
	}
	// ContextTransformed is context.transformed.
	ContextTransformed struct {
		Hooks        []string `json:"hooks"`
		Messages     int      `json:"messages"` // of the prompt
		Bytes        int      `json:"bytes"`
		SentMessages int      `json:"sent_messages"` // instead
		SentBytes    int      `json:"sent_bytes"`
	}
	// ToolDecided is tool.denied and tool.approved: what hooks or a person
	// decided about a call.
	ToolDecided struct {
		Call     string       `json:"call"`
		Tool     string       `json:"tool"`
		Decision HookDecision `json:"decision"`
		By       []string     `json:"by"` // hooks, or a person
		Why      string       `json:"why,omitempty"`
		Args     string       `json:"args,omitempty"` // it runs with these instead
	}
)

// byPerson is who decided where it was no hook.
const byPerson = "a person"

// hooks tells what hooks answered, and what came of it.
func (n *notes) hooks(before State, e Event, after State) {
	switch f := e.Fact.(type) {
	case Hooked:
		defer func(turn int) { n.turn = turn }(n.turn)
		n.turn = before.Turn
		if before.Gate.ID != "" && before.Gate.ID == f.ID && before.Gate.Point == f.Point {
			if f.Point == HookContext || f.Point == HookInput {
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
			d := map[string]HookDecision{"approve": HookAllow, "skip": HookSkip, "text": HookOverride}[f.Decision]
			if d == "" {
				d = HookDeny
			}
			n.add(decidedKind(d), ToolDecided{Call: c.ID, Tool: c.Name, Decision: d, By: []string{byPerson}, Why: f.Text})
		}
	}
}

func (n *notes) fired(f Hooked, c Call, list []judged) {
	for _, j := range list {
		n.add("hook.fired", HookFired{ID: f.ID, Hook: j.hook.Name, Point: f.Point, Decision: j.answer.Decision, Text: j.answer.Text,
			Call: c.ID, Tool: c.Name, Failed: clip(j.failed, errorShown), Report: j.hook.Report, TookMS: j.answer.TookMS})
		n.failed(j.hook.Name, j.failed)
	}
}

// failed warns of a hook that gave no verdict: someone should mend it.
func (n *notes) failed(hook, why string) {
	if why != "" {
		n.add("warning.raised", Warned{What: "hook " + hook + " failed", Why: clip(why, errorShown)})
	}
}

// told tells of hooks that nobody waited for: their answer decides nothing.
func (n *notes) told(before State, f Hooked) {
	for _, a := range f.Answers {
		n.add("hook.fired", HookFired{ID: f.ID, Hook: a.Hook, Point: f.Point, Text: clip(a.Text, HookTextMax), Failed: clip(a.Failed, errorShown),
			Report: before.reports(a.Hook), TookMS: a.TookMS})
		n.failed(a.Hook, a.Failed)
	}
}

// atGate tells of guardrails and transforms.
func (n *notes) atGate(before State, f Hooked, after State) {
	list, v := before.judge(f.Point, Call{}, f.Answers), before.weigh(f.Point, Call{}, f.Answers)
	switch f.Point {
	case HookInput, HookOutput:
		for _, j := range list {
			if j.answer.Decision == HookDeny || j.answer.Decision == HookTrip {
				n.add("guardrail.triggered", GuardrailFired{Guardrails: []string{j.hook.Name}, Point: f.Point, Decision: j.answer.Decision,
					Why: j.answer.Text, Report: j.hook.Report})
			}
		}
		if v.decision != HookDeny && v.decision != HookTrip {
			return
		}
		level, times := "note", after.Rounds.Input
		if f.Point == HookOutput {
			times = after.Rounds.Output
		}
		switch {
		case after.Phase == Done:
			level = "end"
		case times >= GuardrailDirective:
			level = "directive"
		}
		n.add("guardrail.escalated", GuardrailFired{Guardrails: v.by, Point: f.Point, Decision: v.decision, Why: v.text, Times: times, Level: level})
	case HookContext:
		if v.messages == nil || v.decision == HookTrip {
			return
		}
		d := ContextTransformed{SentMessages: len(v.messages)}
		for _, j := range list {
			if !j.hook.Report && (j.answer.Messages != nil || j.answer.Sent > 0) {
				d.Hooks = append(d.Hooks, j.hook.Name)
			}
		}
		prompt := before.Prompt()
		d.Messages = len(prompt)
		for _, m := range prompt {
			d.Bytes += volume(m)
		}
		for _, m := range v.messages {
			d.SentBytes += volume(m)
		}
		n.add("context.transformed", d)
	}
}

// atCall tells what hooks decided about a call.
func (n *notes) atCall(before State, c Call, f Hooked) {
	v := before.weigh(f.Point, c, f.Answers)
	if f.Point != HookPreTool || v.decision == HookAsk && before.Task.Manners.Ask || v.decision == HookPass && v.args == "" {
		return
	}
	d := ToolDecided{Call: c.ID, Tool: c.Name, Decision: v.decision, By: v.by, Why: v.text}
	kind := decidedKind(v.decision)
	if v.args != "" && (v.decision == HookPass || v.decision == HookOverride || v.decision == HookAllow) {
		kind, d.Args = "tool.approved", v.args
	}
	n.add(kind, d)
}

// decidedKind: only what lets the call run approves it.
func decidedKind(d HookDecision) string {
	if d == HookAllow {
		return "tool.approved"
	}
	return "tool.denied"
}

// atWork: a turn is under way, from its model call to the end of its calls, and
// while a person is asked about one of them.
func (s State) atWork() bool {
	switch s.Phase {
	case Thinking:
		return s.Purpose == ForTurn
	case Hooking:
		return s.Gate.Point == HookOutput
	case Waiting:
		return len(s.Calls) > 0
	}
	return s.Phase == Acting
}

// bareHook is Bare for notes about hooks.
func bareHook(data any) any {
	switch d := data.(type) {
	case HookFired:
		if d.Text = ""; d.Failed != "" {
			d.Failed = "it gave no verdict"
		}
		return d
	case GuardrailFired:
		d.Why = ""
		return d
	case ToolDecided:
		d.Why, d.Args = "", ""
		return d
	}
	return data
}
