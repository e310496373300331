package sim

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// judgement is what the judge derives from one agent's log by its own reading:
// for the loop options, it does not trust the state of the agent.
type judgement struct {
	open          map[string]agent.RunHooks // hook points without an answer
	denied        map[string]string         // calls that may not run, and why
	passed        map[string]bool           // calls whose hooks let them through
	askedOn       map[string]string         // the node where the hooks of a call were asked last
	asked, agreed map[string]string         // why a person was to be asked about a call, and agreed, with its arguments
	resumes       int                       // activations since Submitted
	blocks        int                       // stops sent back by hooks since the last proposal
	unmet         int                       // completions sent back by the loop
	tooLong       int                       // prompts of turns that were too long
	rungs, rungAt int                       // of the ladder, and the turn of the last
	recoveries    int                       // rungs that followed on others
	reactive      int
	summaries     int             // asked for since the last turn
	summaryLease  int             // of the newest of them
	forbidden     int             // replies in a row with a forbidden proposal
	fails         map[string]int  // of a tool on a target, in a row
	left          []string        // models that were given up
	said          string          // the model of the last turn
	sent          []model.Message // the last prompt of a turn, and its system prompt
	head          string
	fold          agent.Fold
	withheld      []string         // what guardrails rejected
	nudges        int              // to use up a budget
	nudgedAt      int64            // output tokens at the last of them
	small         int              // in a row that brought little
	halted        string           // the tool whose calls of this turn do not run
	due           map[string]int64 // when calls may run again
	began         int64            // the clock, moved on by the time without work
	rests         agent.Released   // how the previous activation ended, until the next claim
	refused       int              // times since the model last answered, unbilled
	refusedAt     int64
	away          map[string]spec.ID // children in the background, by their calls
	mail          []agent.Messaged   // received, and not yet in the transcript
}

func newJudgement() judgement {
	return judgement{open: map[string]agent.RunHooks{}, denied: map[string]string{}, passed: map[string]bool{}, fails: map[string]int{},
		askedOn: map[string]string{}, asked: map[string]string{}, agreed: map[string]string{}, due: map[string]int64{}, away: map[string]spec.ID{}}
}

// Bounds that the judge holds the loop to.
const (
	tooLongMax = 2 // prompts of turns that a provider refuses as too long: one compaction, then the end
	triesMax   = 3 // retries of a call
)

// watchLoop checks the promises of the loop options.
func (s *sim) watchLoop(w *shadow, before, after *agent.State, f activation.Fact, out activation.Stepped) {
	if w.actor.hurt {
		return
	}
	s.watchRecord(w.actor, before, after)
	s.watchLimits(w, before, after, f)
	s.watchStorm(w, before, after, f)
	if f.Kind == "resumed" && after.Pause.Waiting && !slices.ContainsFunc(out.World, func(e any) bool { _, ok := e.(agent.AwaitGate); return ok }) {
		s.fail("%s has waited at the gate of its model, and its next life does not", w.actor.id)
	}
	s.watchFact(w, before, after, f)
	s.watchFolds(w, before, after)
	s.watchKin(w, before, after, f, out)
	for _, effect := range out.World {
		s.watchGates(w, after, effect)
		switch e := effect.(type) {
		case agent.CallModel:
			s.watchRequest(w, after, e)
		case agent.Begin:
			s.watchBegin(w, after, e.Call)
		case agent.CallTool:
			s.watchBegin(w, after, e.Call)
		}
	}
	for _, t := range out.Messages {
		switch t.Kind {
		case "delegate":
			var d agent.Delegate
			if err := mailbox.Unmarshal(t.Body, &d); err != nil {
				s.fail("delegate: %v", err)
			}
			s.watchBegin(w, after, d.Call)
		case "propose_stop":
			w.judge.blocks = 0
		}
	}
	s.watchWait(w.actor, before, after, out)
}

// watchRecord checks that the transcript only grows; a message in it can only be retracted.
func (s *sim) watchRecord(a *actor, before, after *agent.State) {
	old, now := before.History, after.History
	if len(now) < len(old) {
		s.fail("%s: the transcript shrinks from %d to %d messages", a.id, len(old), len(now))
	}
	if len(old) == 0 || &old[0] == &now[0] {
		return
	}
	for i := range old {
		was, is := old[i], now[i]
		if was.Tombstone && !is.Tombstone {
			s.fail("%s: message %d is no tombstone any more", a.id, i)
		}
		was.Tombstone, was.Interrupted = is.Tombstone, is.Interrupted
		if string(canonMessage(nil, &was)) != string(canonMessage(nil, &is)) {
			s.fail("%s: message %d of the transcript changes", a.id, i)
		}
	}
}

