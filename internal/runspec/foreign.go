package runspec

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/supervisor"
)

// coveredDelegates returns the delegates that an agent may have. Agents of other programs report no cost, so under a
// limit in money such an agent needs a stated charge, or the consent of the user or the operator by its name, like a
// model without a price. A run whose own agent lacks both is refused; any other agent goes without the delegate.
// unknown are those that this node does not know; another one, where the agent may live, may know them.
func coveredDelegates(cfg *Config, t agentSet, req acceptedRequest, nano int64, d agentfile.Definition) (agentSet, []string, error) {
	for _, name := range cfg.Tools.UnknownAgents(d.Delegates) {
		t.addWarning("%s: no a2a_agents of troupe.yaml on this node names %s, so a call of it fails here", d.Path, name)
	}
	t.charges = maps.Clone(t.charges)
	if t.charges == nil {
		t.charges = map[string]float64{}
	}
	for _, name := range d.Delegates {
		if agentfile.IsForeignAgent(name) {
			t.charges[name] = max(t.charges[name], chargeFor(cfg, d, name))
		}
	}
	isUncharged := func(name string) bool {
		return agentfile.IsForeignAgent(name) && nano != 0 && t.charges[name] == 0
	}
	isUncovered := func(name string) bool { return isUncharged(name) && !slices.Contains(req.AllowUnpriced, name) }
	i := slices.IndexFunc(d.Delegates, isUncovered)
	switch {
	case i < 0:
		for _, name := range d.Delegates {
			if isUncharged(name) && slices.Contains(req.agents, d.Name) {
				t.addWarning("the cost of %s is unknown: the limit in money does not hold for its calls", name)
			}
		}
		return t, d.Delegates, nil
	case slices.Contains(req.agents, d.Name):
		return t, nil, refuse.Bad("state what is charged for it with delegate_charges in your settings, give --max-tokens instead of a limit "+
			"in money, or --allow-unpriced "+d.Delegates[i]+", or remove it from "+d.Path,
			"the agent %s may call %s, whose cost is unknown, so a limit in money cannot be kept", d.Name, d.Delegates[i])
	}
	for _, name := range d.Delegates {
		if isUncovered(name) {
			t.addWarning("%s: %s is left out: its cost is unknown, and there is a limit in money; delegate_charges of your "+
				"settings can state a charge, and --allow-unpriced %s lets it be called", d.Path, name, name)
		}
	}
	return t, slices.DeleteFunc(slices.Clone(d.Delegates), isUncovered), nil
}

// chargeFor returns what is charged for a delegate of another program: the larger of what the agent file and the
// settings state, because a file with a low charge would get around a limit in money.
func chargeFor(cfg *Config, d agentfile.Definition, name string) float64 {
	return max(agentfile.ChargeFor(d.Charges, name), agentfile.ChargeFor(cfg.Charges, name))
}

// foreignTurnsMax bounds the turns of an agent that represents one of another program: each question takes two of
// them.
const foreignTurnsMax = 64

// addForeign adds the agents that represent the agents of other programs that definitions name.
func addForeign(cfg *Config, t agentSet) (agentSet, error) {
	var names []string
	for _, d := range t.definitions {
		for _, name := range d.Delegates {
			if agentfile.IsForeignAgent(name) && !slices.Contains(names, name) && !t.hasAgent(name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return t, nil
	}
	choice, err := cfg.Routes.ChooseNamed(provider.Builtin + "/" + orchestrator.Foreign)
	if err != nil {
		return t, refuse.Bad("remove agents of other programs from x-troupe.delegates", "%s: %v", names[0], err)
	}
	tools := []string{toolname.Delegate, agent.AskSpec().Name}
	t.definitions = slices.Clone(t.definitions)
	for _, name := range names {
		where := "an agent of another program on this NATS server"
		if a2aclient.IsName(name) {
			where = "an agent of another program that is called by A2A"
		}
		t.definitions = append(t.definitions, supervisor.Definition{Name: name, Description: where, System: orchestrator.ForeignPrompt, Hash: HashVersion(orchestrator.ForeignPrompt),
			Tools: tools, Offer: tools, Delegates: []string{}, OnlyNamed: true, Foreign: true, ChargeNano: int64(t.charges[name] * budget.NanoPerUSD),
			Limits: spec.Limits{Turns: foreignTurnsMax, Output: foreignOutput}, Model: &spec.Model{Name: choice.Name(), Price: choice.Price},
			// Repeated answers of another program are not a loop of this agent.
			LoopOptions: spec.LoopOptions{Watch: spec.Watch{Of: 1}}})
	}
	return t, nil
}

// foreignOutput is what is reserved for a reply of such an agent, which calls no model.
const foreignOutput = 256
