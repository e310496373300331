// Package eval runs cases against the real runtime: a goal, a scripted model,
// mocked tools, and the expected outcome. The loop has no special path for evals:
// a case is a run of actors on logs in memory, observed through its events, and
// replayed from those logs afterwards.
//
// A case file has the form of a fixture: case_id, goal, mocked_tools, expected.
// The other keys are for cases that need more. docs/evals.md documents them all.
package eval

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

// Case is one trial: its inputs and its expected outcome.
type Case struct {
	ID    string `yaml:"case_id"`
	About string `yaml:"about"` // which behaviour it shows, for people
	Goal  string `yaml:"goal"`
	// MockedTools are the answers by tool, in order. Tool names may contain any characters;
	// those that a provider does not accept in a name become underscores.
	MockedTools map[string][]MockAnswer `yaml:"mocked_tools"`
	// Tools declares tools beyond their answers.
	Tools map[string]MockTool `yaml:"tools"`
	// Model holds the scripted replies: a script, or a list that is its default.
	// Without it the model calls each mocked tool once for each answer, and ends.
	Model yaml.Node `yaml:"model"`
	// Models are the scripts of other routes: fallbacks, summaries.
	Models  map[string]yaml.Node `yaml:"models"`
	Agents  []Agent              `yaml:"agents"`
	Allowed []string             `yaml:"allowed_tools"`   // of the root; none: all
	Denied  []string             `yaml:"forbidden_tools"` // of the root and all below it
	Limits  Limits               `yaml:"limits"`
	// LoopOptions override those of a new run, in which tools are not retried.
	LoopOptions yaml.Node      `yaml:"loop_options"`
	Hooks       []ScriptedHook `yaml:"hooks"`
	Policy      yaml.Node      `yaml:"policy"` // the stop-veto policy
	// Window and Price are those of the scripted model.
	Window int64 `yaml:"window"`
	Price  Price `yaml:"price"`
	// FirstToolTurn ends the run after the first turn that called tools, by the veto that any
	// policy may have: a cheap check of which tools a model reaches for.
	FirstToolTurn bool           `yaml:"stop_after_first_tool_turn"`
	Interventions []Intervention `yaml:"during"`
	TimeLimit     Duration       `yaml:"within"` // most that the trial may take; 0: CaseTimeMax
	Expected      Expected       `yaml:"expected"`
	Path          string         `yaml:"-"` // file:line

	script      *script.Script
	scripts     map[string]*script.Script
	loopOptions spec.LoopOptions
	policy      supervisor.Policy
}

// Duration is a time written as "50ms".
type Duration = script.Duration

// MockAnswer is one result of a mocked tool. Keys other than those named here are the JSON
// result of a successful call.
type MockAnswer struct {
	Status MockStatus     `yaml:"status"`
	Reason string         `yaml:"reason"` // of an error
	Result any            `yaml:"result"` // text, or anything else as JSON
	Size   int            `yaml:"size"`   // bytes, padded with meaningless words
	Delay  Duration       `yaml:"delay"`
	Fields map[string]any `yaml:",inline"`
}

// MockStatus says how a mocked call ends.
type MockStatus string

// Statuses.
const (
	OK        MockStatus = "ok"
	Error     MockStatus = "error"           // a failure that stays
	Retryable MockStatus = "retryable_error" // one that may pass: a time-out, a 503
	Malformed MockStatus = "malformed"       // an invalid result: not text, or not fit for output_schema
	Hangs     MockStatus = "hangs"           // until the loop gives up
	Crashes   MockStatus = "crashes"
)

// MockTool describes a mocked tool, apart from its answers.
type MockTool struct {
	Description  string      `yaml:"description"`
	Class        model.Class `yaml:"class"`  // default read
	Schema       yaml.Node   `yaml:"schema"` // of the arguments; default any object
	OutputSchema yaml.Node   `yaml:"output_schema"`
	Timeout      Duration    `yaml:"timeout"`
	Repeat       bool        `yaml:"repeat"` // its last answer repeats; otherwise one more call fails the case
	Poll         bool        `yaml:"poll"`   // it is meant to be called repeatedly

	schema, output string
}

