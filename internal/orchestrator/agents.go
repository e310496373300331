package orchestrator

// Agent is a built-in agent that follows plans.
type Agent struct {
	Name        string // also its route
	Description string
	System      string
}

// BuiltinAgents are those of the routes, in their order.
func BuiltinAgents() []Agent {
	return []Agent{
		{Chain, "Has agents work one after the other; each gets what the one before it answered.", "agent: " + Chain},
		{Consolidate, "Has agents work side by side, and one more make one answer of theirs.", "agent: " + Consolidate},
		{Delegate, "Gives a task to an agent, with the history so far, and passes on its answer.", "agent: " + Delegate},
	}
}

// TurnsMax is how many turns a plan may need.
const TurnsMax = 2 * StepsMax
