package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// callJudge knows which calls may begin: what hooks and people said about them, and when they may run again.
type callJudge struct {
	*watchedAgent
	breakers      *breakerJudge
	permits       *permissionJudge
	open          map[string]agent.RunHooks // hook points without an answer
	denied        map[string]string         // calls that may not run, and why
	passed        map[string]bool           // calls whose hooks let them through
	askedOn       map[string]string         // the node where the hooks of a call were asked last
	asked, agreed map[string]string         // why a person was to be asked about a call, and agreed, with its arguments
	judged        map[string]string         // the arguments of a call that every other hook has judged
	rewriter      map[string]int            // the hook that gave them, among all of its point; -1: none
	due           map[string]int64          // when calls may run again
	withheld      []string                  // what guardrails rejected
}

func newCallJudge(s *watchedAgent, breakers *breakerJudge, permits *permissionJudge) *callJudge {
	return &callJudge{watchedAgent: s, breakers: breakers, permits: permits, open: map[string]agent.RunHooks{}, denied: map[string]string{}, passed: map[string]bool{},
		askedOn: map[string]string{}, asked: map[string]string{}, agreed: map[string]string{}, judged: map[string]string{}, rewriter: map[string]int{}, due: map[string]int64{}}
}

// noteEffect keeps the judge's list of hook points that are open.
func (j *callJudge) noteEffect(after *agent.State, effect any) {
	switch e := effect.(type) {
	case agent.RunHooks:
		asked, repeats := j.open[e.ID] // a later activation asks what was asked, whatever the agent may do by now
		repeats = repeats && slices.Equal(asked.Hooks, e.Hooks)
		if e.Point.Gate() {
			j.open[e.ID] = e
		}
		want := j.hooksOf(after, e.Point, e.Input.Tool)
		if hooks := withoutQuery(e.Hooks); !repeats && !slices.Equal(want, hooks) && !slices.Equal(j.withoutRewriter(e, want), hooks) {
			j.fail(hooksDecide, "%s runs %d hooks at %s, and %d stand there: %v, want %v", j.actor.id, len(e.Hooks), e.Point, len(want), e.Hooks, want)
		}
		if after.Cancel != nil && e.Point != spec.HookStopFailure {
			j.fail(hooksDecide, "%s runs hooks at %s after the cancel", j.actor.id, e.Point)
		}
	case agent.AbortHooks:
		delete(j.open, e.ID)
	case agent.Arm:
		if call, ok := strings.CutPrefix(e.Timer, "retry-"); ok {
			j.due[call] = e.Due
		}
	case agent.CallModel:
		for id, g := range j.open {
			j.fail(hooksDecide, "%s calls its model while %s is open at %s", j.actor.id, id, g.Point)
		}
	}
}

// checkBegin checks that a call begins only after its hook point, and only if it may.
func (j *callJudge) checkBegin(after *agent.State, id string) {
	a := j.actor
	i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == id })
	if i < 0 {
		j.fail(callsAreValid, "%s begins %s, which nobody asked for", a.id, id)
	}
	c := after.Calls[i]
	j.permits.checkBegin(after, c)
	for gate, g := range j.open {
		if g.Input.Call == id || g.Point != spec.HookPreTool && g.Point != spec.HookToolError && g.Point != spec.HookToolResult {
			j.fail(hooksDecide, "%s begins %s (%s) while %s is open", a.id, id, c.Name, gate)
		}
	}
	switch {
	case j.denied[id] != "":
		j.fail(hooksDecide, "%s begins %s (%s), and its hooks said %q", a.id, id, c.Name, j.denied[id])
	case !j.passed[id] && len(j.hooksOf(after, spec.HookPreTool, c.Name)) > 0:
		j.fail(hooksDecide, "%s begins %s (%s) past its hooks", a.id, id, c.Name)
	case j.passed[id] && j.judged[id] != c.Args:
		j.fail(hooksDecide, "%s begins %s (%s) with %s, and its hooks judged %s", a.id, id, c.Name, c.Args, j.judged[id])
	case !isOffered(after, c.Name):
		j.fail(callsAreValid, "%s begins %s (%s), which it may not use", a.id, id, c.Name)
	case after.ClosingReason != "":
		j.fail(nothingAfterCancel, "%s begins %s (%s) in its closing turn", a.id, id, c.Name)
	case c.Name == j.breakers.halted:
		j.fail(breakersStop, "%s begins %s (%s), whose calls of this turn were not to run", a.id, id, c.Name)
	case after.Now < j.due[id]:
		j.fail(timersCount, "%s begins %s (%s) again %d ms too early", a.id, id, c.Name, j.due[id]-after.Now)
	}
}

