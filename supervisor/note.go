package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// Data of the supervisor's notes.
type (
	// RunStarted is run.started.
	RunStarted struct {
		Goal   string `json:"goal,omitempty"`
		Root   string `json:"root"`
		Model  string `json:"model"`
		Limits Limits `json:"limits"`
		Caller string `json:"caller,omitempty"`
		Trace  string `json:"trace,omitempty"`
		Policy int    `json:"policy_version"`
		Past   *Past  `json:"past,omitempty"` // the history that it begins with
	}
	// AgentSpawned is agent.spawned.
	AgentSpawned struct {
		Agent  agent.ID `json:"id"`
		Name   string   `json:"name"`
		Parent agent.ID `json:"parent,omitempty"`
		Depth  int      `json:"depth"`
	}
	// BudgetNote is budget.reserved, budget.settled, budget.denied, budget.exhausted,
	// budget.changed and budget.overrun.
	BudgetNote struct {
		Agent    agent.ID     `json:"id,omitempty"`
		Lease    int          `json:"lease,omitempty"`
		Limit    budget.Limit `json:"limit"`
		Used     int64        `json:"used"`
		Reserved int64        `json:"reserved"`
		Kept     int64        `json:"kept"`
		Unknown  int64        `json:"charged_unknown"`
		Overrun  int64        `json:"overrun"`
		Why      agent.Reason `json:"why,omitempty"`
	}
	// PolicyApplied is policy.applied.
	PolicyApplied struct {
		Version int `json:"version"`
		Rules   int `json:"rules"`
	}
)

// Notes tells what a step did: a pure function, like agent.Notes.
func Notes(before State, e Event, after State, effects []Effect) []agent.Note {
	var list []agent.Note
	add := func(kind string, data any) { list = append(list, agent.Note{Kind: kind, Data: data}) }
	money := func(kind string, id agent.ID, lease int, why agent.Reason) {
		p := after.Pool
		add(kind, BudgetNote{Agent: id, Lease: lease, Limit: p.Limit, Used: p.Spent.Tokens, Reserved: p.Held.Tokens,
			Kept: p.Kept.Tokens, Unknown: p.Unknown.Tokens, Overrun: p.Overrun.Tokens, Why: why})
	}
	if before.Phase == "" && after.Phase != "" && after.Run.Run != "" {
		r := after.Run
		add("run.started", RunStarted{Goal: r.Goal, Root: r.Root, Model: r.Model.Name, Limits: r.Limits, Caller: r.Caller,
			Trace: r.Trace, Policy: r.Policy.Version, Past: r.Past})
	}
	switch f := e.Fact.(type) {
	case agent.Settle:
		if before.Pool != after.Pool {
			money("budget.settled", e.From, f.Lease, "")
		}
		if over := after.Pool.Overrun; over != before.Pool.Overrun {
			money("budget.overrun", e.From, f.Lease, "")
		}
	case PolicySet:
		add("policy.applied", PolicyApplied{f.Policy.Version, len(f.Policy.Rules)})
	case LimitSet:
		money("budget.changed", "", 0, "")
	case GivenUp:
		if after.Live < before.Live {
			add("warning.raised", agent.Warned{What: "given up: " + string(f.Agent), Why: f.Why, Now: true, Live: after.Live})
		}
	case agent.Canceled:
		if after.Cancel != before.Cancel {
			add("warning.raised", agent.Warned{What: "cancel", Why: f.Why, Now: f.Now, Live: after.Live})
		}
	}
	for _, fx := range effects {
		tell, ok := fx.(Tell)
		if !ok {
			continue
		}
		switch f := tell.Fact.(type) {
		case agent.Submitted:
			add("agent.spawned", AgentSpawned{Agent: f.Task.ID, Name: f.Task.Name, Parent: f.Task.Parent, Depth: f.Task.Depth})
		case agent.Granted:
			money("budget.reserved", tell.To, f.Lease, "")
			if f.Closing && f.Why != "" {
				money("budget.exhausted", tell.To, f.Lease, f.Why)
			}
		case agent.Denied:
			money("budget.denied", tell.To, f.Lease, f.Why)
		}
	}
	if before.Phase != Over && after.Phase == Over {
		add("run.finished", after.Result())
	}
	return list
}

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
	Turns        int           `json:"num_turns"`
	DurationMS   int64         `json:"duration_ms"`
	CostUSD      float64       `json:"total_cost_usd"`
	CostKnown    bool          `json:"cost_known"`
	Usage        model.Usage   `json:"usage"`
	Budget       BudgetResult  `json:"budget"`
	Agents       []AgentResult `json:"agents"`
}

// BudgetResult is the pool at the end, in tokens.
type BudgetResult struct {
	Limit    int64 `json:"limit"`
	Used     int64 `json:"used"`
	Reserved int64 `json:"reserved"`
	Unknown  int64 `json:"charged_unknown"`
	Overrun  int64 `json:"overrun"`
}

// AgentResult is one agent of the tree.
type AgentResult struct {
	ID      agent.ID     `json:"id"`
	Name    string       `json:"name"`
	Parent  *agent.ID    `json:"parent"`
	Node    string       `json:"node"`
	Turns   int          `json:"turns"`
	Calls   int          `json:"tool_calls"`
	Tokens  int64        `json:"tokens"`
	CostUSD float64      `json:"cost_usd"`
	Reason  agent.Reason `json:"stop_reason"`
	Phase   string       `json:"phase"` // live, parked, done
	Query   *agent.Park  `json:"query,omitempty"`
}

// Result sums the run up as it stands; it is final once the Phase is Over.
func (s State) Result() Result {
	r := Result{Type: "result", Run: s.Run.Run, Conversation: s.Run.Conversation, Reason: s.Outcome.Reason,
		Partial: s.Outcome.Partial, Text: s.Outcome.Text, Detail: s.Outcome.Detail,
		CostUSD: float64(s.Pool.Spent.Nano) / 1e9, CostKnown: s.Run.Model.Price.Known,
		Budget: BudgetResult{Limit: s.Pool.Limit.Tokens, Used: s.Pool.Spent.Tokens, Reserved: s.Pool.Held.Tokens,
			Unknown: s.Pool.Unknown.Tokens, Overrun: s.Pool.Overrun.Tokens}}
	end := s.Ended
	if end == 0 {
		end = s.Now
	}
	r.DurationMS = end - s.Began
	s.Members(func(m Member) {
		account := s.Pool.Account(string(m.ID))
		a := AgentResult{ID: m.ID, Name: m.Name, Node: m.Node, Turns: m.Turns, Calls: m.Calls, Phase: "live",
			Tokens: account.Spent.Tokens, CostUSD: float64(account.Spent.Nano) / 1e9, Reason: m.Outcome.Reason, Query: m.Query}
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