// watchLimits checks that the counters stay within the limits of the task.
func (s *sim) watchLimits(w *shadow, before, after *agent.State, f activation.Fact) {
	a, l := w.actor, after.Task.Limits
	if after.Phase == "" {
		return
	}
	switch {
	case after.Turn > l.Turns:
		s.fail("%s: %d turns, %d are allowed", a.id, after.Turn, l.Turns)
	case after.Cuts > l.Cuts && after.Phase != agent.Done:
		s.fail("%s goes on after %d cut replies in a row", a.id, after.Cuts)
	case after.Useless >= l.Malformed && after.Phase != agent.Done:
		s.fail("%s goes on after %d useless replies in a row", a.id, after.Useless)
	case after.Retries > l.Retries:
		s.fail("%s: %d retries of a model call, %d are allowed", a.id, after.Retries, l.Retries)
	case after.Route < before.Route || after.Route > spec.FallbacksMax:
		s.fail("%s goes from fallback %d to %d", a.id, before.Route, after.Route)
	}
	for _, c := range after.Calls {
		if c.Tries > min(triesMax, after.Task.LoopOptions.ToolRetries) {
			s.fail("%s: call %s failed in passing %d times, and is run again", a.id, c.ID, c.Tries)
		}
		// Beyond the retries, only a crash or a person lets a call begin again.
		if most := 1 + c.Tries + 2*w.judge.resumes; c.Attempt > most {
			s.fail("%s: call %s has its %dth attempt after %d passing failures in %d lives", a.id, c.ID, c.Attempt, c.Tries, w.judge.resumes+1)
		}
	}
	j := &w.judge
	if f.Kind == "resumed" {
		j.resumes++
		if after.Task.LoopOptions.Reask && after.Node != before.Node {
			clear(j.passed)
		}
	}
	s.watchClock(j, before, after, f)
	if after.Transition != before.Transition || f.Kind == "hooked" || f.Kind == "replied" {
		s.watchTurns(w, before, after)
	}
}

// watchFact records what a fact permits afterwards.
func (s *sim) watchFact(w *shadow, before, after *agent.State, f activation.Fact) {
	j := &w.judge
	switch f.Kind {
	case "hooked":
		s.watchHooked(w, before, after, read[agent.Hooked](s, f))
	case "answered":
		e := read[agent.Answered](s, f)
		if q := before.Query; q.Query != "" && q.Query == e.Query && after.Query.Query != q.Query {
			s.watchAnswered(w, before, after, e)
		}
	case "failed":
		e := read[agent.Failed](s, f)
		if before.Phase == agent.Thinking && e.Lease == before.Lease && before.Purpose == agent.ForTurn && e.Class == model.TooLong {
			if j.tooLong++; j.tooLong > tooLongMax {
				s.fail("%s: %d prompts are too long, and it tries again and again", w.actor.id, j.tooLong)
			}
		}
	case "replied":
		e := read[agent.Replied](s, f)
		if before.Phase == agent.Thinking && e.Lease == before.Lease && before.Purpose == agent.ForTurn {
			s.watchForbidden(w, before, after, e.Reply.Message.Calls)
			s.watchForced(w, before, after)
		}
	}
	if len(after.Steers) < len(before.Steers) { // a user has given direction
		clear(j.fails)
	}
	if n := len(before.History); len(after.History) > n && len(before.Calls) > 0 && len(after.History[n].Results) > 0 {
		s.watchFailing(w, before, after, after.History[n].Results)
	}
}

// watchForbidden checks that an agent that repeatedly proposes a forbidden tool is ended.
func (s *sim) watchForbidden(w *shadow, before, after *agent.State, calls []model.ToolCall) {
	j, limit := &w.judge, before.Task.LoopOptions.Breaker.Forbidden
	if limit == 0 || before.Cancel != nil || before.Ending != "" || len(hooksAt(before, spec.HookOutput, "")) > 0 || len(calls) == 0 {
		return
	}
	barred := slices.ContainsFunc(calls, func(c model.ToolCall) bool { return slices.Contains(before.Task.Forbidden, c.Name) })
	known := slices.ContainsFunc(calls, func(c model.ToolCall) bool { return offered(before, c.Name) })
	switch {
	case barred:
		j.forbidden++
	case known:
		j.forbidden = 0
	}
	if barred && j.forbidden >= limit && (after.Phase != agent.Done || after.Outcome.Reason != spec.Refused) && before.Useless+1 < before.Task.Limits.Malformed {
		s.fail("%s has proposed forbidden tools in %d replies in a row, and is %s (%s)", w.actor.id, j.forbidden, after.Phase, after.Outcome.Reason)
	}
}

func offered(st *agent.State, tool string) bool {
	return slices.ContainsFunc(st.Task.Tools, func(t model.ToolSpec) bool { return t.Name == tool }) && !slices.Contains(st.Task.Forbidden, tool)
}

