package spec

import (
	"cmp"
	"slices"
)

// Severity is how bad a guardrail says that a finding is. No decision of the loop depends on it.
type Severity string

// severities are all severities, the least first.
var severities = []Severity{"low", "medium", "high", "critical"}

// Rank orders severities: 0 for "", 1 for low up to 4 for critical, and -1 for any other word.
func (v Severity) Rank() int {
	if v == "" {
		return 0
	}
	return cmp.Or(slices.Index(severities, v)+1, -1)
}

// guardrailPrefix begins the names of the hooks that ready guardrails are.
const guardrailPrefix = "guardrail:"

// ReadyGuardrail switches on one ready guardrail: see docs/guardrails.md.
type ReadyGuardrail struct {
	// Name is secrets, injection, size or patterns.
	Name string `json:"guardrail"`
	// Action is warn, block or end; "" is block.
	Action string `json:"action,omitempty"`
	// Severity of its findings; "" is the default of the guardrail.
	Severity Severity `json:"severity,omitempty"`
	// At are the hook points where it looks: input, output, tool_result. Default: those of the guardrail.
	At []HookPoint `json:"at,omitempty"`
	// Tools is a regular expression on the tools whose results it judges; "" matches all.
	Tools string `json:"tools,omitempty"`
	// Label and Pattern are of patterns: a name for reports, and an RE2 expression.
	Label   string `json:"label,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	// Bytes is of size: the most bytes of a prompt, a reply or a result; 0 is the default of the point.
	Bytes int64 `json:"bytes,omitempty"`
}
