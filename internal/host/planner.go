package host

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/model/plan"
	"github.com/troupe-run/troupe/supervisor"
)

// planner adds the agent that follows a plan, if the run begins with it: those
// it delegates to are the run's, with the run's model; its own is rules.
func (h *Host) planner(o *supervisor.Opened, r client.RunRequest) error {
	i := slices.IndexFunc(plan.Agents(), func(b plan.Agent) bool { return b.Name == r.Agent })
	if i < 0 {
		return nil
	}
	if _, ok := plan.Parse(r.Agent, r.Prompt); !ok {
		return bad(`troupe run --agent `+r.Agent+` "`+plan.Example(r.Agent)+`"`, "the prompt of %s is no plan: it names no agents", r.Agent)
	}
	b := plan.Agents()[i]
	choice, err := h.models.named(pick.Builtin + "/" + b.Name)
	if err != nil {
		return bad("", "agent %s: %v", b.Name, err)
	}
	o.Definitions = append(o.Definitions, supervisor.Definition{Name: b.Name, Description: b.Description, System: b.System,
		Offer: []string{"delegate"}, Limits: agent.Limits{Turns: plan.TurnsMax},
		Model: &agent.Model{Name: choice.Name(), Price: choice.Price},
		// That agents give the same answer is no loop: a plan is followed, not repeated.
		Manners: agent.Manners{Watch: agent.Watch{Of: 1}}})
	return nil
}

// asked are the agents that a request names: the root, and those of its plan.
func asked(r client.RunRequest) []string {
	var names []string
	if r.Agent != "" {
		names = append(names, r.Agent)
	}
	if slices.Contains(plan.Routes(), r.Agent) {
		if p, ok := plan.Parse(r.Agent, r.Prompt); ok {
			names = append(names, p.Agents()...)
		}
	}
	return names
}
