package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// Result is the one result of a run, as `run -o json` prints it.
type Result struct {
	Type         string        `json:"type"` // "result"
	Subtype      string        `json:"subtype"`
	IsError      bool          `json:"is_error"`
	Run          string        `json:"run_id"`
	Conversation string        `json:"conversation_id"`
	Reason       agent.Reason  `json:"stop_reason"`
	Partial      bool          `json:"partial"`
	Text         string        `json:"result"`
	Detail       string        `json:"detail,omitempty"`
	Journal      string        `json:"journal,omitempty"` // the root's, of a run that did not complete
	Turns        int           `json:"num_turns"`
	DurationMS   int64         `json:"duration_ms"`
	CostUSD      float64       `json:"total_cost_usd"`
	CostKnown    bool          `json:"cost_known"`
	ModelMS      int64         `json:"model_ms"` // time that models took, summed over the tree
	ToolMS       int64         `json:"tool_ms"`  // time that tools took, summed over the tree
	Usage        model.Usage   `json:"usage"`
	Budget       BudgetResult  `json:"budget"`
	Agents       []AgentResult `json:"agents"`
	Cancel       *CancelResult `json:"cancel,omitempty"`
}

// BudgetResult is the pool at the end, in tokens.
type BudgetResult struct {
	Limit    int64 `json:"limit"`
	Used     int64 `json:"used"`
	Reserved int64 `json:"reserved"`
	Unknown  int64 `json:"charged_unknown"`
	Overrun  int64 `json:"overrun"`
	Frozen   bool  `json:"frozen,omitempty"`
}

// AgentResult is one agent of the tree.
type AgentResult struct {
	ID      agent.ID     `json:"id"`
	Name    string       `json:"name"`
	Parent  *agent.ID    `json:"parent"`
	Node    string       `json:"node"`
	Pool    string       `json:"pool,omitempty"` // "" is the default one
	Turns   int          `json:"turns"`
	Calls   int          `json:"tool_calls"`
	Tokens  int64        `json:"tokens"`
	CostUSD float64      `json:"cost_usd"`
	Usage   model.Usage  `json:"usage"`
	ModelMS int64        `json:"model_ms"` // known once it has ended
	ToolMS  int64        `json:"tool_ms"`
	Reason  agent.Reason `json:"stop_reason"`
	Phase   string       `json:"phase"` // live, parked, done
	Query   *agent.Park  `json:"query,omitempty"`
}

// Result sums the run up as it stands; it is final once the Phase is Over.
func (s State) Result() Result {
	r := Result{Type: "result", Run: s.Run.Run, Conversation: s.Run.Conversation, Reason: s.Outcome.Reason,
		Partial: s.Outcome.Partial, Text: s.Outcome.Text, Detail: s.Outcome.Detail, Journal: s.Outcome.Journal,
		CostUSD: float64(s.Pool.Spent.Nano) / 1e9, CostKnown: s.Run.Model.Price.Known,
		Budget: BudgetResult{Limit: s.Pool.Limit.Tokens, Used: s.Pool.Spent.Tokens, Reserved: s.Pool.Held.Tokens,
			Unknown: s.Pool.Unknown.Tokens, Overrun: s.Pool.Overrun.Tokens, Frozen: s.Frozen}}
	end := s.Ended
	if end == 0 {
		end = s.Now
	}
	r.DurationMS, r.Cancel = end-s.Began, s.stops()
	s.Members(func(m Member) {
		account := s.Pool.Account(string(m.ID))
		a := AgentResult{ID: m.ID, Name: m.Name, Node: m.Node, Pool: m.Pool, Turns: m.Turns, Calls: m.Calls, Phase: "live",
			Tokens: account.Spent.Tokens, CostUSD: float64(account.Spent.Nano) / 1e9, Reason: m.Outcome.Reason, Query: m.Query,
			Usage: m.Usage, ModelMS: m.ModelMS, ToolMS: m.ToolMS}
		if m.ID != agent.Root {
			parent := m.Parent
			a.Parent = &parent
		}
		switch {
		case m.Done:
			a.Phase = "done"
		case m.Query != nil:
			a.Phase = "parked"
			if s.Phase != Over {
				r.Reason, r.Partial, r.Detail = m.Query.Reason, true, m.Query.Question
			}
		}
		r.Turns += m.Turns
		r.ModelMS, r.ToolMS = r.ModelMS+m.ModelMS, r.ToolMS+m.ToolMS
		r.Usage = r.Usage.Add(m.Usage)
		r.Agents = append(r.Agents, a)
	})
	r.Subtype = Subtype(r.Reason)
	r.IsError = r.Subtype != "success"
	return r
}

// Subtype is the word that scripts read (CONTRACT, table of stop reasons).
func Subtype(r agent.Reason) string {
	switch r {
	case agent.Completed, agent.DiminishingReturns:
		return "success"
	case agent.TokenBudget:
		return "error_max_tokens"
	case agent.CostBudget:
		return "error_max_budget_usd"
	case agent.MaxTurns:
		return "error_max_turns"
	case agent.MaxToolCalls:
		return "error_max_tool_calls"
	case agent.Timeout:
		return "error_timeout"
	case agent.NeedsHuman, agent.ResumeUnsafe, agent.EvidenceMissing:
		return "error_needs_human"
	case agent.ModelError, agent.PromptTooLong, agent.Malformed, agent.MaxOutputTokens:
		return "error_provider"
	case agent.Refused, agent.Guardrail, agent.Vetoed, agent.StopHookPrevented, agent.PolicyBlocked:
		return "error_refused"
	case agent.ByCancel, agent.AbortedStreaming, agent.AbortedTools:
		return "error_cancelled"
	}
	return "error_during_execution"
}
