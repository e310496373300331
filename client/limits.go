package client

import "github.com/troupe-run/troupe/agent/spec"

// AgentLimits limit each agent of a run. An agent file may set lower ones for its agent. Zero means
// the default, and -1 none at all where spec.NamedLimits says so.
type AgentLimits struct {
	MaxOutputTokens   int64 `json:"max_output_tokens,omitempty"` // of one model call
	ClosingTokens     int64 `json:"closing_tokens,omitempty"`    // kept for the closing turn
	MaxAgentToolCalls int64 `json:"max_agent_tool_calls,omitempty"`
	MaxAgentTokens    int64 `json:"max_agent_tokens,omitempty"`
	MaxReplyCalls     int64 `json:"max_reply_calls,omitempty"`    // tool calls of one reply
	MaxParallelTools  int64 `json:"max_parallel_tools,omitempty"` // at once
	MaxRetries        int64 `json:"max_retries,omitempty"`        // of a failed model call
	MaxMalformed      int64 `json:"max_malformed,omitempty"`      // useless replies in a row
	MaxCuts           int64 `json:"max_cuts,omitempty"`           // continuations of a cut reply, in a row
	MaxVetoes         int64 `json:"max_vetoes,omitempty"`         // answers sent back, in a row
}

// Field returns the limit of that name: a field of a request. nil: there is none.
func (l *AgentLimits) Field(name string) *int64 {
	return map[string]*int64{"max_output_tokens": &l.MaxOutputTokens, "closing_tokens": &l.ClosingTokens,
		"max_agent_tool_calls": &l.MaxAgentToolCalls, "max_reply_calls": &l.MaxReplyCalls, "max_parallel_tools": &l.MaxParallelTools,
		"max_retries": &l.MaxRetries, "max_malformed": &l.MaxMalformed, "max_cuts": &l.MaxCuts, "max_vetoes": &l.MaxVetoes}[name]
}

// Spec returns the limits as a run records them.
func (l AgentLimits) Spec() spec.Limits {
	made := spec.Limits{Tokens: l.MaxAgentTokens}
	for _, n := range spec.NamedLimits() {
		if v := l.Field(n.Request); v != nil {
			n.Set(&made, *v)
		}
	}
	return made
}
