package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// pauseJudge checks how an agent waits for a throttled model.
type pauseJudge struct {
	*watchedAgent
	prompts   *promptJudge
	refused   int // times since the model last answered, unbilled
	refusedAt int64
}

// isPaused reports whether an agent waits for its turn at the throttle of its model.
func isPaused(st *agent.State) bool { return st.Suspended.Why == agent.AwaitsThrottle }

// checkPause checks that an agent that waits for a rate limiter has released its reservation,
// and that a timer ends the wait.
func (j *pauseJudge) checkPause(before, after *agent.State, out activation.Stepped) {
	a := j.actor
	asks := slices.ContainsFunc(out.Effects, func(e any) bool {
		w, ok := e.(agent.AwaitThrottle)
		return ok && w.Pause == after.ThrottleWait.N && w.Model != ""
	})
	armed := slices.ContainsFunc(out.Effects, func(e any) bool {
		arm, ok := e.(agent.Arm)
		return ok && arm.Due == after.ThrottleWait.Since+patienceOf(after)
	})
	settled := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool {
		var e agent.Settle
		return t.Kind == "settle" && mailbox.Unmarshal(t.Body, &e) == nil && e.Reservation == before.Reservation && !e.Lost && e.Used.Zero()
	})
	if !asks || !armed || !settled || after.Open {
		j.fail(throttlesAreObeyed, "%s waits at the gate of its model: asks %v, with a timer %v, its reservation is back %v", a.id, asks, armed, settled && !after.Open)
	}
}

// patienceOf is how long an agent waits for its model, by the judge's own reading.
func patienceOf(st *agent.State) int64 {
	p := max(0, st.Task.LoopOptions.PatienceMS)
	if st.Purpose == agent.ForSummary || len(untriedModels(st)) > 0 {
		return min(p, spec.PatienceElseMS)
	}
	return p
}

// untriedModels are the models of the chain that come after the one in use.
func untriedModels(st *agent.State) (list []string) {
	fallbacks := st.Task.LoopOptions.Fallbacks
	fallbacks = fallbacks[:min(len(fallbacks), spec.FallbacksMax)]
	tried := []string{st.Task.Model.Name}
	for i, m := range fallbacks {
		switch {
		case i < st.Route:
			tried = append(tried, m.Name)
		case !slices.Contains(tried, m.Name):
			list = append(list, m.Name)
		}
	}
	return list
}

// checkRefusals checks that refusals that cost nothing pause a loop, that they do not end it before
// its patience ends, and that they end it then.
func (j *pauseJudge) checkRefusals(before, after *agent.State, f activation.Fact) {
	refused := false
	switch f.Kind {
	case "replied":
		if before.Phase == agent.Thinking && decodeFact[agent.Replied](j.population, f).Reservation == before.Reservation {
			j.refused = 0
		}
	case "throttled":
		refused = before.Phase == agent.Thinking && decodeFact[agent.Throttled](j.population, f).Reservation == before.Reservation
	case "failed":
		e := decodeFact[agent.Failed](j.population, f)
		refused = before.Phase == agent.Thinking && e.Reservation == before.Reservation && e.Unbilled && (e.Class == model.RateLimit || e.Class == model.Overload)
	case "woke":
		if decodeFact[agent.Woke](j.population, f).Timer == "throttle" && isPaused(after) && after.Now >= after.ThrottleWait.Since+patienceOf(after) {
			j.fail(throttlesAreObeyed, "%s waits for the throttle of its model since %d, longer than it has patience", j.actor.id, after.ThrottleWait.Since)
		}
	}
	if before.Route != after.Route {
		j.refused = 0
	}
	if !refused {
		return
	}
	if before.Purpose == agent.ForSummary && isPaused(after) {
		j.prompts.summaries-- // it was never made
	}
	if j.refused++; j.refused == 1 {
		j.refusedAt = after.Now
	}
	ended := after.Phase == agent.Done && after.Outcome.Reason == spec.ModelError
	if ended && before.Purpose == agent.ForTurn && len(untriedModels(before)) == 0 && j.refused <= agent.RefusalsMax &&
		after.Now < j.refusedAt+patienceOf(before) {
		j.fail(throttlesAreObeyed, "%s is ended by %d refusals within %d ms", j.actor.id, j.refused, after.Now-j.refusedAt)
	}
}
