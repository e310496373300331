package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// forkJudge checks that the first activation of a fork does not charge for a request that its original has made.
type forkJudge struct {
	*watchedAgent
	copied bool // the log was copied by a fork, and no activation of the fork has begun
}

// busyTurn is a complete turn of an agent with which others had begun something.
type busyTurn struct {
	actor *actor
	turn  int
}

// noteBusyTurn notes at which turns a fork finds work under way.
func (j *forkJudge) noteBusyTurn(before *agent.State) {
	after := &j.actor.shadow.agent.State
	if j.rate%forksEvery != 0 || after.Turn == 0 || len(after.History) == len(before.History) || !after.Turned(after.Turn) || before.Turned(after.Turn) {
		return
	}
	if slices.ContainsFunc(j.population.actors, func(a *actor) bool { return a != j.actor && a.shadow.agent != nil && isBusy(&a.shadow.agent.State) }) {
		j.population.busyTurns = append(j.population.busyTurns, busyTurn{j.actor, after.Turn})
	}
}

// isBusy reports whether an agent waits for a model, or has begun what may not be repeated by itself.
func isBusy(st *agent.State) bool {
	return st.Phase == agent.Thinking || slices.ContainsFunc(st.Calls, func(c agent.Call) bool { return c.Stage == agent.Running && c.Class != model.Read })
}

func (j *forkJudge) checkStep(before *agent.State, f activation.Fact, out activation.Stepped) {
	if f.Kind == (agent.Forked{}).Kind() {
		j.copied = true
	}
	j.noteBusyTurn(before)
	if !j.copied || f.Kind != "resumed" {
		return
	}
	j.copied = false
	if before.Phase != agent.Thinking {
		return
	}
	j.reach.hit(placeRunForkedRequest)
	for _, t := range out.Messages {
		var s agent.Settle
		if t.Kind == "settle" && mailbox.Unmarshal(t.Body, &s) == nil && s.Reservation == before.Reservation && (s.Lost || !s.Used.Zero()) {
			j.fail(forksRepeatNothing, "%s: the fork is charged for the request of its original under reservation %d", j.actor.id, s.Reservation)
		}
	}
}
