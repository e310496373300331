package event

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// HookFired is hook.fired: what one hook answered, or why it gave no verdict.
type HookFired struct {
	ID       string            `json:"id"`
	Hook     string            `json:"hook"`
	Point    spec.HookPoint    `json:"point"`
	Decision spec.HookDecision `json:"decision,omitempty"`
	Severity spec.Severity     `json:"severity,omitempty"`
	Text     string            `json:"text,omitempty"`
	Call     string            `json:"call,omitempty"`
	Tool     string            `json:"tool,omitempty"`
	// Failed says why the answer is not a verdict; Decision is then the default of the hook.
	Failed string `json:"failed,omitempty"`
	Report bool   `json:"report,omitempty"` // its decision has no effect
	TookMS int64  `json:"took_ms,omitempty"`
}

// GuardrailFired is guardrail.triggered and guardrail.escalated.
type GuardrailFired struct {
	Guardrails []string          `json:"guardrails"`
	Point      spec.HookPoint    `json:"point"`
	Decision   spec.HookDecision `json:"decision"`
	// Severity is the worst of those whose decision counts.
	Severity spec.Severity `json:"severity,omitempty"`
	Call     string        `json:"call,omitempty"` // tool_result: whose result
	Tool     string        `json:"tool,omitempty"`
	Why      string        `json:"why,omitempty"`
	Times    int           `json:"times,omitempty"`  // in a row
	Level    string        `json:"level,omitempty"`  // escalated: note, directive, end
	Report   bool          `json:"report,omitempty"` // it has no effect
}

// ContextTransformed is context.transformed.
type ContextTransformed struct {
	Hooks        []string `json:"hooks"`
	Messages     int      `json:"messages"` // of the prompt
	Bytes        int      `json:"bytes"`
	SentMessages int      `json:"sent_messages"` // instead
	SentBytes    int      `json:"sent_bytes"`
	SystemBytes  int      `json:"system_bytes,omitempty"` // of a system prompt that a hook has computed
}

// ToolDecided is tool.denied and tool.approved: what hooks or a person
// decided about a call.
type ToolDecided struct {
	Call     string            `json:"call"`
	Tool     string            `json:"tool"`
	Decision spec.HookDecision `json:"decision"`
	By       []string          `json:"by"` // hooks, a rule, the permission mode, the clock, or who answered
	// Rule is the permission rule that decided, or that an answer has added, and From where it was written.
	Rule string `json:"rule,omitempty"`
	From string `json:"from,omitempty"`
	// Digest is the SHA-256 of the call that a person or the permissions decided about.
	Digest string `json:"digest,omitempty"`
	Why    string `json:"why,omitempty"`
	Args   string `json:"args,omitempty"` // the call runs with these instead
}

// ByClock is the author of the answer to a question that has expired.
const ByClock = "the clock"

// Fallback is model.fallback.
type Fallback struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Error string `json:"error"`
}

// GatePaused is gate.paused: the model throttles all callers, and the agent waits
// without a reservation.
type GatePaused struct {
	Model   string `json:"model"`
	Purpose string `json:"purpose,omitempty"`
	Why     string `json:"why"`
	AfterMS int64  `json:"after_ms,omitempty"` // the delay that the provider asked for
	Refused int    `json:"refused"`            // times since the model last answered
	LeftMS  int64  `json:"left_ms"`            // of the agent's patience
}

// ToolRetry is tool.retry: an attempt failed transiently, the call runs again.
type ToolRetry struct {
	Call    string      `json:"call"`
	Tool    string      `json:"tool"`
	Class   model.Class `json:"class"`
	Attempt int         `json:"attempt"`        // that failed
	Text    string      `json:"text,omitempty"` // of its failure
	TookMS  int64       `json:"took_ms"`
	WaitMS  int64       `json:"wait_ms"` // until the next attempt
	Left    int         `json:"left"`    // attempts that may follow
}

// SkillLoaded is skill.loaded: the agent has read the text of a skill.
type SkillLoaded struct {
	Call  string `json:"call"`
	Skill string `json:"skill"`
	Bytes int    `json:"bytes"`
}
