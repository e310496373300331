package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
)

// watchClock moves the judge's clock on by the time before an entry, if that was
// certainly no work: a person was asked, only children worked, or no process had the
// agent. What children have worked counts in full, one after the other, so the judge's
// clock is never behind, and a limit that passes before it passes too early.
func (s *sim) watchClock(j *judgement, before, after *agent.State, f activation.Fact) {
	gap := after.Now - before.Now
	switch {
	case before.Phase == "":
		j.began = after.Now
		return
	case before.Query.Query != "" || onlyChildren(before):
		j.began += gap
	case f.Kind == "resumed" && !(j.rests.Rests && j.rests.Due != 0 && after.Now <= j.rests.Due+wokenLateMS):
		j.began += gap
	}
	switch f.Kind {
	case "released":
		j.rests = read[agent.Released](s, f)
	case "resumed":
		j.rests = agent.Released{}
	case "returned":
		j.began -= read[agent.Returned](s, f).WorkedMS
	case "messaged":
		j.began -= read[agent.Messaged](s, f).WorkedMS
	}
}

// wokenLateMS is how late a passivated actor may be woken, as the judge reads the rule.
const wokenLateMS = 60_000

// onlyChildren reports whether only its children work for an agent, by the judge's own reading.
func onlyChildren(st *agent.State) bool {
	if st.Idle {
		return true
	}
	children := 0
	for _, c := range st.Calls {
		switch c.Stage {
		case agent.Starting, agent.Retrying, agent.Gated:
			return false
		case agent.Running:
			if c.Child == "" || c.Sends {
				return false
			}
			children++
		}
	}
	return st.Phase == agent.Acting && children > 0
}
