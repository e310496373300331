package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
)

// clockJudge has a clock of its own for the working time of an agent.
type clockJudge struct {
	*watchedAgent
	began int64 // the clock, moved on by the time without work
	// frozen is the newest reservation that waits, or waited, for the end of a freeze.
	frozen int
	rests  agent.Released // how the previous activation ended, until the next claim
}

// checkTimer checks that a timer counts only from its time on, by the timestamp of its entry.
func (j *clockJudge) checkTimer(before, after *agent.State) {
	a, l, began := j.actor, after.Task.Limits, j.began
	if a.damaged {
		return
	}
	if after.Soft && !before.Soft && after.Now < began+l.SoftMS {
		j.fail(timersCount, "%s: the soft limit passes too early", a.id)
	}
	q := before.Suspended.Question
	denied := asksPerson(before) && q.Due > 0 && after.Now >= q.Due // the question how to go on has expired
	if after.Cancel != nil && before.Cancel == nil && after.Now < began+l.HardMS && !denied {
		j.fail(timersCount, "%s: the hard limit passes too early", a.id)
	}
	if w := before.Suspended; w.Why == agent.AwaitsRetry && (after.Phase == agent.Reserving || after.Phase == agent.Thinking) && after.Now < w.Due {
		j.fail(timersCount, "%s: a retry comes too early", a.id)
	}
}

// advanceClock moves the judge's clock on by the time before an entry, if that was
// certainly no work: a person was asked, only children worked, or no process had the
// agent. What children have worked counts in full, one after the other, so the judge's
// clock is never behind, and a limit that passes before it passes too early.
func (j *clockJudge) advanceClock(before, after *agent.State, f activation.Fact) {
	gap := after.Now - before.Now
	switch {
	case before.Phase == "":
		j.began = after.Now
		return
	case asksPerson(before) || onlyChildren(before) || j.frozen == before.Reservation && before.Phase == agent.Reserving:
		j.began += gap
	case f.Kind == "resumed" && !(j.rests.Rests && j.rests.Due != 0 && after.Now <= j.rests.Due+wokenLateMS):
		j.began += gap
	}
	switch f.Kind {
	case "budget_frozen":
		j.frozen = decodeFact[agent.BudgetFrozen](j.population, f).Reservation
	case "released":
		j.rests = decodeFact[agent.Released](j.population, f)
	case "resumed":
		j.rests = agent.Released{}
	case "returned":
		j.began -= decodeFact[agent.Returned](j.population, f).WorkedMS
	case "messaged":
		j.began -= decodeFact[agent.Messaged](j.population, f).WorkedMS
	}
}

// wokenLateMS is how late a passivated actor may be woken, as the judge reads the rule.
const wokenLateMS = 60_000

// onlyChildren reports whether only its children work for an agent, by the judge's own reading.
func onlyChildren(st *agent.State) bool {
	if isIdle(st) {
		return true
	}
	children := 0
	for _, c := range st.Calls {
		switch c.Stage {
		case agent.Starting, agent.Retrying, agent.Gated:
			return false
		case agent.Running:
			if c.Child == "" {
				return false
			}
			children++
		}
	}
	return st.Phase == agent.Acting && children > 0
}
