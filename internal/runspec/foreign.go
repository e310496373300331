package runspec

import (
	"slices"

	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/refuse"
)

// coveredDelegates returns the delegates that an agent may have. Nobody reports what an agent of another program costs, so
// under a limit in money it is treated as a model without a price: it needs the consent of the user or the operator by its
// name. A run whose own agent lacks the consent is refused; any other agent goes without the delegate. unknown are those that
// this node does not know; another one, where the agent may live, may know them.
func coveredDelegates(t agentSet, req acceptedRequest, nano int64, d agentfile.Definition, unknown []string) (agentSet, []string, error) {
	for _, name := range unknown {
		t.addWarning("%s: no a2a_agents of troupe.yaml on this node names %s, so a call of it fails here", d.Path, name)
	}
	isUncovered := func(name string) bool {
		return agentfile.IsForeignAgent(name) && nano != 0 && !slices.Contains(req.AllowUnpriced, name)
	}
	i := slices.IndexFunc(d.Delegates, isUncovered)
	switch {
	case i < 0:
		for _, name := range d.Delegates {
			if agentfile.IsForeignAgent(name) && nano != 0 && slices.Contains(req.agents, d.Name) {
				t.addWarning("the cost of %s is unknown: the limit in money does not hold for its calls", name)
			}
		}
		return t, d.Delegates, nil
	case slices.Contains(req.agents, d.Name):
		return t, nil, refuse.Bad("give --max-tokens instead of a limit in money, or --allow-unpriced "+d.Delegates[i]+", or remove it from "+d.Path,
			"the agent %s may call %s, whose cost is unknown, so a limit in money cannot be kept", d.Name, d.Delegates[i])
	}
	for _, name := range d.Delegates {
		if isUncovered(name) {
			t.addWarning("%s: %s is left out: its cost is unknown, and there is a limit in money; --allow-unpriced %s lets it be called", d.Path, name, name)
		}
	}
	return t, slices.DeleteFunc(slices.Clone(d.Delegates), isUncovered), nil
}
