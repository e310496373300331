package sim

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// judgement is what the judge keeps of one agent's log, read by its own eyes:
// where the manners of the loop are concerned, a state's word is not enough.
type judgement struct {
	open          map[string]agent.RunHooks // gates that were not answered
	denied        map[string]string         // calls that may not run, and why
	passed        map[string]bool           // calls whose hooks let them through
	askedOn       map[string]string         // the node where the hooks of a call were asked last
	asked, agreed map[string]string         // why a person was to be asked about a call, and agreed, with its arguments
	resumes       int                       // lives since Submitted
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
	sent          []model.Message // the last prompt of a turn, and what stood before it
	head          string
	fold          agent.Fold
	withheld      []string         // what guardrails did not pass
	nudges        int              // to use up a budget
	nudgedAt      int64            // output tokens at the last of them
	small         int              // in a row that brought little
	halted        string           // the tool whose calls of this turn do not run
	due           map[string]int64 // when calls may run again
	began         int64            // the clock, moved on by the time that was no work
	rests         agent.Released   // how the life before ended, until the next claim
	refused       int              // times since the model last answered, unbilled
	refusedAt     int64
	away          map[string]agent.ID // children in the background, by their calls
	mail          []agent.Messaged    // heard and not in the transcript
}

func newJudgement() judgement {
	return judgement{open: map[string]agent.RunHooks{}, denied: map[string]string{}, passed: map[string]bool{}, fails: map[string]int{},
		askedOn: map[string]string{}, asked: map[string]string{}, agreed: map[string]string{}, due: map[string]int64{}, away: map[string]agent.ID{}}
}

// Bounds that the judge holds the loop to.
const (
	tooLongMax = 2 // prompts of turns that a provider refuses as too long: one compaction, then the end
	triesMax   = 3 // retries of a call
)

