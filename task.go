package troupe

import (
	"encoding/json"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// Task is what a node is asked to do; only Prompt is required. The zero value of a field is the node's default. The
// same settings are flags of `troupe run` (docs/commands.md) and fields of client.RunRequest, which is the form of a
// task on the wire.
type Task struct {
	// RunID is the id of the run; client.NewID makes one. If a run of that id exists, the task starts nothing, and the
	// node waits for that run. Default: a new id.
	RunID  string
	Prompt string
	// Agent is the agent that gets the task. Default: the first of Config.Agents, or the node's default agent.
	Agent string
	// AgentsDir is a directory of agent files, and MCPConfig a file of MCP servers.
	AgentsDir, MCPConfig string
	// Dir is the directory in which the agents work: Config.Dir, which is the default, or one below it.
	Dir string
	// Model is the run's model, as PROVIDER/MODEL. Default: that of the Config, of the environment, or of the agent.
	Model string
	// Fallback are further models: each takes over when the one before it has failed for good.
	Fallback    []string
	Temperature *float64
	Effort      string

	// MaxTurns is the limit of the agent that gets the task; the other numbers are limits of the run. Of a number, -1 is
	// "none at all" where docs/limits.md allows it.
	MaxTurns                                      int
	MaxTokens, MaxToolCalls                       int64
	MaxDepth, MaxChildren, MaxMessages, MaxAgents int
	// MaxBacklog is how many tasks the shared backlog may ever have, and BacklogLease how long a claim of one lasts after
	// the last message of the agent that has it.
	MaxBacklog         int
	BacklogLease       time.Duration
	client.AgentLimits       // of each agent
	ToolRetries        int   // of a call after a temporary failure
	UseTokens          int64 // output tokens for the root agent to use up
	// MaxBudgetUSD is the limit in US dollars. It is counted in billionths of a dollar; parts of one are cut off, and less
	// than one is refused.
	MaxBudgetUSD float64
	// AllowUnpriced are models that may be called despite a limit in money although their price is unknown, and
	// AllowUnbounded those that may get Attach although no maximum cost of attachments is published.
	AllowUnpriced, AllowUnbounded []string
	// Timeout is the limit of working time. QuestionTimeout is how long a question to a person stays open before it
	// counts as denied; 0: as long as the run may be parked. ParkTimeout is how long the run may wait for people alone
	// before it ends as unanswered; 0: 30 days. Patience is how long an agent waits for a model that throttles all
	// callers; negative: not at all. All four are counted in milliseconds, and a part of one counts as a whole.
	Timeout, QuestionTimeout, ParkTimeout, Patience time.Duration

	// AllowedTools grants tools by name ("grep") and allows calls by pattern ("shell(git log:*)"); the name of a tool of
	// an MCP server does both. DisallowedTools denies, AskTools asks a person. PermissionMode decides calls that no rule
	// matches.
	AllowedTools, DisallowedTools, AskTools []string
	PermissionMode                          spec.PermissionMode
	// Unattended makes the run ask no questions: calls that need an approval are denied, and an agent that cannot
	// continue without a person ends. PermissionMode spec.ModeDontAsk implies it.
	Unattended bool
	// Approvals is how many different people must approve a call that is asked about, 1 or 2; 0: as the Config says. A
	// task can only ask for more than the Config.
	Approvals int
	// Taint says what holds for calls that send data out once an agent has read text from outside: ask, deny or off; "":
	// as the Config says. TaintFiles says that files of the directory are such text, Outside that the Prompt is.
	Taint               string
	TaintFiles, Outside bool
	// Guardrails are ready guardrails for every agent of the run, in addition to those of the Config.
	Guardrails []spec.ReadyGuardrail
	// Yes allows writes in the directory, tools of MCP servers, and shell commands that the sandbox confines.
	Yes bool

	// Priority orders the run among others that wait for a throttled model: high, normal or low. Default: normal.
	Priority string

	// Conversation continues a conversation, or begins the one of that id. Fork starts from the history of another run's
	// root agent: RUN, or RUN@TURN after a turn; RUN@AGENT:POINT begins with the whole tree of that run (docs/fork.md),
	// in Dir, a copy of its directory, and Instead takes the place of the result or answer at that point ("error: TEXT"
	// makes the call fail). History is a history that client.Client.Recall has sent.
	Conversation, Fork, Instead string
	// Layers change the system prompt of the agent at the point of a fork of a tree.
	Layers  []spec.Layer
	History *client.History
	// Attach are images and documents of the prompt, which client.Client.Attach has sent.
	Attach []client.Attachment

	// Constraints and Criteria are sentences that the answer must satisfy, and FailureConditions sentences that must
	// not hold. RequireTool are tool results that the answer needs: NAME, or NAME=TEXT.
	Constraints, Criteria, FailureConditions, RequireTool []string
	// JSONSchema is the schema of the answer; see also Answer.
	JSONSchema json.RawMessage
	// Policy may veto a stop or a turn.
	Policy *supervisor.Policy
	// LoopOptions change the defaults of the loop; models in them are given by name, and hooks are not allowed here.
	LoopOptions *spec.LoopOptions
	// NoAgentsMD leaves the project's instructions (AGENTS.md) out of the prompts.
	NoAgentsMD bool
	// Caller names the program or person that asks, and Trace is the W3C traceparent of the caller: both are
	// recorded.
	Caller, Trace string
}

// request returns the task in its form on the wire.
func (t *Task) request() *client.RunRequest {
	return &client.RunRequest{
		RunID: t.RunID, Prompt: t.Prompt, Agent: t.Agent, Agents: t.AgentsDir, MCPConfig: t.MCPConfig, Dir: t.Dir,
		Model: t.Model, Fallback: t.Fallback, Guardrails: t.Guardrails, Temperature: t.Temperature, Effort: t.Effort,
		MaxTurns: t.MaxTurns, MaxTokens: t.MaxTokens, MaxBudgetUSD: t.MaxBudgetUSD, MaxToolCalls: t.MaxToolCalls,
		MaxDepth: t.MaxDepth, MaxChildren: t.MaxChildren, MaxMessages: t.MaxMessages, MaxAgents: t.MaxAgents,
		MaxBacklog: t.MaxBacklog, BacklogLease: milliseconds(t.BacklogLease),
		AgentLimits: t.AgentLimits, ToolRetries: t.ToolRetries, UseTokens: t.UseTokens,
		AllowUnpriced: t.AllowUnpriced, AllowUnbounded: t.AllowUnbounded,
		TimeoutMS: milliseconds(t.Timeout), QuestionTimeout: milliseconds(t.QuestionTimeout), ParkTimeout: milliseconds(t.ParkTimeout),
		PatienceMS:   max(milliseconds(t.Patience), spec.Off),
		AllowedTools: t.AllowedTools, DisallowedTools: t.DisallowedTools, AskTools: t.AskTools,
		PermissionMode: string(t.PermissionMode), Unattended: t.Unattended, Approvals: t.Approvals, Taint: t.Taint, TaintFiles: t.TaintFiles, Outside: t.Outside, Priority: t.Priority, Yes: t.Yes,
		Conversation: t.Conversation, Fork: t.Fork, Instead: t.Instead, Layers: t.Layers, History: t.History, Attach: t.Attach,
		Constraints: t.Constraints, Criteria: t.Criteria, FailureConditions: t.FailureConditions, RequireTool: t.RequireTool,
		JSONSchema: t.JSONSchema, Policy: t.Policy, LoopOptions: t.LoopOptions, NoAgentsMD: t.NoAgentsMD,
		Caller: t.Caller, Trace: t.Trace,
	}
}

// milliseconds rounds away from 0, so that no duration becomes the default.
func milliseconds(d time.Duration) int64 {
	switch part := d % time.Millisecond; {
	case part > 0:
		return int64(d/time.Millisecond) + 1
	case part < 0:
		return int64(d/time.Millisecond) - 1
	}
	return int64(d / time.Millisecond)
}
