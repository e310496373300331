package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// Gate is a place where the loop waits for hooks, outside of calls.
type Gate struct {
	ID    string
	Point HookPoint
	Why   Transition // context, input: of the turn that waits for it
	Stop  model.Stop // output: what the provider said of the reply
}

// Rounds is what hooks have brought about so far.
type Rounds struct {
	Told     []string // ids of hooks that run and that nobody waits for
	Blocks   int      // stops that hooks have sent back, in a row
	Block    string   // what the last of them said
	Input    int      // prompts that guardrails did not pass, in a row
	Output   int      // replies that guardrails did not pass, in a row
	Withheld []int    // messages of History that no result may show
	// Sent is what is sent this turn instead of the prompt; nil: the prompt.
	Sent []model.Message
}

// Limits of hooks.
const (
	HooksMax   = 64 // of one agent
	BlocksMax  = 8  // stops in a row that hooks send back; the next block ends the loop
	RemarksMax = 16 // that enter at one turn boundary; more are only told to observers
)

// strictness are the decisions that a point knows beside passing, the strictest
// first. Of several answers the strictest counts.
var strictness = map[HookPoint][]HookDecision{
	HookContext:   {HookTrip},
	HookInput:     {HookTrip, HookDeny},
	HookOutput:    {HookTrip, HookDeny},
	HookPreTool:   {HookPrevent, HookDeny, HookAsk, HookSkip, HookOverride, HookAllow},
	HookToolError: {HookPrevent, HookOverride},
	HookStop:      {HookPrevent, HookBlock},
}

// Knows reports whether a decision means something at a point.
func (p HookPoint) Knows(d HookDecision) bool {
	return d == HookPass || d == HookAllow || slices.Contains(strictness[p], d)
}

var points = append(slices.Clone(gates), HookSampled, HookPostTool, HookStopFailure)

// Validate reports what would keep a hook from doing what its author wrote.
func (h Hook) Validate() error {
	switch {
	case h.Name == "":
		return fmt.Errorf("a hook has no name")
	case !slices.Contains(points, h.Point):
		return fmt.Errorf("hook %s: there is no point %q; the points are %v", h.Name, h.Point, points)
	case !h.Point.Knows(h.Failing):
		return fmt.Errorf("hook %s: failing %q means nothing at %s; it knows %v", h.Name, h.Failing, h.Point, strictness[h.Point])
	case h.TimeoutMS < 0:
		return fmt.Errorf("hook %s: its timeout is %d ms", h.Name, h.TimeoutMS)
	case !slices.Contains([]string{"", OfRoot, OfChild}, h.Of):
		return fmt.Errorf("hook %s: it is of %q; write root or child, or leave it out", h.Name, h.Of)
	}
	if _, err := pattern(h.Tools); err != nil {
		return fmt.Errorf("hook %s: tools: %w", h.Name, err)
	}
	return nil
}

// pattern of tool names: a regular expression on the whole name. "" and "*"
// stand for all of them, and come as nil.
func pattern(tools string) (*regexp.Regexp, error) {
	if tools == "" || tools == "*" {
		return nil, nil
	}
	return regexp.Compile("^(?:" + tools + ")$")
}

// patterns of hooks, in their order. One that is broken matches every tool: a
// gate that cannot be read stays shut.
func patterns(hooks []Hook) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(hooks))
	for i, h := range hooks {
		if re, err := pattern(h.Tools); err == nil {
			list[i] = re
		}
	}
	return list
}

// hooksAt are the hooks of a point, in order. tool is "" where the point is not
// about a tool.
func (s State) hooksAt(p HookPoint, tool string) []Hook {
	var at []Hook
	for i, h := range s.Task.Manners.Hooks {
		mine := h.Of == "" || (h.Of == OfRoot) == (s.Task.Depth == 0)
		if h.Point == p && mine && (tool == "" || s.check.hooks[i] == nil || s.check.hooks[i].MatchString(tool)) {
			at = append(at, h)
		}
	}
	return at
}

// gate opens a gate outside of calls; busy is false where no hook stands there.
func (s State) gate(p HookPoint, phase Phase, g Gate) (next State, fx []Effect, busy bool) {
	if len(s.hooksAt(p, "")) == 0 {
		return s, nil, false
	}
	g.Point = p
	s.Phase, s.Gate = phase, g
	return s, []Effect{s.atGate()}, true
}

