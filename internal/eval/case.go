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
	About string `yaml:"about,omitempty"` // which behaviour it shows, for people
	Goal  string `yaml:"goal"`
	// MockedTools are the answers by tool, in order. Tool names may contain any characters;
	// those that a provider does not accept in a name become underscores.
	MockedTools map[string][]MockAnswer `yaml:"mocked_tools,omitempty"`
	// Tools declares tools beyond their answers.
	Tools map[string]MockTool `yaml:"tools,omitempty"`
	// Model holds the scripted replies: a script, or a list that is its default.
	// Without it the model calls each mocked tool once for each answer, and ends.
	Model yaml.Node `yaml:"model,omitempty"`
	// Models are the scripts of other routes: fallbacks, summaries.
	Models  map[string]yaml.Node `yaml:"models,omitempty"`
	Agents  []Agent              `yaml:"agents,omitempty"`
	Allowed []string             `yaml:"allowed_tools,omitempty"`   // of the root; none: all
	Denied  []string             `yaml:"forbidden_tools,omitempty"` // of the root and all below it
	Limits  Limits               `yaml:"limits,omitempty"`
	// LoopOptions override those of a new run, in which tools are not retried.
	LoopOptions yaml.Node      `yaml:"loop_options,omitempty"`
	Hooks       []ScriptedHook `yaml:"hooks,omitempty"`
	Policy      yaml.Node      `yaml:"policy,omitempty"` // the stop-veto policy
	// Window and Price are those of the scripted model.
	Window int64 `yaml:"window,omitempty"`
	Price  Price `yaml:"price,omitempty"`
	// FirstToolTurn ends the run after the first turn that called tools, by the veto that any policy may have: a
	// cheap check of the tools that a model chooses.
	FirstToolTurn bool           `yaml:"stop_after_first_tool_turn,omitempty"`
	Interventions []Intervention `yaml:"during,omitempty"`
	TimeLimit     Duration       `yaml:"within,omitempty"` // most that the trial may take; 0: CaseTimeMax
	Expected      Expected       `yaml:"expected"`
	// Opened is the first entry of a recorded run, by the JSON names of supervisor.Opened. It takes the place
	// of agents, limits, loop_options, hooks, policy, window and price.
	Opened yaml.Node `yaml:"run,omitempty"`
	// HookAnswers are what the hooks of such a run answered.
	HookAnswers []RecordedHook `yaml:"hook_answers,omitempty"`
	// Recorded is how such a run ended: a case that fails says whether it fails as the run did.
	Recorded *Expected `yaml:"recorded,omitempty"`
	Path     string    `yaml:"-"` // file:line

	opened      *supervisor.Opened // of Opened
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
	Status MockStatus `yaml:"status,omitempty"`
	Reason string     `yaml:"reason,omitempty"` // of an error
	Result any        `yaml:"result,omitempty"` // text, or anything else as JSON
	Size   int        `yaml:"size,omitempty"`   // bytes, padded with meaningless words
	Delay  Duration   `yaml:"delay,omitempty"`
	// Answers names the one call that it answers, as AGENT/CALL; "": the next call.
	Answers string         `yaml:"answers_call,omitempty"`
	Fields  map[string]any `yaml:",inline"`
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
	Description  string      `yaml:"description,omitempty"`
	Class        model.Class `yaml:"class,omitempty"`  // default read
	Schema       yaml.Node   `yaml:"schema,omitempty"` // of the arguments; default any object
	OutputSchema yaml.Node   `yaml:"output_schema,omitempty"`
	Timeout      Duration    `yaml:"timeout,omitempty"`
	Repeat       bool        `yaml:"repeat,omitempty"` // its last answer repeats; otherwise one more call fails the case
	Poll         bool        `yaml:"poll,omitempty"`   // it is meant to be called repeatedly

	schema, output string
}

// Agent is a kind of agent that the run may have; the first is the root.
type Agent struct {
	Name        string    `yaml:"name,omitempty"`
	Description string    `yaml:"description,omitempty"`
	System      string    `yaml:"system,omitempty"`
	Allowed     []string  `yaml:"allowed_tools,omitempty"`
	Denied      []string  `yaml:"forbidden_tools,omitempty"`
	Delegates   []string  `yaml:"delegates,omitempty"`
	Handoffs    []string  `yaml:"handoffs,omitempty"`
	Model       string    `yaml:"model,omitempty"` // a route of models, or builtin/chain, builtin/consolidate, builtin/delegate
	Limits      Limits    `yaml:"limits,omitempty"`
	LoopOptions yaml.Node `yaml:"loop_options,omitempty"`

	loopOptions spec.LoopOptions
}

