package client

import (
	"encoding/json"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// Description is what was decided about a run when it was opened, and how its
// budget stands. It has the names and the sizes of prompts, not their text.
type Description struct {
	Goal        string            `json:"goal"`
	Caller      string            `json:"caller,omitempty"`
	Trace       string            `json:"trace,omitempty"`
	Workspace   string            `json:"workspace,omitempty"`
	Constraints []string          `json:"constraints"`
	Criteria    []string          `json:"criteria"`
	Writable    []string          `json:"writable"`
	Model       ModelInfo         `json:"model"`
	Root        string            `json:"root"`
	RootTurns   int               `json:"root_turns"`
	Limits      supervisor.Limits `json:"limits"`
	AgentLimits agent.Limits      `json:"agent_limits"`
	Policy      supervisor.Policy `json:"policy"`
	Manners     agent.Manners     `json:"manners"`
	Definitions []DefinitionInfo  `json:"definitions"`
	Tools       []ToolInfo        `json:"tools"`
	Agents      []AgentInfo       `json:"agents"`
	Budget      BudgetInfo        `json:"budget"`
	// Journal is the run journal of the root, as JSON; nil if it kept none.
	Journal json.RawMessage `json:"journal,omitempty"`
}

// ModelInfo is a model route, and why it was chosen.
type ModelInfo struct {
	Name   string       `json:"name"`
	Why    string       `json:"why,omitempty"`
	Window int64        `json:"window,omitempty"`
	Price  budget.Price `json:"price"` // in billionths of a dollar a token
	// Bound says how sure it is that a call is billed for no more than is held for
	// it: exact, documented or none.
	Bound       string   `json:"billing_bound,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Effort      string   `json:"effort,omitempty"`
}

// DefinitionInfo is one kind of agent that the run may have.
type DefinitionInfo struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	PromptBytes int          `json:"prompt_bytes"`
	PromptHash  string       `json:"prompt_sha256"`
	Tools       []string     `json:"tools"` // null: all of its parent's
	Deny        []string     `json:"deny,omitempty"`
	Delegates   []string     `json:"delegates"`       // null: any
	Model       string       `json:"model,omitempty"` // "": the run's
	Limits      agent.Limits `json:"limits"`
	// Manners are its own, over those of the run.
	Manners *agent.Manners `json:"manners,omitempty"`
}

// ToolInfo is one tool of the run.
type ToolInfo struct {
	Name        string      `json:"name"`
	Class       model.Class `json:"class"`
	Description string      `json:"description"`
	Command     string      `json:"command,omitempty"`
}

// AgentInfo is one agent with its rights and its part of the budget.
type AgentInfo struct {
	ID       agent.ID      `json:"id"`
	Name     string        `json:"name"`
	Depth    int           `json:"depth"`
	Tools    []string      `json:"tools"`
	Limit    budget.Limit  `json:"limit"` // its own; 0: only the run's
	Used     budget.Amount `json:"used"`
	Reserved budget.Amount `json:"reserved"`
	Kept     budget.Amount `json:"kept"` // for its closing turn
}

// BudgetInfo is the pool of a run in all its components. A limit of 0 is none.
type BudgetInfo struct {
	Limit    budget.Limit  `json:"limit"`
	Used     budget.Amount `json:"used"` // charged_unknown and overrun included
	Reserved budget.Amount `json:"reserved"`
	Kept     budget.Amount `json:"kept"`
	Unknown  budget.Amount `json:"charged_unknown"`
	Overrun  budget.Amount `json:"overrun"`
	Frozen   bool          `json:"frozen"`
	Waiting  int           `json:"waiting"` // reservations that wait for others to settle
}
