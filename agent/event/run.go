package event

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// RunStarted is run.started.
type RunStarted struct {
	Goal   string              `json:"goal,omitempty"`
	Root   string              `json:"root"`
	Model  string              `json:"model"`
	Limits spec.RunLimits      `json:"limits"`
	Caller string              `json:"caller,omitempty"`
	Trace  string              `json:"trace,omitempty"`
	Policy int                 `json:"policy_version"`
	Past   *spec.HistoryOrigin `json:"past,omitempty"` // the history that it begins with
}

// AgentSpawned is agent.spawned.
type AgentSpawned struct {
	Agent  spec.ID `json:"id"`
	Name   string  `json:"name"`
	Parent spec.ID `json:"parent,omitempty"`
	Depth  int     `json:"depth"`
	Pool   string  `json:"pool,omitempty"` // "" is the default one
}

// BudgetChanged is budget.reserved, budget.settled, budget.denied, budget.exhausted,
// budget.changed and budget.overrun.
type BudgetChanged struct {
	Agent       spec.ID      `json:"id,omitempty"`
	Reservation int          `json:"reservation,omitempty"`
	Limit       budget.Limit `json:"limit"`
	Used        int64        `json:"used"`
	Reserved    int64        `json:"reserved"`
	Ahead       int64        `json:"ahead,omitempty"` // part of Reserved: held for attempts that begin without a reservation of their own
	Kept        int64        `json:"kept"`
	Carved      int64        `json:"carved,omitempty"` // left of shares: free only for the agents that have them and those below
	Unknown     int64        `json:"charged_unknown"`
	Overrun     int64        `json:"overrun"`
	UsedUSD     float64      `json:"used_usd"`
	ReservedUSD float64      `json:"reserved_usd"`
	// Estimated: list prices of models behind a gateway are part of the figures in dollars.
	Estimated bool         `json:"estimated,omitempty"`
	Frozen    bool         `json:"frozen,omitempty"`
	Why       spec.Reason  `json:"why,omitempty"`
	Short     *BudgetShort `json:"short,omitempty"` // of budget.exhausted and budget.denied
	// Policy is the rule that ends the agent.
	Policy *PolicyVerdict `json:"policy,omitempty"`
	By     string         `json:"by,omitempty"` // who changed the limits
	// Subtree is the limit of Agent and the agents below it, which was changed.
	Subtree *SubtreeBudget `json:"subtree,omitempty"`
}

// SubtreeBudget is the limit of an agent and those below it, and what they use of it.
type SubtreeBudget struct {
	Limit    budget.Limit  `json:"limit"`
	Used     budget.Amount `json:"used"` // with the amounts kept for closing turns
	Reserved budget.Amount `json:"reserved"`
	Frozen   bool          `json:"frozen,omitempty"`
}

// BudgetShort says which limit does not cover an attempt, and by how much. The figures are tokens, billionths of a
// dollar, or tool calls.
type BudgetShort struct {
	Of    string `json:"of"`    // tokens, nano_usd, tool_calls
	Whose string `json:"whose"` // run, agent, subtree
	// Subtree is the agent whose subtree has the limit.
	Subtree spec.ID `json:"subtree,omitempty"`
	Limit   int64   `json:"limit"`
	Used    int64   `json:"used"`
	Free    int64   `json:"free"` // what reservations of other agents, closing turns and shares leave
	Need    int64   `json:"need"` // the least that the attempt, and the closing turn after it, can cost at most
	// Carved is what shares hold for other agents; it is no part of Free.
	Carved int64 `json:"carved,omitempty"`
}

// Words of BudgetShort.
const (
	ShortTokens = "tokens"
	ShortUSD    = "nano_usd"
	ShortCalls  = "tool_calls"
	OfRun       = "run"
	OfAgent     = "agent"
	OfSubtree   = "subtree"
)

// PermissionsChanged is permissions.changed: an operator has taken rights from an agent and those below it.
type PermissionsChanged struct {
	Agent spec.ID             `json:"id"`
	Mode  spec.PermissionMode `json:"mode,omitempty"` // the stricter one
	Ask   []string            `json:"ask,omitempty"`
	Deny  []string            `json:"deny,omitempty"`
	// Agents is how many live agents it reaches. Those that begin below later have it, too.
	Agents int    `json:"agents"`
	By     string `json:"by,omitempty"` // who set it
}

// PolicyApplied is policy.applied.
type PolicyApplied struct {
	Version int    `json:"version"`
	Rules   int    `json:"rules"`
	By      string `json:"by,omitempty"` // who set it
}
