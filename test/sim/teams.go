package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Seeds from teamSeeds on play teams: the root delegates to several children first, and the limits of the
// run allow them. All other draws are those of any seed, and seeds below teamSeeds play what they always
// have. A draw in which faults keep the run from becoming a team is judged like any other run, and drawn
// again: seed 7 of TestSeeds plays seed
// 1000000000007, then 2000000000007, and so on.
const (
	teamSeeds  = 1_000_000_000_000
	teamAgents = 3 // that have begun, in a run that is a team
	drawsMax   = 30
	teamTokens = 2500 // a smaller budget is used up before there is a team
	teamSoftMS = 600  // … and so is a shorter time
	formEvery  = 4    // in one draw of these, faults happen before there is a team, too
	formSteps  = 120  // … and in each draw after this number of steps
)

// isForming reports whether the run becomes a team in peace.
func (s *sim) isForming() bool {
	if s.seed < teamSeeds || s.seed%formEvery == 0 || s.isTeam || s.step > formSteps {
		return false
	}
	s.isTeam = s.population.countBegun() >= teamAgents
	return !s.isTeam
}

// playTeam plays draws of a seed until one is a team, and returns that one and the number of draws.
func playTeam(number int64, o seedOptions) (r seedResult, draws int) {
	for draws < drawsMax {
		draws++
		r = simulateSeed(int64(draws)*teamSeeds+number, o)
		if r.Err != nil || r.Begun >= teamAgents {
			break
		}
	}
	return r, draws
}

// countBegun counts the agents that have begun.
func (p *population) countBegun() int {
	n := 0
	for _, a := range p.actors {
		if st := a.shadow.agent; st != nil && st.State.Phase != "" {
			n++
		}
	}
	return n
}

// allowTeam raises the limits of a run that keep it from becoming a team. The faults of a team end earlier, because
// each step of a team costs more, and its end has more steps.
func (p *seedPlan) allowTeam() {
	o := &p.opened
	p.faultSteps /= 2
	if o.Agent.Turns > 0 {
		o.Agent.Turns = max(o.Agent.Turns, 3)
	}
	if o.Limits.Children > 0 {
		o.Limits.Children = max(o.Limits.Children, teamAgents-1)
	}
	if o.Limits.Tokens > 0 {
		o.Limits.Tokens = max(o.Limits.Tokens, teamTokens)
	}
	if p.softMS > 0 && p.softMS < teamSoftMS {
		o.Agent.HardMS += teamSoftMS - p.softMS
		p.softMS, o.Agent.SoftMS = teamSoftMS, teamSoftMS
	}
}

// formTeam answers a request of the root of a team that has no children yet.
func (fm *fakeModel) formTeam(r *job) (model.Reply, bool) {
	if fm.seed < teamSeeds || r.shell.actor.id != spec.Root || r.aborted || r.request.NoTools || fm.population.countBegun() >= teamAgents ||
		r.shell.state.Agent.State.Purpose != agent.ForTurn {
		return model.Reply{}, false
	}
	reply := model.Reply{Stop: model.StopTools, UsageKnown: true, Message: model.Message{Role: model.Assistant}}
	for range fm.between(teamAgents-1, teamAgents) {
		reply.Message.Calls = append(reply.Message.Calls, model.ToolCall{Name: "delegate", Args: fm.drawDelegation()})
	}
	return reply, true
}
