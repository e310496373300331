package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// Description is what was decided about a run when it was opened, and the state of its
// budget. It holds the names and the sizes of prompts, not their text.
type Description struct {
	Goal        string            `json:"goal"`
	Caller      string            `json:"caller,omitempty"`
	Priority    string            `json:"priority"`
	Trace       string            `json:"trace,omitempty"` // W3C traceparent with which it was started
	TraceID     string            `json:"trace_id"`        // of its spans
	Workspace   string            `json:"workspace,omitempty"`
	Fork        string            `json:"fork,omitempty"` // the point of another run that it began at, RUN@AGENT:POINT
	Constraints []string          `json:"constraints"`
	Criteria    []string          `json:"criteria"`
	FailIf      []string          `json:"failure_conditions"`
	Writable    []string          `json:"writable"`
	Model       ModelInfo         `json:"model"`
	Root        string            `json:"root"`
	RootTurns   int               `json:"root_turns"`
	Limits      spec.RunLimits    `json:"limits"`
	AgentLimits spec.Limits       `json:"agent_limits"`
	ParkMS      int64             `json:"park_timeout_ms,omitempty"` // how long it may wait for people alone; 0: for ever
	Policy      supervisor.Policy `json:"policy"`
	PolicySet   *PolicyOrigin     `json:"policy_set,omitempty"` // nil: the policy is that of the request
	LoopOptions spec.LoopOptions  `json:"loop_options"`
	Definitions []DefinitionInfo  `json:"definitions"`
	Tools       []ToolInfo        `json:"tools"`
	Agents      []AgentInfo       `json:"agents"`
	// AgentsLeftOut is how many agents the list leaves out because it would be larger than a message may be.
	AgentsLeftOut int        `json:"agents_left_out,omitempty"`
	Budget        BudgetInfo `json:"budget"`
	// Backlog counts the tasks of the shared backlog by their state; nil if there are none.
	Backlog map[string]int `json:"backlog,omitempty"`
	// Journal is the run journal of the root agent, as JSON; nil if it kept none.
	Journal json.RawMessage `json:"journal,omitempty"`
}

// PolicyOrigin says who replaced the policy of a run last, and when.
type PolicyOrigin struct {
	By string `json:"by,omitempty"`
	At string `json:"at"` // RFC 3339
}

// RunPolicy is what `policy show -o json` prints: the rules in force, and who set them.
type RunPolicy struct {
	Run     string            `json:"run_id"`
	State   RunState          `json:"state"`
	Version int               `json:"version"`
	Set     *PolicyOrigin     `json:"set,omitempty"` // nil: the policy came with the request
	Rules   []supervisor.Rule `json:"rules"`
}

// Policy is the policy of a run that was read by Describe.
func (i RunInfo) Policy() (RunPolicy, error) {
	d := i.Description
	if d == nil {
		return RunPolicy{}, fmt.Errorf("%w: %s", ErrNoDescription, i.RunID)
	}
	p := RunPolicy{Run: i.RunID, State: i.State, Version: d.Policy.Version, Set: d.PolicySet, Rules: d.Policy.Rules}
	if p.Rules == nil {
		p.Rules = []supervisor.Rule{}
	}
	return p, nil
}