// Limits are named like the flags, if there is one. Those of the run are allowed only on
// the case, not on an agent.
type Limits struct {
	Turns      int      `yaml:"max_turns,omitempty"`
	ToolCalls  int64    `yaml:"max_tool_calls,omitempty"`
	Tokens     int64    `yaml:"max_tokens,omitempty"`
	USD        float64  `yaml:"max_budget_usd,omitempty"`
	Depth      int      `yaml:"max_depth,omitempty"`
	Children   int      `yaml:"max_children,omitempty"`
	Agents     int      `yaml:"max_agents,omitempty"`
	ReplyCalls int      `yaml:"reply_calls,omitempty"`
	Parallel   int      `yaml:"parallel,omitempty"`
	Malformed  int      `yaml:"malformed,omitempty"`
	Cuts       int      `yaml:"cuts,omitempty"`
	Retries    int      `yaml:"retries,omitempty"`
	Output     int64    `yaml:"output_tokens,omitempty"`
	Closing    int64    `yaml:"closing_tokens,omitempty"`
	Soft       Duration `yaml:"soft,omitempty"`
	Hard       Duration `yaml:"hard,omitempty"`
}

// Price of the scripted model in US dollars for a million tokens.
type Price struct {
	Input  float64 `yaml:"input,omitempty"`
	Output float64 `yaml:"output,omitempty"`
}

// ScriptedHook is a hook with scripted answers. After the last answer it passes.
type ScriptedHook struct {
	Name    string            `yaml:"name,omitempty"`
	Point   spec.HookPoint    `yaml:"point,omitempty"`
	Tools   string            `yaml:"tools,omitempty"`
	Timeout Duration          `yaml:"timeout,omitempty"`
	Failing spec.HookDecision `yaml:"failing,omitempty"`
	Report  bool              `yaml:"report,omitempty"`
	Of      string            `yaml:"of,omitempty"` // root, child; "": every agent's
	Answers []HookAnswer      `yaml:"answers,omitempty"`
}

// HookAnswer is one decision of a hook.
type HookAnswer struct {
	Decision spec.HookDecision `yaml:"decision,omitempty"`
	Text     string            `yaml:"text,omitempty"`
	Args     string            `yaml:"args,omitempty"`     // pre_tool: JSON
	Messages []Message         `yaml:"messages,omitempty"` // context: sent instead of the prompt in this turn
	Fails    string            `yaml:"fails,omitempty"`    // it crashes with this message instead
	Delay    Duration          `yaml:"delay,omitempty"`
}

// Message is a message that a hook sends instead of the prompt.
type Message struct {
	Role model.Role `yaml:"role,omitempty"`
	Text string     `yaml:"text,omitempty"`
}

// Intervention is an outside event during the run: it happens after the Nth event of a kind.
// Exactly one of the last fields is set.
type Intervention struct {
	After string `yaml:"after,omitempty"` // kind of event, or mock.called: a mocked tool has begun
	Of    string `yaml:"of,omitempty"`    // tool, agent, or AGENT/CALL of mock.called, that the event is about; "": any
	Nth   int    `yaml:"nth,omitempty"`   // from 1, the default
	// And are events that must have happened, too: agents work side by side, and all of them must be
	// where a cancel finds them.
	And []Point `yaml:"and,omitempty"`

	Cancel string     `yaml:"cancel,omitempty"` // boundary, now
	Steer  string     `yaml:"steer,omitempty"`
	Answer *UserReply `yaml:"answer,omitempty"` // to the question of the agent whose event it is
	// Crash stops the node as a kill does, and starts another on the same logs.
	Crash bool `yaml:"crash,omitempty"`
}

// Point is the Nth event of a kind about something, as in Intervention.
type Point struct {
	After string `yaml:"after,omitempty"`
	Of    string `yaml:"of,omitempty"`
	Nth   int    `yaml:"nth,omitempty"`
}

// UserReply is a user's answer.
type UserReply struct {
	Decision spec.Decision `yaml:"decision,omitempty"` // default text
	Text     string        `yaml:"text,omitempty"`
	Always   string        `yaml:"always,omitempty"` // run: an approval counts for calls like this one, too
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