// checkDecision checks that the loop obeys the decision of a hook point.
func (j *callJudge) checkDecision(after *agent.State, gate agent.RunHooks, d spec.HookDecision) {
	a := j.actor
	switch gate.Point {
	case spec.HookPreTool:
		i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == gate.Input.Call })
		if d == spec.HookPass && i >= 0 && after.Calls[i].Stage == agent.Ended && after.Calls[i].Attempt == 0 && after.Cancel == nil &&
			j.permits.decide(gate.Input.Tool, classOf(after, gate.Input.Tool)) != spec.HookDeny {
			j.fail(hooksDecide, "%s: the hooks let %s pass, and it is answered without having run", a.id, gate.Input.Call)
		}
	case spec.HookStop:
		if d == spec.HookPrevent && after.Phase != agent.Done {
			j.fail(hooksDecide, "%s goes on, and a stop hook said that it ends", a.id)
		}
	case spec.HookToolError, spec.HookToolResult:
		i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == gate.Input.Call })
		if i >= 0 && after.Calls[i].Args != gate.Input.Args {
			j.fail(hooksDecide, "%s has %s with the arguments %s, and it ran with %s", a.id, gate.Input.Call, after.Calls[i].Args, gate.Input.Args)
		}
		if (d == spec.HookTrip || d == spec.HookDeny) && gate.Input.Result != "" && showsResult(after, gate.Input.Call, gate.Input.Result) {
			j.fail(guardrailsHold, "%s keeps the result of %s, and a guardrail did not pass it", a.id, gate.Input.Call)
		}
		if d == spec.HookTrip && after.Phase != agent.Done && after.Cancel == nil {
			j.fail(guardrailsHold, "%s goes on after a tripwire at %s", a.id, gate.Point)
		}
	case spec.HookContext, spec.HookInput, spec.HookOutput:
		if d == spec.HookTrip && after.Phase != agent.Done {
			j.fail(guardrailsHold, "%s goes on after a tripwire at %s", a.id, gate.Point)
		}
		if d == spec.HookDeny && gate.Point == spec.HookOutput && (after.Phase == agent.Acting || after.Phase == agent.Stopping) {
			j.fail(guardrailsHold, "%s acts on a reply that a guardrail did not pass", a.id)
		}
	}
}

// checkResult checks that no result is read before its guardrails have judged it.
func (j *callJudge) checkResult(before, after *agent.State, e agent.Returned) {
	i := slices.IndexFunc(before.Calls, func(c agent.Call) bool { return c.ID == e.Call && c.Stage == agent.Running })
	if i < 0 || e.Text == "" {
		return
	}
	c := before.Calls[i]
	judges := slices.ContainsFunc(j.hooksOf(after, spec.HookToolResult, c.Name), func(h spec.Hook) bool { return !h.Report })
	if judges && showsResult(after, e.Call, e.Text) {
		j.fail(guardrailsHold, "%s keeps the result of %s (%s), which its guardrails have not judged", j.actor.id, e.Call, c.Name)
	}
}

// showsResult reports whether the result of a call that has ended, or the one in the history if the
// calls of its reply are all answered, contains a text.
func showsResult(s *agent.State, call, text string) bool {
	if slices.ContainsFunc(s.Calls, func(c agent.Call) bool {
		return c.ID == call && c.Stage == agent.Ended && strings.Contains(c.Result.Text, text)
	}) {
		return true
	}
	for _, m := range slices.Backward(s.History) {
		if m.Role == model.Assistant {
			break
		}
		if slices.ContainsFunc(m.Results, func(r model.ToolResult) bool { return r.Call == call && strings.Contains(r.Text, text) }) {
			return true
		}
	}
	return false
}

// noteApproval records a person's approval of a call, and checks that a denial of the run ends the loop.
func (j *callJudge) noteApproval(before, after *agent.State, e agent.Answered) {
	q := before.Suspended.Question
	clear(j.breakers.fails)
	switch {
	case e.Decision == "approve":
		if j.denied[q.Call] == string(spec.HookAsk) {
			j.agreed[q.Call] = j.asked[q.Call]
		}
		delete(j.denied, q.Call)
		j.passed[q.Call] = j.askedOn[q.Call] == after.Node
	case e.Decision == "deny" && q.Call == "" && after.Phase != agent.Done:
		j.fail(hooksDecide, "%s goes on, and a person said no", j.actor.id)
	}
}

// noteAnswers notes what the answers at a hook point allow.
func (j *callJudge) noteAnswers(before, after *agent.State, e agent.Hooked) {
	gate, open := j.open[e.ID]
	if !open || gate.Point != e.Point {
		if e.Point.Gate() {
			j.reach.hit(placeHookedLate)
		}
		return
	}
	delete(j.open, e.ID)
	d := strictestDecision(gate, e.Answers)
	if d == spec.HookPass || d == spec.HookAsk {
		if j.noteRewrite(after, gate, e.Answers) {
			return
		}
	}
	j.checkDecision(after, gate, d)
	switch gate.Point {
	case spec.HookPreTool:
		call := gate.Input.Call
		j.askedOn[call], j.asked[call] = after.Node, questionReasons(gate, e.Answers)
		if d == spec.HookAsk && j.agreed[call] == j.asked[call] {
			d = spec.HookPass
		}
		if d == spec.HookPass {
			j.passed[call] = true
			delete(j.denied, call)
		} else {
			j.denied[call] = string(d)
			j.reach.hit(placeGateDenied)
		}
	case spec.HookOutput:
		if text := gate.Input.Text; d != spec.HookPass && len(text) > len("#") && strings.Contains(text, "#") {
			j.withheld = append(j.withheld, text)
		}
	}
}
