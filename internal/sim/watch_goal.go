package sim

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// watchTurns counts what sends a loop round again.
func (s *sim) watchTurns(w *shadow, before, after *agent.State) {
	j := &w.judge
	again := after.Phase == agent.Leasing || after.Phase == agent.Hooking && after.Gate.Point != agent.HookOutput
	was := before.Phase == agent.Leasing || before.Phase == agent.Hooking && before.Gate.Point != agent.HookOutput
	if !again || was {
		return
	}
	switch after.Transition {
	case agent.StopHookBlocking:
		if j.blocks++; j.blocks > agent.BlocksMax {
			s.fail("%s is sent back %d times in a row by hooks", w.actor.id, j.blocks)
		}
	case agent.CriteriaUnmet:
		if j.unmet++; j.unmet > cmp.Or(after.Task.Manners.Require.Tries, agent.RequireTries) {
			s.fail("%s is sent back %d times for what is missing", w.actor.id, j.unmet)
		}
	case agent.BudgetNudge:
		s.watchNudge(w, after)
	}
}

// watchNudge: a budget is used up while that brings something.
func (s *sim) watchNudge(w *shadow, after *agent.State) {
	j, c := &w.judge, after.Task.Manners.Continue
	used := after.Usage.Output
	if small := used-j.nudgedAt < cmp.Or(c.Small, agent.ContinueSmall); j.nudges > 0 && small {
		j.small++
	} else {
		j.small = 0
	}
	if j.nudges++; j.small >= cmp.Or(c.Rounds, agent.ContinueRounds) {
		s.fail("%s goes on after %d continuations that brought little", w.actor.id, j.small)
	}
	if most := c.Tokens * int64(cmp.Or(c.Percent, agent.ContinuePercent)) / 100; used > most {
		s.fail("%s goes on, and %d of %d tokens are used", w.actor.id, used, c.Tokens)
	}
	j.nudgedAt = used
}

// watchEnd: what a result claims is in the record, and nothing is left behind.
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
	if o.Reason != agent.Completed {
		return
	}
	r := after.Task.Manners.Require
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

// shown: a result that is no failure, of that tool, and with that text in it.
func shown(history []model.Message, e agent.Evidence) bool {
	for i, m := range history {
		for k, r := range m.Results {
			if i > 0 && k < len(history[i-1].Calls) && history[i-1].Calls[k].Name == e.Tool && !r.Error && strings.Contains(r.Text, e.Contains) {
				return true
			}
		}
	}
	return false
}

// watchGate: what a gate decided is done.
func (s *sim) watchGate(w *shadow, after *agent.State, gate agent.RunHooks, d agent.HookDecision) {
	a := w.actor
	switch gate.Point {
	case agent.HookPreTool:
		i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == gate.Input.Call })
		if d == agent.HookPass && i >= 0 && after.Calls[i].Stage == agent.Ended && after.Calls[i].Attempt == 0 && after.Cancel == nil {
			s.fail("%s: the hooks let %s pass, and it is answered without having run", a.id, gate.Input.Call)
		}
	case agent.HookStop:
		if d == agent.HookPrevent && after.Phase != agent.Done {
			s.fail("%s goes on, and a stop hook said that it ends", a.id)
		}
	case agent.HookContext, agent.HookInput, agent.HookOutput:
		if d == agent.HookTrip && after.Phase != agent.Done {
			s.fail("%s goes on after a tripwire at %s", a.id, gate.Point)
		}
		if d == agent.HookDeny && gate.Point == agent.HookOutput && (after.Phase == agent.Acting || after.Phase == agent.Stopping) {
			s.fail("%s acts on a reply that a guardrail did not pass", a.id)
		}
	}
}

// watchForced: what the watch has come to is enforced in the next reply: a tool
// is halted, a person is asked.
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

// watchAnswered: a person's no is a no.
func (s *sim) watchAnswered(w *shadow, before, after *agent.State, e agent.Answered) {
	j, q := &w.judge, before.Query
	clear(j.fails)
	switch {
	case e.Decision == "approve":
		if j.denied[q.Call] == string(agent.HookAsk) {
			j.agreed[q.Call] = j.asked[q.Call]
		}
		delete(j.denied, q.Call)
		j.passed[q.Call] = !after.Task.Manners.Reask || j.askedOn[q.Call] == after.Node
	case e.Decision == "deny" && q.Call == "" && after.Phase != agent.Done:
		s.fail("%s goes on, and a person said no", w.actor.id)
	}
}
