package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/model"
)

// hookGate is a point at which the loop waits for hooks, outside of calls.
type hookGate struct {
	ID    string
	Point spec.HookPoint
	Why   spec.Transition // context, input: of the turn that waits for it
	Stop  model.Stop      // output: what the provider said of the reply
}

// hookEffects holds the effects of hooks so far.
type hookEffects struct {
	Unawaited []string // ids of running hooks that the loop does not wait for
	Blocks    int      // stops that hooks have sent back, in a row
	Block     string   // the text of the last of them
	Input     int      // prompts that guardrails did not pass, in a row
	Output    int      // replies that guardrails did not pass, in a row
	// Sent replaces the prompt this turn; nil: the prompt is sent.
	Sent []model.Message
	// System replaces the first part of the system prompt this turn; nil: it is sent as it is.
	System *string
}

// changedPrompt reports whether hooks have changed the request of this turn.
func (h hookEffects) changedPrompt() bool { return h.Sent != nil || h.System != nil }

// remarksMax is how many remarks of hooks enter at one turn boundary; only observers see further ones.
const remarksMax = 16

// hookRules says which hooks a task has at which points, and what their answers mean. It derives
// from the task, never changes, and is shared by all States of one agent.
type hookRules struct {
	list     []spec.Hook
	patterns []*regexp.Regexp // the tools of each hook; nil matches all tools
	root     bool             // the agent is the root of its run
	media    []model.Media    // of the task
	tools    *toolRules
}

// compileHooks compiles the tool patterns of hooks, in their order. A broken pattern
// matches every tool: a gate that cannot be read stays closed.
func compileHooks(t spec.Task, tools *toolRules) *hookRules {
	hooks := t.LoopOptions.Hooks
	r := &hookRules{list: hooks, patterns: make([]*regexp.Regexp, len(hooks)), root: t.Depth == 0, media: t.Media, tools: tools}
	for i, h := range hooks {
		if re, err := spec.ToolPattern(h.Tools); err == nil {
			r.patterns[i] = re
		}
	}
	return r
}

// at returns the hooks of a point, in order. tool is "" if the point does not
// concern a tool.
func (r *hookRules) at(p spec.HookPoint, tool string) []spec.Hook {
	var at []spec.Hook
	for i, h := range r.list {
		mine := h.Of == "" || (h.Of == spec.OfRoot) == r.root
		if h.Point == p && mine && (tool == "" || r.patterns[i] == nil || r.patterns[i].MatchString(tool)) {
			at = append(at, h)
		}
	}
	return at
}

// atCall returns the hooks at the gate of a call. The hook whose arguments the call has is not asked
// about them. The hook of the permissions is the last.
func (r *hookRules) atCall(p spec.HookPoint, c Call) []spec.Hook {
	at := r.at(p, c.Name)
	if p != spec.HookPreTool {
		return at
	}
	if c.Gate.Rewriter > 0 && c.Gate.Rewriter <= len(at) {
		at = slices.Delete(at, c.Gate.Rewriter-1, c.Gate.Rewriter)
	}
	return append(at, c.Gate.Permit.hooks()...)
}

// openGate opens a gate outside of calls; busy is false if the point has no hooks.
func openGate(s *State, p spec.HookPoint, phase Phase, g hookGate) (next *State, fx []Effect, busy bool) {
	if len(s.hooks.at(p, "")) == 0 {
		return s, nil, false
	}
	g.Point = p
	s.Phase, s.Gate = phase, g
	return s, []Effect{runGateHooks(s)}, true
}

// runGateHooks asks the hooks of the open gate. The request follows from the state
// alone, so that a later activation can repeat it.
func runGateHooks(s *State) RunHooks {
	e := RunHooks{ID: s.Gate.ID, Point: s.Gate.Point, Turn: s.Turn, Hooks: s.hooks.at(s.Gate.Point, "")}
	switch s.Gate.Point {
	case spec.HookContext, spec.HookInput:
		e.Turn, e.Input.Messages = s.Turn+1, s.messagesToSend()
		if s.Gate.Point == spec.HookContext {
			e.Input.System, _ = systemPrompt(s)
		}
	case spec.HookOutput:
		e.Input = replyHookData(s)
	case spec.HookStop:
		e.Input = spec.HookData{Text: s.finalAnswer(), Blocks: s.HookEffects.Blocks}
	}
	return e
}

