package client

// AgentLimits limit each agent of a run. An agent file may set lower ones for its agent. Zero means
// the default, and -1 none at all where docs/limits.md says so.
type AgentLimits struct {
	MaxOutputTokens   int64 `json:"max_output_tokens,omitempty"` // of one model call
	ClosingTokens     int64 `json:"closing_tokens,omitempty"`    // kept for the closing turn
	MaxAgentToolCalls int64 `json:"max_agent_tool_calls,omitempty"`
	MaxAgentTokens    int64 `json:"max_agent_tokens,omitempty"`
	// MaxAgentBudgetUSD is counted in billionths of a dollar; less than one is an error.
	MaxAgentBudgetUSD float64 `json:"max_agent_budget_usd,omitempty"`
	MaxReplyCalls     int64   `json:"max_reply_calls,omitempty"`    // tool calls of one reply
	MaxParallelTools  int64   `json:"max_parallel_tools,omitempty"` // at once
	MaxRetries        int64   `json:"max_retries,omitempty"`        // of a failed model call
	MaxMalformed      int64   `json:"max_malformed,omitempty"`      // useless replies in a row
	MaxCuts           int64   `json:"max_cuts,omitempty"`           // continuations of a cut reply, in a row
	MaxVetoes         int64   `json:"max_vetoes,omitempty"`         // answers sent back, in a row
	MaxHandoffs       int64   `json:"max_handoffs,omitempty"`       // of one conversation, in one run
}

// Field returns the limit of that name: a field of a request. nil: there is none.
func (l *AgentLimits) Field(name string) *int64 {
	switch name {
	case "max_output_tokens":
		return &l.MaxOutputTokens
	case "closing_tokens":
		return &l.ClosingTokens
	case "max_agent_tool_calls":
		return &l.MaxAgentToolCalls
	case "max_reply_calls":
		return &l.MaxReplyCalls
	case "max_parallel_tools":
		return &l.MaxParallelTools
	case "max_retries":
		return &l.MaxRetries
	case "max_malformed":
		return &l.MaxMalformed
	case "max_cuts":
		return &l.MaxCuts
	case "max_vetoes":
		return &l.MaxVetoes
	case "max_handoffs":
		return &l.MaxHandoffs
	}
	return nil
}
