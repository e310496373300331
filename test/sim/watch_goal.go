package sim

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// watchTurns counts the reasons that start another turn of the loop.
func (s *sim) watchTurns(w *shadow, before, after *agent.State) {
	j := &w.judge
	again := after.Phase == agent.Leasing || after.Phase == agent.Hooking && after.Gate.Point != spec.HookOutput
	was := before.Phase == agent.Leasing || before.Phase == agent.Hooking && before.Gate.Point != spec.HookOutput
	if !again || was {
		return
	}
	switch after.Transition {
	case spec.StopHookBlocking:
		if j.blocks++; j.blocks > agent.BlocksMax {
			s.fail("%s is sent back %d times in a row by hooks", w.actor.id, j.blocks)
		}
	case spec.CriteriaUnmet:
		if j.unmet++; j.unmet > cmp.Or(after.Task.LoopOptions.Require.Tries, spec.RequireTries) {
			s.fail("%s is sent back %d times for what is missing", w.actor.id, j.unmet)
		}
	case spec.BudgetNudge:
		s.watchNudge(w, after)
	}
}

// watchNudge checks that the loop uses up a budget only while that produces output.
func (s *sim) watchNudge(w *shadow, after *agent.State) {
	j, c := &w.judge, after.Task.LoopOptions.Continue
	used := after.Usage.Output
	if small := used-j.nudgedAt < cmp.Or(c.Small, spec.ContinueSmall); j.nudges > 0 && small {
		j.small++
	} else {
		j.small = 0
	}
	if j.nudges++; j.small >= cmp.Or(c.Rounds, spec.ContinueRounds) {
		s.fail("%s goes on after %d continuations that brought little", w.actor.id, j.small)
	}
	if most := c.Tokens * int64(cmp.Or(c.Percent, spec.ContinuePercent)) / 100; used > most {
		s.fail("%s goes on, and %d of %d tokens are used", w.actor.id, used, c.Tokens)
	}
	j.nudgedAt = used
}

// watchEnd checks that the record contains what a result claims, and that no work is left behind.
func (s *sim) watchEnd(w *shadow, after *agent.State) {
	a, j, o := w.actor, &w.judge, after.Outcome
	for _, text := range j.withheld {
		if strings.Contains(o.Text, text) || strings.Contains(o.Detail, text) {
			s.fail("%s ends with what a guardrail did not pass: %q", a.id, text)
		}
	}
	for id := range j.open {
		s.fail("%s ends, and the hooks of %s are left to themselves", a.id, id)
	}
	if o.Reason != spec.Completed {
		return
	}
	r := after.Task.LoopOptions.Require
	for _, e := range r.Evidence {
		if !shown(after.History, e) {
			s.fail("%s is completed without the evidence %+v", a.id, e)
		}
	}
	var v any
	fits := json.Unmarshal([]byte(o.Text), &v) == nil
	switch {
	case r.Schema == "":
	case strings.Contains(r.Schema, "object"):
		m, ok := v.(map[string]any)
		fits = fits && ok && m["answer"] != nil
	default:
		_, ok := v.(string)
		fits = fits && ok
	}
	if r.Schema != "" && !fits {
		s.fail("%s is completed with %q, which does not fit %s", a.id, o.Text, r.Schema)
	}
}

// shown reports whether the history has a successful result of that tool that contains that text.
func shown(history []model.Message, e spec.Evidence) bool {
	for i, m := range history {
		for k, r := range m.Results {
			if i > 0 && k < len(history[i-1].Calls) && history[i-1].Calls[k].Name == e.Tool && !r.Error && strings.Contains(r.Text, e.Contains) {
				return true
			}
		}
	}
	return false
}

// watchGate checks that the loop obeys the decision of a hook point.
func (s *sim) watchGate(w *shadow, after *agent.State, gate agent.RunHooks, d spec.HookDecision) {
	a := w.actor
	switch gate.Point {
	case spec.HookPreTool:
		i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == gate.Input.Call })
		if d == spec.HookPass && i >= 0 && after.Calls[i].Stage == agent.Ended && after.Calls[i].Attempt == 0 && after.Cancel == nil {
			s.fail("%s: the hooks let %s pass, and it is answered without having run", a.id, gate.Input.Call)
		}
	case spec.HookStop:
		if d == spec.HookPrevent && after.Phase != agent.Done {
			s.fail("%s goes on, and a stop hook said that it ends", a.id)
		}
	case spec.HookContext, spec.HookInput, spec.HookOutput:
		if d == spec.HookTrip && after.Phase != agent.Done {
			s.fail("%s goes on after a tripwire at %s", a.id, gate.Point)
		}
		if d == spec.HookDeny && gate.Point == spec.HookOutput && (after.Phase == agent.Acting || after.Phase == agent.Stopping) {
			s.fail("%s acts on a reply that a guardrail did not pass", a.id)
		}
	}
}

// watchForced checks that the next reply carries out what loop detection decided: a tool
// is halted, or a person is asked.
func (s *sim) watchForced(w *shadow, before, after *agent.State) {
	j, a := &w.judge, w.actor
	j.halted = before.Habits.Halted
	if !before.Habits.Forced || before.Ending != "" || after.Phase == agent.Done || after.Phase == agent.Waiting || after.Phase == agent.Hooking {
		return
	}
	asks := slices.ContainsFunc(after.Calls, func(c agent.Call) bool { return c.Name == "ask_human" && c.Stage != agent.Ended })
	if !asks && !limited(before, after) {
		s.fail("%s was to ask a person, and is %s", a.id, after.Phase)
	}
}

// watchAnswered records a person's approval of a call, and checks that a denial of the run ends the loop.
func (s *sim) watchAnswered(w *shadow, before, after *agent.State, e agent.Answered) {
	j, q := &w.judge, before.Query
	clear(j.fails)
	switch {
	case e.Decision == "approve":
		if j.denied[q.Call] == string(spec.HookAsk) {
			j.agreed[q.Call] = j.asked[q.Call]
		}
		delete(j.denied, q.Call)
		j.passed[q.Call] = !after.Task.LoopOptions.Reask || j.askedOn[q.Call] == after.Node
	case e.Decision == "deny" && q.Call == "" && after.Phase != agent.Done:
		s.fail("%s goes on, and a person said no", w.actor.id)
	}
}
