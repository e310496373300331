package sim

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// The kinds of faults below follow from what was drawn already, so that the runs of the other seeds do not change.
// What they do is not drawn among the other faults for the same reason: it happens at set steps.
const (
	modelsEvery   = 7 // which of the seeds set other models: see permissionsEvery
	modelsAt      = 3
	modelSteps    = 61 // between two other models
	othersEvery   = 5  // which of the seeds have other agents that use the budget
	othersAt      = 1
	othersSteps   = 29 // between two changes of what they use
	othersTokens  = 3000
	clerksModel   = "openai/clerks"
	setModelsName = "anthropic/set-"
)

// giveClerksAModel gives a definition a model of its own, which no other model replaces.
func giveClerksAModel(o *supervisor.Opened) {
	i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == "clerk" })
	o.Definitions[i].Model = &spec.Model{Name: clerksModel, Price: o.Model.Price}
}

// changeUse injects the changes of models and of what other agents use.
func (in *injector) changeUse() {
	if in.isOn(faultModels) && in.step%modelSteps == 0 {
		in.setModel()
	}
	if in.isOn(faultBacklog) && in.step%backlogSteps == 0 {
		in.changeBacklog()
	}
	if in.isOn(faultContexts) && in.step%contextSteps == 0 {
		in.changeContext()
	}
	if in.isOn(faultSubtrees) && in.step%subtreeSteps == 0 {
		in.limitSubtree()
	}
	if in.isOn(faultNarrowings) && in.step%narrowingSteps == 0 {
		in.narrowRights()
	}
	if in.isOn(faultOthers) && in.step%othersSteps == 0 {
		in.useByOthers()
	}
}

// setModel gives the run another model, as a fork does: the supervisor and each agent at work read it in their own
// logs. At times one agent alone gets it.
func (in *injector) setModel() {
	super := in.population.super
	st := super.shadow.super.State
	if st.Phase != supervisor.Live || super.damaged {
		return
	}
	set := agent.ModelSet{Model: spec.Model{Name: setModelsName + itoa(len(in.setModels)), Window: drawWindow(in.dice, &in.seedPlan), Price: drawPrice(in.dice)}}
	if st.Run.Limits.Nano > 0 {
		set.Model.Price = in.first.Price // a fork whose limit in money cannot be kept is refused
		set.Model.Price.Output += int64(in.IntN(20))
	}
	if in.percent(30) {
		set.Summaries = &spec.Model{Name: set.Model.Name + "-small", Price: set.Model.Price}
	}
	in.setModels = maps.Clone(in.setModels)
	if in.setModels == nil {
		in.setModels = map[string]spec.Model{}
	}
	in.setModels[set.Model.Name] = set.Model
	if set.Summaries != nil {
		in.setModels[set.Summaries.Name] = *set.Summaries
	}
	var to []mailbox.Address
	st.Members(func(m supervisor.Member) {
		if !m.Done && m.Name != "clerk" {
			to = append(to, mailbox.At(runName, string(m.ID)))
		}
	})
	if len(to) > 0 && in.percent(30) {
		in.store.appendCommand(in.population.findActor(to[in.IntN(len(to))]), set.Kind(), set)
		return
	}
	in.store.appendCommand(super, set.Kind(), set)
	for _, at := range to {
		in.store.appendCommand(in.population.findActor(at), set.Kind(), set)
	}
}

// useByOthers changes what agents that are not in the run have of its budget, within what is free.
func (in *injector) useByOthers() {
	super := in.population.super
	st := super.shadow.super.State
	if st.Phase != supervisor.Live || super.damaged {
		return
	}
	p, was := st.Pool, in.judgedOthers()
	free := p.Limit.Room(p.Spent.Plus(p.Held).Plus(p.Kept).Plus(p.Carved)).Plus(was.Held).Plus(was.Kept).Plus(was.Carved)
	part := func() (a budget.Amount) {
		a.Tokens = in.takeOf(&free.Tokens, othersTokens)
		a.Nano = in.takeOf(&free.Nano, 10*othersTokens)
		return a
	}
	now := supervisor.OthersUse{Spent: was.Spent, Held: part(), Kept: part(), Carved: part()}
	more := part()
	more.Calls = in.takeOf(&free.Calls, 3)
	now.Spent = now.Spent.Plus(more)
	now.Ahead = budget.Amount{Tokens: now.Held.Tokens / 2}
	in.store.appendCommand(super, now.Kind(), now)
}

// takeOf takes an amount out of what is free.
func (in *injector) takeOf(free *int64, most int) int64 {
	n := min(int64(in.IntN(most)), max(0, *free/4))
	*free -= n
	return n
}

// releaseOthers lets the other agents end. It reports whether they held anything.
func (in *injector) releaseOthers() bool {
	was := in.judgedOthers()
	if was.Held.Zero() && was.Kept.Zero() && was.Carved.Zero() || in.population.super.closed {
		return false
	}
	in.store.appendCommand(in.population.super, was.Kind(), supervisor.OthersUse{Spent: was.Spent})
	return true
}

func (in *injector) judgedOthers() supervisor.OthersUse { return in.population.judges.budget.others }