// ModelInfo is a model route, and why it was chosen.
type ModelInfo struct {
	Name   string       `json:"name"`
	Why    string       `json:"why,omitempty"`
	Window int64        `json:"window,omitempty"`
	Price  budget.Price `json:"price"` // in billionths of a dollar a token
	// Bound is how firmly the amount reserved for a call limits what it is billed: exact,
	// documented or none.
	Bound       string   `json:"billing_bound,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Effort      string   `json:"effort,omitempty"`
}

// DefinitionInfo is one kind of agent that the run may have.
type DefinitionInfo struct {
	Name        string      `json:"name"`
	Source      string      `json:"source,omitempty"` // the file that defines it; "": it is built in
	Description string      `json:"description"`
	PromptBytes int         `json:"prompt_bytes"`
	PromptHash  string      `json:"prompt_sha256"`
	Tools       []string    `json:"tools"` // null: all of its parent's
	Deny        []string    `json:"deny,omitempty"`
	Delegates   []string    `json:"delegates"` // null: any
	Handoffs    []string    `json:"handoffs,omitempty"`
	Model       string      `json:"model,omitempty"` // "": the run's
	Limits      spec.Limits `json:"limits"`
	// Constraints, Criteria and FailIf add to those of the run.
	Constraints []string `json:"constraints,omitempty"`
	Criteria    []string `json:"criteria,omitempty"`
	FailIf      []string `json:"failure_conditions,omitempty"`
	// LoopOptions are the definition's own; they override those of the run.
	LoopOptions *spec.LoopOptions `json:"loop_options,omitempty"`
}

// ToolInfo is one tool of the run.
type ToolInfo struct {
	Name        string      `json:"name"`
	Class       model.Class `json:"class"`
	Description string      `json:"description"`
	Command     string      `json:"command,omitempty"`
}

// AgentInfo is one agent with its permissions and its part of the budget.
type AgentInfo struct {
	ID       spec.ID       `json:"id"`
	Name     string        `json:"name"`
	Depth    int           `json:"depth"`
	Tools    []string      `json:"tools"`  // that it is offered
	Rights   []string      `json:"rights"` // that it may also pass on to its children
	Limit    budget.Limit  `json:"limit"`  // its own; 0: only the run's
	Used     budget.Amount `json:"used"`
	Reserved budget.Amount `json:"reserved"`
	Kept     budget.Amount `json:"kept"`  // reserved for its closing turn
	Share    budget.Amount `json:"share"` // carved for it from the run's budget
	// Subtree is the limit of the agent and the agents below it; nil: they have none of their own.
	Subtree *event.SubtreeBudget `json:"subtree,omitempty"`
}

// BudgetInfo is the budget pool of a run in all its components. A limit of 0 is none.
type BudgetInfo struct {
	Limit    budget.Limit  `json:"limit"`
	Used     budget.Amount `json:"used"` // charged_unknown and overrun included
	Reserved budget.Amount `json:"reserved"`
	Kept     budget.Amount `json:"kept"`
	Carved   budget.Amount `json:"carved"` // left of the agents' shares
	Unknown  budget.Amount `json:"charged_unknown"`
	Overrun  budget.Amount `json:"overrun"`
	Frozen   bool          `json:"frozen"`
	Waiting  int           `json:"waiting"` // reservations that wait for others to settle
	// Paused counts the reservations that wait because the subtree of their agent is frozen.
	Paused int `json:"paused,omitempty"`
}

// RunBudget is what `budget -o json` prints: the limits of a run, and what it and its agents have
// used.
type RunBudget struct {
	Run    string         `json:"run_id"`
	State  RunState       `json:"state"`
	Budget BudgetInfo     `json:"budget"`
	Limits spec.RunLimits `json:"limits"`
	Agents []AgentInfo    `json:"agents"`
	// AgentsLeftOut is that of the description.
	AgentsLeftOut int `json:"agents_left_out,omitempty"`
}

// ErrNoDescription says that a run has no log that can describe it, or none yet.
var ErrNoDescription = errors.New("client: the log of the run is missing, or not written yet")

// Budget is the budget of a run that was read by Describe.
func (i RunInfo) Budget() (RunBudget, error) {
	d := i.Description
	if d == nil {
		return RunBudget{}, fmt.Errorf("%w: %s", ErrNoDescription, i.RunID)
	}
	return RunBudget{Run: i.RunID, State: i.State, Budget: d.Budget, Limits: d.Limits, Agents: d.Agents, AgentsLeftOut: d.AgentsLeftOut}, nil
}

// LiveAgent is an agent that has not ended.
type LiveAgent struct {
	ID   string `json:"id"`
	Node string `json:"node,omitempty"`
}