// Agent is a kind of agent that the run may have; the first is the root.
type Agent struct {
	Name        string    `yaml:"name"`
	Description string    `yaml:"description"`
	System      string    `yaml:"system"`
	Allowed     []string  `yaml:"allowed_tools"`
	Denied      []string  `yaml:"forbidden_tools"`
	Delegates   []string  `yaml:"delegates"`
	Model       string    `yaml:"model"` // a route of models, or builtin/chain, builtin/consolidate, builtin/delegate
	Limits      Limits    `yaml:"limits"`
	LoopOptions yaml.Node `yaml:"loop_options"`

	loopOptions spec.LoopOptions
}

// Limits are named like the flags, if there is one. Those of the run are allowed only on
// the case, not on an agent.
type Limits struct {
	Turns      int      `yaml:"max_turns"`
	ToolCalls  int64    `yaml:"max_tool_calls"`
	Tokens     int64    `yaml:"max_tokens"`
	USD        float64  `yaml:"max_budget_usd"`
	Depth      int      `yaml:"max_depth"`
	Children   int      `yaml:"max_children"`
	Agents     int      `yaml:"max_agents"`
	ReplyCalls int      `yaml:"reply_calls"`
	Parallel   int      `yaml:"parallel"`
	Malformed  int      `yaml:"malformed"`
	Cuts       int      `yaml:"cuts"`
	Retries    int      `yaml:"retries"`
	Output     int64    `yaml:"output_tokens"`
	Closing    int64    `yaml:"closing_tokens"`
	Soft       Duration `yaml:"soft"`
	Hard       Duration `yaml:"hard"`
}

// Price of the scripted model in US dollars for a million tokens.
type Price struct {
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
}

// ScriptedHook is a hook with scripted answers. After the last answer it passes.
type ScriptedHook struct {
	Name    string            `yaml:"name"`
	Point   spec.HookPoint    `yaml:"point"`
	Tools   string            `yaml:"tools"`
	Timeout Duration          `yaml:"timeout"`
	Failing spec.HookDecision `yaml:"failing"`
	Report  bool              `yaml:"report"`
	Of      string            `yaml:"of"` // root, child; "": every agent's
	Answers []HookAnswer      `yaml:"answers"`
}

// HookAnswer is one decision of a hook.
type HookAnswer struct {
	Decision spec.HookDecision `yaml:"decision"`
	Text     string            `yaml:"text"`
	Args     string            `yaml:"args"`     // pre_tool: JSON
	Messages []Message         `yaml:"messages"` // context: sent instead of the prompt in this turn
	Fails    string            `yaml:"fails"`    // it crashes with this message instead
	Delay    Duration          `yaml:"delay"`
}

// Message is a message that a hook sends instead of the prompt.
type Message struct {
	Role model.Role `yaml:"role"`
	Text string     `yaml:"text"`
}

// Intervention is an outside event during the run: it happens after the Nth event of a kind.
// Exactly one of the last fields is set.
type Intervention struct {
	After string `yaml:"after"` // kind of event, or mock.called: a mocked tool has begun
	Of    string `yaml:"of"`    // tool or agent that the event is about; "": any
	Nth   int    `yaml:"nth"`   // from 1, the default

	Cancel string     `yaml:"cancel"` // boundary, now
	Steer  string     `yaml:"steer"`
	Answer *UserReply `yaml:"answer"` // to the question of the agent whose event it is
	// Crash stops the node as a kill does, and starts another on the same logs.
	Crash bool `yaml:"crash"`
}

// UserReply is a user's answer.
type UserReply struct {
	Decision string `yaml:"decision"` // default text
	Text     string `yaml:"text"`
}

// Limits of a trial.
const (
	CaseTimeMax = 30 * time.Second // wall clock
	eventsMax   = 100_000          // of one trial: a case whose script goes on for ever is stopped
	rootName    = "agent"          // of the root where a case names no agents
	routeName   = "script/eval"    // of the case's own script
	runName     = "eval"
	tokensMax   = 1_000_000 // of a case that names no limit
	windowSize  = 200_000   // of a case that names no window
)
