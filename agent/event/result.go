package event

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// Result is the one result of a run, as `run -o json` prints it.
type Result struct {
	Type         string      `json:"type"` // "result"
	Subtype      string      `json:"subtype"`
	IsError      bool        `json:"is_error"`
	Run          string      `json:"run_id"`
	Conversation string      `json:"conversation_id"`
	Reason       spec.Reason `json:"stop_reason"`
	Partial      bool        `json:"partial"`
	Text         string      `json:"result"`
	// HandedTo is the agent that has the conversation, if the root has handed it off.
	HandedTo   *ConversationHolder `json:"handed_to,omitempty"`
	Detail     string              `json:"detail,omitempty"`
	Journal    string              `json:"journal,omitempty"` // the root's, of a run that did not complete
	Turns      int                 `json:"num_turns"`
	DurationMS int64               `json:"duration_ms"`
	CostUSD    float64             `json:"total_cost_usd"`
	CostKnown  bool                `json:"cost_known"`
	// CostEstimated: list prices of models behind a gateway, or charges for agents of other
	// programs, are part of the cost.
	CostEstimated bool          `json:"cost_estimated,omitempty"`
	ModelMS       int64         `json:"model_ms"` // time that models took, summed over the tree
	ToolMS        int64         `json:"tool_ms"`  // time that tools took, summed over the tree
	Usage         model.Usage   `json:"usage"`
	Budget        BudgetResult  `json:"budget"`
	Agents        []AgentResult `json:"agents"`
	// AgentsLeftOut is how many agents a result leaves out because the list would be larger than a message may be.
	AgentsLeftOut int           `json:"agents_left_out,omitempty"`
	Cancel        *CancelResult `json:"cancel,omitempty"`
}

// Ending is the Detail of the result, with the name of the person who has canceled the run, if it is known and the
// cancel has no other reason. The name may be that of an agent, such as root.
func (r Result) Ending() string {
	if r.Detail == CanceledByPerson && r.Cancel != nil && r.Cancel.By != "" {
		return "canceled by user " + r.Cancel.By
	}
	return r.Detail
}

// ConversationHolder is the agent that a conversation was handed off to.
type ConversationHolder struct {
	Agent spec.ID `json:"agent"`
	Name  string  `json:"name"` // of its definition
}

// Spend is what a run has spent so far.
type Spend struct {
	CostUSD       float64      `json:"cost_usd"`
	CostKnown     bool         `json:"cost_known"`
	CostEstimated bool         `json:"cost_estimated,omitempty"` // as that of Result
	Budget        BudgetResult `json:"budget"`
}

// BudgetResult is the pool, in tokens and dollars.
type BudgetResult struct {
	LimitUSD    float64 `json:"limit_usd,omitempty"` // 0: none
	ReservedUSD float64 `json:"reserved_usd,omitempty"`
	Limit       int64   `json:"limit"`
	Used        int64   `json:"used"`
	Reserved    int64   `json:"reserved"`
	Unknown     int64   `json:"charged_unknown"`
	Overrun     int64   `json:"overrun"`
	Frozen      bool    `json:"frozen,omitempty"`
}

// AgentResult is one agent of the tree.
type AgentResult struct {
	ID      spec.ID     `json:"id"`
	Name    string      `json:"name"`
	Parent  *spec.ID    `json:"parent"`
	Node    string      `json:"node"`
	Pool    string      `json:"pool,omitempty"` // "" is the default one
	Turns   int         `json:"turns"`
	Calls   int         `json:"tool_calls"`
	Tokens  int64       `json:"tokens"`
	CostUSD float64     `json:"cost_usd"`
	Usage   model.Usage `json:"usage"`
	ModelMS int64       `json:"model_ms"` // known once it has ended
	ToolMS  int64       `json:"tool_ms"`
	Reason  spec.Reason `json:"stop_reason"`
	Phase   string      `json:"phase"` // live, parked, done
	// Detail is why an agent below the root ended without success, in its own words.
	Detail string `json:"detail,omitempty"`
	// GivenUp: the run ended it without its own end, because no node could activate it.
	GivenUp bool       `json:"given_up,omitempty"`
	Query   *OpenQuery `json:"query,omitempty"`
}

// OpenQuery is a question that waits for a person.
type OpenQuery struct {
	Query    string      `json:"query"`
	Question string      `json:"question"`
	Reason   spec.Reason `json:"reason"`
	Call     string      `json:"call,omitempty"`
	// Digest is the SHA-256 of the call that is asked about, Rule the rule that an answer may add.
	Digest string `json:"digest,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// AskedMS and DueMS are when it was asked and when it expires, in Unix milliseconds; 0: unknown, never.
	AskedMS int64 `json:"asked_ms,omitempty"`
	DueMS   int64 `json:"due_ms,omitempty"`
	// Approvals is how many different people must approve; 0: one. ApprovedBy has.
	Approvals  int    `json:"approvals,omitempty"`
	ApprovedBy string `json:"approved_by,omitempty"`
}

// Subtype is the word that scripts read (CONTRACT, table of stop reasons).
func Subtype(r spec.Reason) string {
	switch r {
	case spec.Completed, spec.DiminishingReturns:
		return "success"
	case spec.TokenBudget:
		return "error_max_tokens"
	case spec.CostBudget:
		return "error_max_budget_usd"
	case spec.MaxTurns:
		return "error_max_turns"
	case spec.MaxToolCalls:
		return "error_max_tool_calls"
	case spec.Timeout:
		return "error_timeout"
	case spec.NeedsHuman, spec.Unanswered, spec.ResumeUnsafe, spec.EvidenceMissing:
		return "error_needs_human"
	case spec.ModelError, spec.PromptTooLong, spec.Malformed, spec.MaxOutputTokens:
		return "error_provider"
	case spec.Refused, spec.Guardrail, spec.Vetoed, spec.StopHookPrevented, spec.PolicyBlocked:
		return "error_refused"
	case spec.ByCancel, spec.AbortedStreaming, spec.AbortedTools:
		return "error_cancelled"
	}
	return "error_during_execution"
}

// CancelResult reports how far a run's cancel has come: how many agents were told to
// stop, which have confirmed their end, which have not yet, and which were given up. Recorded results and the text have
// the older word "orphans" for those that were given up; an orphan is not an agent whose parent has ended.
type CancelResult struct {
	Why     string      `json:"why,omitempty"`
	By      string      `json:"by,omitempty"` // who has canceled, as the request names them
	Now     bool        `json:"now,omitempty"`
	Agents  int         `json:"agents"`  // that were live when the cancel came
	Stopped int         `json:"stopped"` // that have confirmed their end since
	Pending []Straggler `json:"pending"` // that have not confirmed it yet
	Orphans []Straggler `json:"orphans"` // that were given up and have not reported since, also after the end of the run
	TookMS  int64       `json:"took_ms"` // until now, or until the last of them
	Text    string      `json:"text"`    // 17 of 17 stopped, 0 orphans
}

// Straggler is an agent that has not confirmed its end, and the node that it last
// reported from.
type Straggler struct {
	ID   spec.ID `json:"id"`
	Node string  `json:"node,omitempty"`
}
