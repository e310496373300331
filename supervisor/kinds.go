package supervisor

import "github.com/troupe-run/troupe/agent"

// Kinds are the kinds of notes that supervisors make, each with the zero value
// of its data: what the schemas of events are made from.
func Kinds() map[string]any {
	return map[string]any{
		"run.started": RunStarted{}, "run.finished": Result{}, "agent.spawned": AgentSpawned{},
		"budget.reserved": BudgetNote{}, "budget.settled": BudgetNote{}, "budget.denied": BudgetNote{}, "budget.exhausted": BudgetNote{},
		"budget.changed": BudgetNote{}, "budget.overrun": BudgetNote{},
		"policy.applied": PolicyApplied{}, "warning.raised": agent.Warned{},
	}
}

// Bare is a note's data without what people, models and tools said.
func Bare(data any) any {
	switch d := data.(type) {
	case RunStarted:
		d.Goal = ""
		return d
	case Result:
		d.Text, d.Journal = "", ""
		if d.Cancel != nil {
			c := *d.Cancel
			c.Why, d.Cancel = "", &c
		}
		agents := make([]AgentResult, len(d.Agents))
		for i, a := range d.Agents {
			if a.Query != nil {
				q := *a.Query
				q.Question = ""
				a.Query = &q
			}
			agents[i] = a
		}
		d.Agents = agents
		return d
	}
	return agent.Bare(data)
}
