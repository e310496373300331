package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/supervisor"
)

// modelJudge checks that an agent calls the model that was set, from the first request on that follows.
type modelJudge struct {
	*watchedAgent
	set       *agent.ModelSet
	fresh     bool // no request has followed
	fallbacks []string
}

// noteFact reads which models the agent has.
func (j *modelJudge) noteFact(before *agent.State, f activation.Fact) {
	switch {
	case f.Kind == (agent.Submitted{}).Kind() && before.Phase == "":
		for _, m := range decodeFact[agent.Submitted](j.population, f).Task.LoopOptions.Fallbacks {
			j.fallbacks = append(j.fallbacks, m.Name)
		}
	case f.Kind == (agent.ModelSet{}).Kind() && before.Phase != agent.Done:
		set := decodeFact[agent.ModelSet](j.population, f)
		j.set, j.fresh = &set, true
		j.reach.hit(placeModelSet)
		if before.Phase == agent.Reserving || before.Phase == agent.Thinking {
			j.reach.hit(placeModelSetOverARequest)
		}
	}
}

// checkRequest checks the model of a request.
func (j *modelJudge) checkRequest(after *agent.State, e agent.CallModel) {
	fresh := j.fresh
	j.fresh = false
	if j.set == nil || slices.Contains(j.fallbacks, e.Model) && !fresh || e.Model == j.set.Model.Name {
		return
	}
	if s := j.set.Summaries; s == nil || after.Purpose != agent.ForSummary || e.Model != s.Name {
		j.fail(modelAsSet, "%s calls %s, and its log has set %s", j.actor.id, e.Model, j.set.Model.Name)
	}
}

// runModelJudge checks that agents begin with the model that was set for the run.
type runModelJudge struct {
	population *population
	set        *agent.ModelSet
}

// noteFact reads which model the run has.
func (j *runModelJudge) noteFact(before *supervisor.State, f activation.Fact) {
	if f.Kind == (agent.ModelSet{}).Kind() && before.Phase != "" {
		set := decodeFact[agent.ModelSet](j.population, f)
		j.set = &set
	}
}

// checkTask checks the model of an agent that begins.
func (j *runModelJudge) checkTask(after *supervisor.State, t activation.OutboxMessage) {
	if j.set == nil || j.population.super.damaged {
		return
	}
	task := decodeFact[agent.Submitted](j.population, activation.Fact{Kind: t.Kind, Body: t.Body}).Task
	i := slices.IndexFunc(after.Run.Definitions, func(d supervisor.Definition) bool { return d.Name == task.Name })
	want := j.set.Model
	if own := after.Run.Definitions[i].Model; own != nil {
		want = *own
	}
	if !sameModel(task.Model, want) {
		j.population.fail(modelAsSet, "%s begins with %s, and the run has set %s", task.ID, task.Model.Name, want.Name)
	}
	j.population.reach.hit(placeBegunWithModelSet)
}

func sameModel(a, b spec.Model) bool {
	return a.Name == b.Name && a.Price == b.Price && a.Window == b.Window
}
