package orchestrator

// Agent is a built-in agent that follows plans.
type Agent struct {
	Name        string // also its route
	Description string
	System      string
}

// planPrompt is the prompt of the agents: their models have no LLM that could read one.
const planPrompt = "Follow the plan of the task."

// BuiltinAgents are those of the routes, in their order.
func BuiltinAgents() []Agent {
	return []Agent{
		{Chain, "Has agents work one after the other; each gets what the one before it answered.", planPrompt},
		{Consolidate, "Has agents work side by side, and one more make one answer of theirs.", planPrompt},
		{Delegate, "Gives a task to an agent, with the history so far, and passes on its answer.", planPrompt},
	}
}

// TurnsMax is how many turns a plan may need.
const TurnsMax = 2 * StepsMax