// replyHookData returns the newest message as data for hooks.
func replyHookData(s *State) spec.HookData {
	n := len(s.History) - 1
	return spec.HookData{Text: s.History[n].Text, Messages: slices.Clip(s.History[n:])}
}

// notifyHooks runs hooks that the loop does not wait for.
func notifyHooks(s *State, p spec.HookPoint, key, tool string, d spec.HookData) (*State, []Effect) {
	at := s.hooks.at(p, tool)
	if len(at) == 0 || s.Cancel != nil { //mutant:hooks-after-the-cancel
		return s, nil
	}
	id := fmt.Sprintf("%s.%s", p, key)
	s.HookEffects.Unawaited = append(slices.Clip(s.HookEffects.Unawaited), id)
	return s, []Effect{RunHooks{ID: id, Point: p, Turn: s.Turn, Hooks: at, Input: d}}
}

// handleHooked handles the answers of hooks: at a gate that is still open, or as a
// remark for the next turn. Any other answer is late and has no effect.
func handleHooked(s *State, f Hooked) (*State, []Effect) {
	if s.Gate.ID != "" && s.Gate.ID == f.ID && s.Gate.Point == f.Point { //mutant:answer-of-another-gate
		v := s.hooks.weigh(f.Point, Call{}, f.Answers)
		if s = publishGate(s, f, v); s.Suspended.Why == AwaitsDriftAnswer {
			return s, nil // the gate asks again when the loop continues
		}
		return passGate(s, v)
	}
	if i := s.Calls.gatedBy(f); s.Phase == Acting && i >= 0 {
		return callHooked(s, i, f)
	}
	if i := slices.Index(s.HookEffects.Unawaited, f.ID); i >= 0 && !f.Point.Gate() {
		s.events.publishRemarks(f, s.Turn, s.hooks)
		s.HookEffects.Unawaited = slices.Delete(slices.Clone(s.HookEffects.Unawaited), i, i+1)
		if s.Phase != Done {
			s = keepRemarks(s, f.Answers)
		}
	}
	return s, nil
}

// passGate continues after a gate outside of calls.
func passGate(s *State, v hookVerdict) (*State, []Effect) {
	g := s.Gate
	s.Gate = hookGate{}
	s = keepRemarks(s, v.remarks)
	switch g.Point {
	case spec.HookContext:
		return handleTransform(s, g.Why, v)
	case spec.HookInput:
		return inputChecked(s, g.Why, v)
	case spec.HookOutput:
		return outputChecked(s, g.Stop, v)
	default:
		return stopChecked(s, v)
	}
}

// keepRemarks keeps the texts of hooks that decide nothing, for the next turn boundary.
func keepRemarks(s *State, answers []spec.HookAnswer) *State {
	for _, a := range answers {
		if text := strings.TrimSpace(a.Text); text != "" && a.Failed == "" && !s.hooks.reports(a.Hook) && len(s.Remarks) < remarksMax {
			s.Remarks = append(slices.Clip(s.Remarks), fmt.Sprintf("Hook %s says: %s", a.Hook, clip.Text(text, spec.HookTextMax)))
		}
	}
	return s
}

// reports tells whether the hook only reports: its answer has no effect.
func (r *hookRules) reports(name string) bool {
	return slices.ContainsFunc(r.list, func(h spec.Hook) bool { return h.Name == name && h.Report })
}

// abortHooks aborts the hooks whose answers the loop no longer awaits: those at
// gates, and all hooks of a canceled run.
func abortHooks(s *State) (*State, []Effect) {
	var fx []Effect
	if s.Gate.ID != "" {
		fx = append(fx, AbortHooks{s.Gate.ID})
	}
	for _, c := range s.Calls {
		if c.Stage == Gated && c.Gate.Person == "" {
			fx = append(fx, AbortHooks{c.gateID()})
		}
	}
	if s.Cancel != nil {
		for _, id := range s.HookEffects.Unawaited {
			fx = append(fx, AbortHooks{id})
		}
		s.HookEffects.Unawaited = nil
	}
	s.Gate = hookGate{}
	return s, fx
}
