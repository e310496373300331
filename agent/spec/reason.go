package spec

// Reason is why an agent, or a run, ended.
type Reason string

// The stop reasons. Each is also an event's word, a metric's label and an exit code.
const (
	Completed          Reason = "completed"
	MaxTurns           Reason = "max_turns"
	MaxToolCalls       Reason = "max_tool_calls"
	TokenBudget        Reason = "token_budget"
	CostBudget         Reason = "cost_budget"
	DiminishingReturns Reason = "diminishing_returns"
	Timeout            Reason = "timeout"
	Vetoed             Reason = "vetoed"
	StopHookPrevented  Reason = "stop_hook_prevented"
	Guardrail          Reason = "guardrail"
	Refused            Reason = "refused"
	PolicyBlocked      Reason = "policy_blocked"
	NeedsHuman         Reason = "needs_human"
	Unanswered         Reason = "unanswered"
	EvidenceMissing    Reason = "evidence_missing"
	PromptTooLong      Reason = "prompt_too_long"
	MaxOutputTokens    Reason = "max_output_tokens"
	Malformed          Reason = "malformed"
	ModelError         Reason = "model_error"
	ToolFailure        Reason = "tool_failure"
	Failed             Reason = "failed"
	ByCancel           Reason = "canceled"
	AbortedStreaming   Reason = "aborted_streaming"
	AbortedTools       Reason = "aborted_tools"
	ResumeUnsafe       Reason = "resume_unsafe"
	LogDamaged         Reason = "log_damaged"
)

// Reasons lists every stop reason, in the order above.
func Reasons() []Reason {
	return []Reason{Completed, MaxTurns, MaxToolCalls, TokenBudget, CostBudget, DiminishingReturns, Timeout, Vetoed,
		StopHookPrevented, Guardrail, Refused, PolicyBlocked, NeedsHuman, Unanswered, EvidenceMissing, PromptTooLong, MaxOutputTokens,
		Malformed, ModelError, ToolFailure, Failed, ByCancel, AbortedStreaming, AbortedTools, ResumeUnsafe, LogDamaged}
}

// Transition is why the loop continued.
type Transition string

// The transitions. Each is also an event's word.
const (
	NextTurn          Transition = "next_turn"
	OutputRecovery    Transition = "max_output_tokens_recovery"
	StopHookBlocking  Transition = "stop_hook_blocking"
	ReactiveRetry     Transition = "reactive_compact_retry"
	Compacted         Transition = "compacted"
	DeepPruned        Transition = "deep_pruned"
	MalformedRecovery Transition = "malformed_recovery"
	CriteriaUnmet     Transition = "criteria_unmet"
	BudgetNudge       Transition = "budget_nudge"
	LoopNudge         Transition = "loop_nudge"
	AskHumanForced    Transition = "ask_human_forced"
	ModelRetry        Transition = "model_retry"
	ModelFallback     Transition = "model_fallback"
	Steering          Transition = "steered"
	ApprovalResolved  Transition = "approval_resolved"
	StopVeto          Transition = "stop_vetoed"
	SoftLimit         Transition = "limit_soft"
	ClosingTurn       Transition = "closing"
	Resumption        Transition = "resumed"
)

// Transitions lists every transition, in the order above.
func Transitions() []Transition {
	return []Transition{NextTurn, OutputRecovery, StopHookBlocking, ReactiveRetry, Compacted, DeepPruned, MalformedRecovery,
		CriteriaUnmet, BudgetNudge, LoopNudge, AskHumanForced, ModelRetry, ModelFallback, Steering, ApprovalResolved, StopVeto, SoftLimit,
		ClosingTurn, Resumption}
}

// Outcome is how an agent ended. Partial text is never an answer.
type Outcome struct {
	Reason  Reason `msgpack:"r" json:"stop_reason"`
	Text    string `msgpack:"t,omitempty" json:"text"`
	Partial bool   `msgpack:"p,omitempty" json:"partial"`
	Detail  string `msgpack:"d,omitempty" json:"detail,omitempty"`
	// Journal is the agent's run journal, for an agent or a person that takes over the unfinished work.
	Journal string `msgpack:"j,omitempty" json:"journal,omitempty"`
	// Tainted is the text from outside that the agent had read; nil: none.
	Tainted *Taint `msgpack:"ta,omitempty" json:"tainted,omitempty"`
}

// NobodyAsked says in the result of a denied call that a person might have allowed it.
const NobodyAsked = "nobody can be asked"

// NoDirectory says in the detail of an outcome that the tools of a directory were missing.
const NoDirectory = "it has no directory"
