// Package agent is the agent loop as a value: Step takes a State and an Event
// and returns the next State and the Effects that the world should see. It is
// total and deterministic; it has no clock, goroutine, random number, network
// or logger. Times and token counts come in inside events.
//
// One file holds one family of behaviour: turn.go (assemble, continue, exits),
// recover.go (malformed replies, cut output, failed models), dispatch.go
// (tool calls), cancel.go, stop.go (proposals and vetoes), resume.go.
package agent

import (
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// ID names an agent within its run: "root", or "<parent>-<turn>-<index>".
type ID string

// Root is the first agent of a run.
const Root ID = "root"

// Above are the ancestors of an agent, its parent first, as its id names them.
func (id ID) Above() (list []ID) {
	for {
		i := strings.LastIndexByte(string(id), '-') // "<parent>-<turn>-<index>"
		if i > 0 {
			i = strings.LastIndexByte(string(id[:i]), '-')
		}
		if i <= 0 {
			return list
		}
		id = id[:i]
		list = append(list, id)
	}
}

// Rules is the newest version of Step's behaviour. It is recorded in Submitted;
// a change of behaviour gets a new number and a branch on Task.Rules.
const Rules = 2

// Task is everything an agent's loop needs to know, recorded in its Submitted:
// Step reads the log and nothing else.
type Task struct {
	Rules       int               `msgpack:"v"`
	Run         string            `msgpack:"r"`
	ID          ID                `msgpack:"i"`
	Parent      ID                `msgpack:"p,omitempty"`
	Depth       int               `msgpack:"h,omitempty"`
	Name        string            `msgpack:"n"` // of the definition
	Goal        string            `msgpack:"g"`
	Media       []model.Media     `msgpack:"md,omitempty"` // that come with the goal
	System      string            `msgpack:"s"`
	Model       Model             `msgpack:"m"`
	Tools       []model.ToolSpec  `msgpack:"t,omitempty"` // offered to the model
	Limits      Limits            `msgpack:"l"`
	Caller      string            `msgpack:"c,omitempty"`
	Constraints []string          `msgpack:"k,omitempty"`
	Criteria    []string          `msgpack:"q,omitempty"`
	Trace       string            `msgpack:"w,omitempty"` // W3C traceparent
	Workspace   string            `msgpack:"d,omitempty"`
	Source      string            `msgpack:"b,omitempty"`  // the file that its prompt was read from; "": built in
	Hashes      map[string]string `msgpack:"x,omitempty"`  // versions of what it was begun with, for F4: see drift.go
	Writable    []string          `msgpack:"u,omitempty"`  // paths that may be written without approval
	Commands    []Command         `msgpack:"z,omitempty"`  // tools of an agent file that the shell runs
	Servers     []Server          `msgpack:"ms,omitempty"` // MCP servers that have the others
	Manners     Manners           `msgpack:"a,omitempty"`
	Forbidden   []string          `msgpack:"f,omitempty"` // tools of the run that this agent may not use
}

// Command is a tool that is a command line. Its spec is among Task.Tools.
type Command struct {
	Name string `msgpack:"n" json:"name"`
	Line string `msgpack:"l" json:"command"`
}

// Server is an MCP server whose tools are among Task.Tools. How it is reached is
// in the file alone, with its secrets; the hash says whether it still is the same.
type Server struct {
	Name   string `msgpack:"n" json:"name"`
	Source string `msgpack:"s" json:"source"`
	Hash   string `msgpack:"h" json:"hash"`
	// Own: where the run began, its definition was the operator's. Another node may have
	// other roots, and must not trust it for that.
	Own bool `msgpack:"o,omitempty" json:"own,omitempty"`
}

// Has reports whether a tool is one of the server, by its name.
func (s Server) Has(tool string) bool { return strings.HasPrefix(tool, "mcp__"+s.Name+"__") }

// Model is a model route with what the pool must know of it.
type Model struct {
	Name        string       `msgpack:"n" json:"name"` // "provider/model"
	Window      int64        `msgpack:"w,omitempty" json:"window,omitempty"`
	Price       budget.Price `msgpack:"p,omitempty" json:"price"`
	Temperature *float64     `msgpack:"t,omitempty" json:"temperature,omitempty"`
	Effort      string       `msgpack:"e,omitempty" json:"effort,omitempty"`
	// Output is the most output tokens of one call; 0: not known.
	Output int64 `msgpack:"o,omitempty" json:"output,omitempty"`
	// Frame is the most tokens that its provider adds to a prompt that lists tools.
	Frame int64 `msgpack:"f,omitempty" json:"frame,omitempty"`
}

// Limits of one agent. Zero means the default that WithDefaults gives.
type Limits struct {
	Turns      int   `msgpack:"t,omitempty" json:"turns"`          // model turns; 20 for a root, 80 for a child
	Calls      int   `msgpack:"c,omitempty" json:"tool_calls"`     // tool calls of this agent; 0: only the run's limit
	ReplyCalls int   `msgpack:"r,omitempty" json:"reply_calls"`    // calls run of one reply
	Parallel   int   `msgpack:"p,omitempty" json:"parallel"`       // tools at once
	Children   int   `msgpack:"h,omitempty" json:"children"`       // live children
	Malformed  int   `msgpack:"m,omitempty" json:"malformed"`      // useless replies in a row
	Cuts       int   `msgpack:"u,omitempty" json:"cuts"`           // continuations after a cut output, in a row
	Retries    int   `msgpack:"y,omitempty" json:"retries"`        // attempts after a failed model call, in a row
	Output     int64 `msgpack:"o,omitempty" json:"output_tokens"`  // output tokens a call
	Closing    int64 `msgpack:"l,omitempty" json:"closing_tokens"` // output tokens of a closing turn
	SoftMS     int64 `msgpack:"s,omitempty" json:"soft_ms"`        // wall clock until the closing turn
	HardMS     int64 `msgpack:"d,omitempty" json:"hard_ms"`        // wall clock until the end
	Tokens     int64 `msgpack:"k,omitempty" json:"tokens"`         // own cap within the pool
	Nano       int64 `msgpack:"n,omitempty" json:"nano_usd"`       // own cap in money
}

// Defaults of Limits (CONTRACT: each is also a flag or a setting).
const (
	TurnsRoot      = 20
	TurnsChild     = 80
	ReplyCallsMax  = 64
	ParallelMax    = 4
	ChildrenMax    = 8
	MalformedMax   = 3
	CutsMax        = 3
	RetriesMax     = 3
	OutputDefault  = 4096
	ClosingDefault = 768
	OutputUseful   = 64 // a smaller grant is a closing turn
	SoftDefaultMS  = 15 * 60 * 1000
	HardDefaultMS  = 20 * 60 * 1000
)

// WithDefaults fills what is zero.
func (l Limits) WithDefaults(depth int) Limits {
	turns := TurnsRoot
	if depth > 0 {
		turns = TurnsChild
	}
	fill := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	fill64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	fill(&l.Turns, turns)
	fill(&l.ReplyCalls, ReplyCallsMax)
	fill(&l.Parallel, ParallelMax)
	fill(&l.Children, ChildrenMax)
	fill(&l.Malformed, MalformedMax)
	fill(&l.Cuts, CutsMax)
	fill(&l.Retries, RetriesMax)
	fill64(&l.Output, OutputDefault)
	fill64(&l.Closing, ClosingDefault)
	fill64(&l.SoftMS, SoftDefaultMS)
	fill64(&l.HardMS, HardDefaultMS)
	return l
}

// Reason says why an agent, or a run, ended.
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
	EvidenceMissing    Reason = "evidence_missing"
	PromptTooLong      Reason = "prompt_too_long"
	MaxOutputTokens    Reason = "max_output_tokens"
	Malformed          Reason = "malformed"
	ModelError         Reason = "model_error"
	ToolFailure        Reason = "tool_failure"
	ByCancel           Reason = "canceled"
	AbortedStreaming   Reason = "aborted_streaming"
	AbortedTools       Reason = "aborted_tools"
	ResumeUnsafe       Reason = "resume_unsafe"
	LogDamaged         Reason = "log_damaged"
)

// Reasons lists every stop reason, in the order above.
func Reasons() []Reason {
	return []Reason{Completed, MaxTurns, MaxToolCalls, TokenBudget, CostBudget, DiminishingReturns, Timeout, Vetoed,
		StopHookPrevented, Guardrail, Refused, PolicyBlocked, NeedsHuman, EvidenceMissing, PromptTooLong, MaxOutputTokens,
		Malformed, ModelError, ToolFailure, ByCancel, AbortedStreaming, AbortedTools, ResumeUnsafe, LogDamaged}
}

// Transition says why the loop went on.
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
	// Journal is the agent's run journal, for who takes over what it did not complete.
	Journal string `msgpack:"j,omitempty" json:"journal,omitempty"`
}