// watchLoop checks what the manners of the loop promise.
func (s *sim) watchLoop(w *shadow, before, after *agent.State, f life.Fact, out life.Stepped) {
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
	for _, t := range out.Letters {
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

// watchRecord: the transcript only grows; what is in it can only be struck out.
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

// watchLimits: what is counted stays within what the task allows.
func (s *sim) watchLimits(w *shadow, before, after *agent.State, f life.Fact) {
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
	case after.Route < before.Route || after.Route > agent.FallbacksMax:
		s.fail("%s goes from fallback %d to %d", a.id, before.Route, after.Route)
	}
	for _, c := range after.Calls {
		if c.Tries > min(triesMax, after.Task.Manners.ToolRetries) {
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
		if after.Task.Manners.Reask && after.Node != before.Node {
			clear(j.passed)
		}
	}
	s.watchClock(j, before, after, f)
	if after.Transition != before.Transition || f.Kind == "hooked" || f.Kind == "replied" {
		s.watchTurns(w, before, after)
	}
}

// watchFact reads what a fact means for what may follow.
func (s *sim) watchFact(w *shadow, before, after *agent.State, f life.Fact) {
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

// watchForbidden: who proposes what it may not use, again and again, is ended.
func (s *sim) watchForbidden(w *shadow, before, after *agent.State, calls []model.ToolCall) {
	j, limit := &w.judge, before.Task.Manners.Breaker.Forbidden
	if limit == 0 || before.Cancel != nil || before.Ending != "" || len(hooksAt(before, agent.HookOutput, "")) > 0 || len(calls) == 0 {
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
	if barred && j.forbidden >= limit && (after.Phase != agent.Done || after.Outcome.Reason != agent.Refused) && before.Useless+1 < before.Task.Limits.Malformed {
		s.fail("%s has proposed forbidden tools in %d replies in a row, and is %s (%s)", w.actor.id, j.forbidden, after.Phase, after.Outcome.Reason)
	}
}

func offered(st *agent.State, tool string) bool {
	return slices.ContainsFunc(st.Task.Tools, func(t model.ToolSpec) bool { return t.Name == tool }) && !slices.Contains(st.Task.Forbidden, tool)
}

// limited: a limit of the agent's own is used up, and what comes is its closing turn.
func limited(before, after *agent.State) bool {
	return before.Soft || before.CallsOut || after.Turn >= before.Task.Limits.Turns
}

// watchFailing: a tool that fails again and again on one target escalates,
// unless a limit ends the loop now.
func (s *sim) watchFailing(w *shadow, before, after *agent.State, results []model.ToolResult) {
	j, limit := &w.judge, before.Task.Manners.Breaker.Failures
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
func hooksAt(st *agent.State, p agent.HookPoint, tool string) []agent.Hook {
	var at []agent.Hook
	for _, h := range st.Task.Manners.Hooks {
		mine := h.Of == "" || (h.Of == agent.OfRoot) == (st.Task.Depth == 0)
		if h.Point != p || !mine {
			continue
		}
		if re, err := regexp.Compile("^(?:" + h.Tools + ")$"); tool == "" || h.Tools == "" || err != nil || re.MatchString(tool) {
			at = append(at, h)
		}
	}
	return at
}

// watchHooked notes what the answers at a gate allow.
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
	case agent.HookPreTool:
		call := gate.Input.Call
		j.askedOn[call], j.asked[call] = after.Node, reasons(gate, e.Answers)
		if d == agent.HookAsk && j.agreed[call] == j.asked[call] && after.Task.Manners.Reask {
			d = agent.HookPass
		}
		if d == agent.HookPass {
			j.passed[call] = true
			delete(j.denied, call)
		} else {
			j.denied[call] = string(d)
			s.reach.hit(GateDenied)
		}
	case agent.HookOutput:
		if text := gate.Input.Text; d != agent.HookPass && len(text) > len("#") && strings.Contains(text, "#") {
			j.withheld = append(j.withheld, text)
		}
	}
}

// reasons is why a person is asked, and about which arguments, by the judge's own
// reading.
func reasons(gate agent.RunHooks, answers []agent.HookAnswer) string {
	args, why := "", ""
	for i, h := range gate.Hooks {
		a := agent.HookAnswer{Decision: h.Failing, Text: "no answer"}
		if i < len(answers) && answers[i].Hook == h.Name && sensible(gate, answers[i]) {
			a = answers[i]
		} else if i < len(answers) && answers[i].Hook == h.Name {
			a.Text = "failed " + answers[i].Failed + string(answers[i].Decision) // its arguments do not count
		}
		if h.Report {
			continue
		}
		if a.Decision == agent.HookAsk {
			why += h.Name + "\x00" + strings.TrimSpace(a.Text) + "\x00"
		}
		if args == "" {
			args = a.Args
		}
	}
	return cmp.Or(args, gate.Input.Args) + "\x00" + why
}

// strictest is what answers at a gate come to, as far as it matters here: pass,
// or what keeps a call from running (ask: unless a person says otherwise), a
// reply from acting, or a loop from going on.
func strictest(gate agent.RunHooks, answers []agent.HookAnswer) agent.HookDecision {
	rank := []agent.HookDecision{agent.HookPass, agent.HookOverride, agent.HookSkip, agent.HookAsk, agent.HookDeny, agent.HookPrevent, agent.HookTrip}
	worst, result := 0, false
	for i, h := range gate.Hooks {
		d, args := h.Failing, ""
		if i < len(answers) && answers[i].Hook == h.Name && sensible(gate, answers[i]) {
			d, args = answers[i].Decision, answers[i].Args
		}
		if !h.Report && gate.Point.Knows(d) {
			worst = max(worst, slices.Index(rank, d))
			result = result || d == agent.HookOverride && args == ""
		}
	}
	if rank[worst] == agent.HookOverride && (!result || gate.Point != agent.HookPreTool) {
		return agent.HookPass // the call runs, with other arguments
	}
	return rank[worst]
}

// sensible: the answer is one that its point knows.
func sensible(gate agent.RunHooks, a agent.HookAnswer) bool {
	return a.Failed == "" && gate.Point.Knows(a.Decision) && (a.Messages == nil || agent.Sendable(a.Messages) == nil) &&
		(gate.Point != agent.HookPreTool || a.Args == "" || fitsArgs(gate.Input.Tool, a.Args))
}

// fitsArgs: an object that has what its tool's schema requires; the schemas of
// the simulator's tools say no more.
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
