package httpapi

import (
	"context"
	"net/http"
)

// Agent is an agent that a run may begin with, as its definition describes it: what a form that starts a run shows.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Default says that it gets the tasks that name no agent.
	Default bool `json:"default,omitempty"`
	// Model is the model that it names, whatever the request says. RunModel is that of a run whose request names none; "": the
	// node has none.
	Model    string `json:"model,omitempty"`
	RunModel string `json:"run_model,omitempty"`
	// Tools are the tools that it may use; null: all that the run has. DisallowedTools are taken from it.
	Tools           []string `json:"tools"`
	DisallowedTools []string `json:"disallowed_tools,omitempty"`
	// Delegates are the agents that it may call; null: all.
	Delegates      []string    `json:"delegates"`
	PermissionMode string      `json:"permission_mode,omitempty"`
	Effort         string      `json:"effort,omitempty"`
	Temperature    *float64    `json:"temperature,omitempty"`
	Limits         AgentLimits `json:"limits"`
	// Constraints and Criteria are sentences that its answers must satisfy, FailIf are sentences that must not hold.
	Constraints []string `json:"constraints,omitempty"`
	Criteria    []string `json:"criteria,omitempty"`
	FailIf      []string `json:"fail_if,omitempty"`
	// OutputSchema is the JSON Schema that its answers satisfy.
	OutputSchema map[string]any `json:"output_schema,omitempty"`
}

// AgentLimits are limits of an agent and of the run that begins with it, if the request names no others; 0: none.
type AgentLimits struct {
	MaxTurns  int   `json:"max_turns"`
	TimeoutMS int64 `json:"timeout_ms"`
	// MaxTokens and MaxBudgetUSD are the limits of the run with RunModel.
	MaxTokens    int64   `json:"max_tokens"`
	MaxBudgetUSD float64 `json:"max_budget_usd,omitempty"`
	MaxToolCalls int     `json:"max_tool_calls"` // of the run
	// AgentTokens, AgentUSD and AgentShare are the agent's own part of the limits of the run.
	AgentTokens int64   `json:"agent_tokens,omitempty"`
	AgentUSD    float64 `json:"agent_usd,omitempty"`
	AgentShare  float64 `json:"agent_share,omitempty"`
}

// listAgents is GET /api/v1/agents: those that a run without a directory may begin with.
func listAgents(agents func(context.Context) []Agent) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		list := agents(r.Context())
		if list == nil {
			list = []Agent{}
		}
		writeJSON(w, http.StatusOK, list)
	}
}
