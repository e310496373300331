package sim

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// hooksAt are the hooks of a task at a point, by the judge's own reading.
func hooksAt(st *agent.State, p spec.HookPoint, tool string) []spec.Hook {
	var at []spec.Hook
	for _, h := range st.Task.LoopOptions.Hooks {
		mine := h.Of == "" || (h.Of == spec.OfRoot) == (st.Task.Depth == 0)
		if h.Point != p || !mine {
			continue
		}
		if re, err := regexp.Compile("^(?:" + h.Tools + ")$"); tool == "" || h.Tools == "" || err != nil || re.MatchString(tool) {
			at = append(at, h)
		}
	}
	return at
}

// questionReasons is why a person is asked, and about which arguments, by the judge's own
// reading.
func questionReasons(gate agent.RunHooks, answers []spec.HookAnswer) string {
	args, why := "", ""
	for i, h := range gate.Hooks {
		a := spec.HookAnswer{Decision: h.Failing, Text: "no answer"}
		if i < len(answers) && answers[i].Hook == h.Name && isValidAnswer(gate, answers[i]) {
			a = answers[i]
		} else if i < len(answers) && answers[i].Hook == h.Name {
			a.Text = "failed " + answers[i].Failed + string(answers[i].Decision) // its arguments do not count
		}
		if h.Report {
			continue
		}
		if a.Decision == spec.HookAsk {
			why += h.Name + "\x00" + strings.TrimSpace(a.Text) + "\x00"
		}
		if a.Args != "" && (args == "" || args == gate.Input.Args) {
			args = a.Args
		}
	}
	return cmp.Or(args, gate.Input.Args) + "\x00" + why
}

// withoutRewriter is the list of hooks of a point without the one whose arguments the call has.
func (j *callJudge) withoutRewriter(e agent.RunHooks, all []spec.Hook) []spec.Hook {
	at, known := j.rewriter[e.Input.Call]
	if e.Point != spec.HookPreTool || !known || at < 0 || at >= len(all) || e.Input.Args != j.judged[e.Input.Call] {
		return all
	}
	return slices.Delete(slices.Clone(all), at, at+1)
}

// noteRewrite notes which arguments a call has after its hooks. It reports whether other hooks
// must judge them before the call begins.
func (j *callJudge) noteRewrite(after *agent.State, gate agent.RunHooks, answers []spec.HookAnswer) bool {
	if gate.Point != spec.HookPreTool {
		return false
	}
	call, by := gate.Input.Call, -1
	all := j.hooksOf(after, gate.Point, gate.Input.Tool)
	left, known := j.rewriter[call]
	if !known || gate.Input.Args != j.judged[call] {
		left = -1
	}
	j.judged[call] = gate.Input.Args
	for i, h := range gate.Hooks {
		if i < len(answers) && answers[i].Hook == h.Name && !h.Report && isValidAnswer(gate, answers[i]) && answers[i].Args != "" && answers[i].Args != gate.Input.Args {
			j.judged[call], by = answers[i].Args, placeOfHook(all, withoutQuery(gate.Hooks), i, left)
			if answers[i].Decision == spec.HookAsk {
				by = len(all) // nothing is left out
			}
			break
		}
	}
	if by < 0 {
		return false
	}
	j.rewriter[call] = by
	for i, h := range all {
		if i != by && !h.Report {
			j.passed[call], j.denied[call] = false, "its arguments have changed"
			return true
		}
	}
	return false
}

// placeOfHook is the place, among all hooks of a point, of one of those that were asked: in the same order, without the
// one that was left out (-1: none) and without those that came since, such as rules of a narrowing.
func placeOfHook(all, asked []spec.Hook, i, left int) (place int) {
	place = -1
	for _, h := range asked[:i+1] {
		for place++; place < len(all) && (place == left || all[place] != h); place++ {
		}
	}
	return place
}

// strictestDecision combines the answers at a hook point, as far as it matters here: pass,
// or the decision that keeps a call from running (ask: unless a person approves), a
// reply from acting, or a loop from continuing.
func strictestDecision(gate agent.RunHooks, answers []spec.HookAnswer) spec.HookDecision {
	rank := []spec.HookDecision{spec.HookPass, spec.HookOverride, spec.HookSkip, spec.HookAsk, spec.HookDeny, spec.HookPrevent, spec.HookTrip}
	worst, result := 0, false
	for i, h := range gate.Hooks {
		d, args := h.Failing, ""
		if i < len(answers) && answers[i].Hook == h.Name && isValidAnswer(gate, answers[i]) {
			d, args = answers[i].Decision, answers[i].Args
		}
		if !h.Report && gate.Point.Knows(d) {
			worst = max(worst, slices.Index(rank, d))
			result = result || d == spec.HookOverride && args == ""
		}
	}
	if rank[worst] == spec.HookOverride && (!result || gate.Point != spec.HookPreTool) {
		return spec.HookPass // the call runs, with other arguments
	}
	return rank[worst]
}

// isValidAnswer reports whether the answer is valid at its hook point.
func isValidAnswer(gate agent.RunHooks, a spec.HookAnswer) bool {
	return a.Failed == "" && gate.Point.Knows(a.Decision) && (a.Messages == nil || message.Sendable(a.Messages) == nil) &&
		(gate.Point != spec.HookPreTool || a.Args == "" || fitsArgs(gate.Input.Tool, a.Args))
}

// fitsArgs reports whether arguments are an object with the fields that its tool's schema requires, and with no
// others if the schema says so.
func fitsArgs(tool, args string) bool {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) != nil || o == nil {
		return false
	}
	schema, known := toolSchemas()[tool]
	if !known || slices.ContainsFunc(schema.Required, func(name string) bool { _, ok := o[name]; return !ok }) {
		return false
	}
	for name := range o {
		if _, ok := schema.Properties[name]; !ok && schema.Closed != nil {
			return false
		}
	}
	return true
}

// toolSchema is what the schemas of the simulator's tools say about arguments that hooks give.
type toolSchema struct {
	Required   []string
	Properties map[string]json.RawMessage
	Closed     *bool `json:"additionalProperties"`
}

// toolSchemas are the schemas of all tools that a run may have.
var toolSchemas = sync.OnceValue(func() map[string]toolSchema {
	all := map[string]toolSchema{}
	for _, t := range slices.Concat(tools, agent.BacklogTools(), []model.ToolSpec{agent.HandoffSpec(), agent.DeclareSpec()}) {
		var schema toolSchema
		if err := json.Unmarshal([]byte(t.Schema), &schema); err != nil {
			panic(err)
		}
		all[t.Name] = schema
	}
	return all
})
