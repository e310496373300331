package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/model"
)

// steeringJudge checks what a user's message keeps from beginning, from its entry until it reaches the transcript.
type steeringJudge struct {
	*watchedAgent
	preempts bool // a message that takes effect now waits
}

func (j *steeringJudge) checkStep(before, after *agent.State, f activation.Fact, out activation.Stepped) {
	if f.Kind == "steered" && before.Cancel == nil && before.Phase != "" && before.Phase != agent.Done {
		j.preempts = j.preempts || decodeFact[agent.Steered](j.population, f).Now
	}
	if len(after.PendingSteers) == 0 || after.Cancel != nil {
		if j.preempts && after.Cancel == nil && after.Phase != agent.Done {
			j.reach.hit(placePreempted)
		}
		j.preempts = false
	}
	for _, effect := range out.Effects {
		j.checkEffect(after, effect)
	}
}

// checkEffect checks that a turn begins nothing after such a message, and that only reads are aborted.
func (j *steeringJudge) checkEffect(after *agent.State, effect any) {
	switch e := effect.(type) {
	case agent.AbortTool:
		if c := findCall(after, e.Call); after.Cancel == nil && c.Class != model.Read {
			j.fail(steeringTakesEffect, "%s: the %s call %s is cut off, and the run is not canceled", j.actor.id, c.Class, e.Call)
		} else if after.Cancel == nil {
			j.reach.hit(placeReadAborted)
		}
	case agent.Begin:
		j.checkBegin(e.Call, e.Attempt)
	case agent.CallTool:
		j.checkBegin(e.Call, e.Attempt)
	case agent.CallModel:
		if j.preempts && e.Purpose == agent.ForTurn && after.ClosingReason == "" {
			j.fail(steeringTakesEffect, "%s: a request begins without the message of a user that takes effect now", j.actor.id)
		}
	}
}

func (j *steeringJudge) checkBegin(call string, attempt int) {
	if j.preempts && attempt == 1 {
		j.fail(steeringTakesEffect, "%s: call %s begins after a user's message that takes effect now", j.actor.id, call)
	}
}

func findCall(st *agent.State, id string) agent.Call {
	for _, c := range st.Calls {
		if c.ID == id {
			return c
		}
	}
	return agent.Call{}
}