// limited reports whether the agent has used up one of its own limits, so that its closing turn follows.
func limited(before, after *agent.State) bool {
	return before.Soft || before.CallsOut || after.Turn >= before.Task.Limits.Turns
}

// watchFailing checks that a tool that fails repeatedly on one target escalates,
// unless a limit ends the loop now.
func (s *sim) watchFailing(w *shadow, before, after *agent.State, results []model.ToolResult) {
	j, limit := &w.judge, before.Task.LoopOptions.Breaker.Failures
	if limit == 0 || before.Cancel != nil || after.Cancel != nil || len(results) != len(before.Calls) {
		return
	}
	tripped := ""
	for i, c := range before.Calls {
		switch {
		case c.Attempt == 0 && c.Child == "": // it never ran
		case !results[i].Error:
			clear(j.fails)
		case c.Child == "":
			key := c.Name + " " + c.Args
			if j.fails[key]++; j.fails[key] >= limit {
				tripped = key
			}
		}
	}
	if tripped != "" && j.fails[tripped] >= limit && !limited(before, after) && after.Phase != agent.Waiting && after.Phase != agent.Done {
		s.fail("%s has failed %d times in a row on %q, and goes on", w.actor.id, j.fails[tripped], tripped)
	}
}

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

// watchHooked notes what the answers at a hook point allow.
func (s *sim) watchHooked(w *shadow, before, after *agent.State, e agent.Hooked) {
	j := &w.judge
	gate, open := j.open[e.ID]
	if !open || gate.Point != e.Point {
		if e.Point.Gate() {
			s.reach.hit(HookedLate)
		}
		return
	}
	delete(j.open, e.ID)
	d := strictest(gate, e.Answers)
	s.watchGate(w, after, gate, d)
	switch gate.Point {
	case spec.HookPreTool:
		call := gate.Input.Call
		j.askedOn[call], j.asked[call] = after.Node, reasons(gate, e.Answers)
		if d == spec.HookAsk && j.agreed[call] == j.asked[call] && after.Task.LoopOptions.Reask {
			d = spec.HookPass
		}
		if d == spec.HookPass {
			j.passed[call] = true
			delete(j.denied, call)
		} else {
			j.denied[call] = string(d)
			s.reach.hit(GateDenied)
		}
	case spec.HookOutput:
		if text := gate.Input.Text; d != spec.HookPass && len(text) > len("#") && strings.Contains(text, "#") {
			j.withheld = append(j.withheld, text)
		}
	}
}

// reasons is why a person is asked, and about which arguments, by the judge's own
// reading.
func reasons(gate agent.RunHooks, answers []spec.HookAnswer) string {
	args, why := "", ""
	for i, h := range gate.Hooks {
		a := spec.HookAnswer{Decision: h.Failing, Text: "no answer"}
		if i < len(answers) && answers[i].Hook == h.Name && sensible(gate, answers[i]) {
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
		if args == "" {
			args = a.Args
		}
	}
	return cmp.Or(args, gate.Input.Args) + "\x00" + why
}

// strictest combines the answers at a hook point, as far as it matters here: pass,
// or the decision that keeps a call from running (ask: unless a person approves), a
// reply from acting, or a loop from continuing.
func strictest(gate agent.RunHooks, answers []spec.HookAnswer) spec.HookDecision {
	rank := []spec.HookDecision{spec.HookPass, spec.HookOverride, spec.HookSkip, spec.HookAsk, spec.HookDeny, spec.HookPrevent, spec.HookTrip}
	worst, result := 0, false
	for i, h := range gate.Hooks {
		d, args := h.Failing, ""
		if i < len(answers) && answers[i].Hook == h.Name && sensible(gate, answers[i]) {
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

// sensible reports whether the answer is valid at its hook point.
func sensible(gate agent.RunHooks, a spec.HookAnswer) bool {
	return a.Failed == "" && gate.Point.Knows(a.Decision) && (a.Messages == nil || history.Sendable(a.Messages) == nil) &&
		(gate.Point != spec.HookPreTool || a.Args == "" || fitsArgs(gate.Input.Tool, a.Args))
}

// fitsArgs reports whether arguments are an object with the fields that its tool's schema requires; the
// schemas of the simulator's tools require no more.
func fitsArgs(tool, args string) bool {
	var o map[string]any
	if json.Unmarshal([]byte(args), &o) != nil || o == nil {
		return false
	}
	for _, t := range tools {
		var schema struct{ Required []string }
		if t.Name == tool && json.Unmarshal([]byte(t.Schema), &schema) == nil {
			return !slices.ContainsFunc(schema.Required, func(name string) bool { _, ok := o[name]; return !ok })
		}
	}
	return false
}