// atGate asks the hooks of the gate that is open. All of it follows from the
// state, so that a later life can ask again.
func (s State) atGate() RunHooks {
	e := RunHooks{ID: s.Gate.ID, Point: s.Gate.Point, Turn: s.Turn, Hooks: s.hooksAt(s.Gate.Point, "")}
	switch s.Gate.Point {
	case HookContext, HookInput:
		e.Turn, e.Input.Messages = s.Turn+1, s.sent()
	case HookOutput:
		e.Input = reply(s)
	case HookStop:
		e.Input = HookData{Text: s.answer(), Blocks: s.Rounds.Blocks}
	}
	return e
}

// reply is the newest message, as hooks are told of it.
func reply(s State) HookData {
	n := len(s.History) - 1
	return HookData{Text: s.History[n].Text, Messages: slices.Clip(s.History[n:])}
}

// tell tells hooks that nobody waits for.
func (s State) tell(p HookPoint, key, tool string, d HookData) (State, []Effect) {
	at := s.hooksAt(p, tool)
	if len(at) == 0 || s.Cancel != nil { //mutant:hooks-after-the-cancel
		return s, nil
	}
	id := fmt.Sprintf("%s.%s", p, key)
	s.Rounds.Told = append(slices.Clip(s.Rounds.Told), id)
	return s, []Effect{RunHooks{ID: id, Point: p, Turn: s.Turn, Hooks: at, Input: d}}
}

// hooked takes what hooks answered: at a gate that is still open, or as a
// remark for the next turn. Anything else is late and means nothing.
func hooked(s State, f Hooked) (State, []Effect) {
	if s.halted() && f.Point.Gate() {
		return s, nil // it is asked again when the loop goes on
	}
	if s.Gate.ID != "" && s.Gate.ID == f.ID && s.Gate.Point == f.Point { //mutant:answer-of-another-gate
		return passed(s, f)
	}
	if i := s.gated(f); i >= 0 {
		return callHooked(s, i, f)
	}
	if i := slices.Index(s.Rounds.Told, f.ID); i >= 0 && !f.Point.Gate() {
		s.Rounds.Told = slices.Delete(slices.Clone(s.Rounds.Told), i, i+1)
		if s.Phase != Done {
			s = s.remark(f.Answers)
		}
	}
	return s, nil
}

// passed goes on behind a gate outside of calls.
func passed(s State, f Hooked) (State, []Effect) {
	g, v := s.Gate, s.weigh(s.Gate.Point, Call{}, f.Answers)
	s.Gate = Gate{}
	s = s.remark(v.remarks)
	switch g.Point {
	case HookContext:
		return transformed(s, g.Why, v)
	case HookInput:
		return inputChecked(s, g.Why, v)
	case HookOutput:
		return outputChecked(s, g.Stop, v)
	default:
		return stopChecked(s, v)
	}
}

// remark keeps what hooks said without deciding anything, for the next turn boundary.
func (s State) remark(answers []HookAnswer) State {
	for _, a := range answers {
		if text := strings.TrimSpace(a.Text); text != "" && a.Failed == "" && !s.reports(a.Hook) && len(s.Remarks) < RemarksMax {
			s.Remarks = append(slices.Clip(s.Remarks), fmt.Sprintf("Hook %s says: %s", a.Hook, clip(text, HookTextMax)))
		}
	}
	return s
}

// reports: what the hook says has no effect.
func (s State) reports(name string) bool {
	return slices.ContainsFunc(s.Task.Manners.Hooks, func(h Hook) bool { return h.Name == name && h.Report })
}

// abortGates ends the hooks that nobody waits for any more: those at gates, and
// of a canceled run all of them.
func (s State) abortGates() (State, []Effect) {
	var fx []Effect
	if s.Gate.ID != "" {
		fx = append(fx, AbortHooks{s.Gate.ID})
	}
	for _, c := range s.Calls {
		if c.Stage == Gated && c.Person == "" {
			fx = append(fx, AbortHooks{c.gateID()})
		}
	}
	if s.Cancel != nil {
		for _, id := range s.Rounds.Told {
			fx = append(fx, AbortHooks{id})
		}
		s.Rounds.Told = nil
	}
	s.Gate = Gate{}
	return s, fx
}
