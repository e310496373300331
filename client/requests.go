// Package client talks to a troupe node over NATS: the control verbs (`troupe.cmd.<verb>`,
// JSON request and reply) and the event cursor. internal/cli, internal/control, tests and
// examples use it.
package client

import (
	"encoding/json"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/supervisor"
)

// RunRequest starts a run. Most fields have the name of a flag of "troupe run". Files that flags name (policy, JSON
// schema, history, attachments) are sent as contents. The zero value of a field is the node's default.
type RunRequest struct {
	// RunID is chosen by the client (a lower-case ULID), so that a repeated request is
	// harmless.
	RunID  string `json:"run_id"`
	Prompt string `json:"prompt"`
	Agent  string `json:"agent,omitempty"`
	// Holder is the agent that has the conversation by a handoff: it gets a prompt for which the request names no agent.
	// The node that opens the run fills it in.
	Holder string `json:"-"`
	// Owner is the owner of the run; "": operators own it. Only an operator sets it, to send a run into the conversation of
	// an owner; for the requests of owners the node takes it from the subject.
	Owner        string  `json:"owner,omitempty"`
	Agents       string  `json:"agents,omitempty"`     // directory of agent files
	MCPConfig    string  `json:"mcp_config,omitempty"` // file of MCP servers
	Dir          string  `json:"dir,omitempty"`
	Model        string  `json:"model,omitempty"`
	MaxTurns     int     `json:"max_turns,omitempty"`
	MaxTokens    int64   `json:"max_tokens,omitempty"`
	MaxBudgetUSD float64 `json:"max_budget_usd,omitempty"`
	MaxToolCalls int64   `json:"max_tool_calls,omitempty"`
	MaxDepth     int     `json:"max_depth,omitempty"`
	MaxChildren  int     `json:"max_children,omitempty"`
	MaxMessages  int     `json:"max_messages,omitempty"`
	MaxAgents    int     `json:"max_agents,omitempty"`
	MaxBacklog   int     `json:"max_backlog,omitempty"`      // tasks that the shared backlog may ever have
	BacklogLease int64   `json:"backlog_lease_ms,omitempty"` // how long a claim of one lasts after the last message of its agent
	AgentLimits
	TimeoutMS       int64    `json:"timeout_ms,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	Effort          string   `json:"effort,omitempty"`
	AllowedTools    []string `json:"allowed_tools,omitempty"`
	DisallowedTools []string `json:"disallowed_tools,omitempty"`
	AskTools        []string `json:"ask_tools,omitempty"`       // rules for calls that a person decides about
	PermissionMode  string   `json:"permission_mode,omitempty"` // default, acceptEdits, plan, dontAsk, bypassPermissions
	Approvals       int      `json:"approvals,omitempty"`       // how many different people must approve a call that is asked about: 1 or 2; 0: what the settings say
	// Taint says what holds for calls that send data out once an agent has read text from outside: ask, deny or off; "":
	// what the settings say. TaintFiles: files of the directory are such text. Outside: the prompt is.
	Taint      string `json:"taint,omitempty"`
	TaintFiles bool   `json:"taint_files,omitempty"`
	Outside    bool   `json:"outside,omitempty"`
	// QuestionTimeout is how long a question may be open before it counts as denied; 0: as long as the run may be parked.
	QuestionTimeout int64 `json:"question_timeout_ms,omitempty"`
	Unattended      bool  `json:"unattended,omitempty"`      // ask no questions; implied by permission_mode dontAsk
	ParkTimeout     int64 `json:"park_timeout_ms,omitempty"` // a run that waits for people alone for longer ends; 0: 30 days
	// Conversation continues a conversation, or begins the one of that id: the run gets the history of the run before
	// it, and waits until that one has ended. The id of a run continues the conversation of that run.
	Conversation string   `json:"conversation,omitempty"`
	Priority     string   `json:"priority,omitempty"`    // among runs that wait for a throttled model: high, normal or low; "": normal
	Yes          bool     `json:"yes,omitempty"`         // allows writes in the directory, tools of MCP servers, and confined shell commands
	Interactive  bool     `json:"interactive,omitempty"` // a person at a terminal answers at once
	Caller       string   `json:"caller,omitempty"`
	Constraints  []string `json:"constraints,omitempty"`
	Criteria     []string `json:"criteria,omitempty"`
	// FailureConditions are sentences: if one of them holds, the run has failed.
	FailureConditions []string           `json:"failure_conditions,omitempty"`
	Trace             string             `json:"trace,omitempty"`
	Policy            *supervisor.Policy `json:"policy,omitempty"`
	// Fallback lists models: each takes over when the one before has failed for good.
	Fallback []string `json:"fallback,omitempty"`
	// PaidLimit says that MaxTokens is not the user's own choice: a paid model still gets the default limit in money.
	PaidLimit bool `json:"paid_limit,omitempty"`
	// AllowUnpriced lists models with an unknown price that may be called despite a money limit: PROVIDER/MODEL.
	AllowUnpriced []string `json:"allow_unpriced,omitempty"`
	// Attach lists the images and documents of the prompt.
	Attach []Attachment `json:"attach,omitempty"`
	// AllowUnbounded lists models that may receive attachments although no maximum cost of
	// those is published: PROVIDER/MODEL.
	AllowUnbounded []string `json:"allow_unbounded,omitempty"`
	// Guardrails are ready guardrails for every agent of the run; they add to those of the node and of the directory.
	Guardrails []spec.ReadyGuardrail `json:"guardrails,omitempty"`
	// RequireTool lists tool results that the answer needs: NAME, or NAME=TEXT.
	RequireTool []string        `json:"require_tool,omitempty"`
	JSONSchema  json.RawMessage `json:"json_schema,omitempty"` // of the answer
	UseTokens   int64           `json:"use_tokens,omitempty"`  // tokens that the root agent should use up
	// ToolRetries is how often a call is retried after a temporary failure; -1: never, 0: the default.
	ToolRetries int `json:"tool_retries,omitempty"`
	// PatienceMS is how long an agent waits for a model that throttles all callers; -1: not at all.
	PatienceMS int64 `json:"patience_ms,omitempty"`
	// LoopOptions change the defaults of the loop; models in them are given by name, and hooks
	// are not allowed here.
	LoopOptions *spec.LoopOptions `json:"loop_options,omitempty"`
	// NoAgentsMD leaves the project's instructions (AGENTS.md) out of the prompts.
	NoAgentsMD bool `json:"no_agents_md,omitempty"`
	// Fork starts from the history of another run's root agent: RUN in its current state, or
	// RUN@TURN after a turn. RUN@AGENT:POINT begins with the whole tree of that run, as it was when the agent had
	// completed a turn (3), got the result of a call (3-0) or the answer to a question (3-0.1): docs/fork.md.
	Fork string `json:"fork,omitempty"`
	// Instead takes the place of that result or answer. "error: TEXT" makes the call fail with TEXT.
	Instead string `json:"instead,omitempty"`
	// Layers change the system prompt of the agent at the point of a fork of a tree.
	Layers []spec.Layer `json:"layers,omitempty"`
	// History is the history that the run begins with, sent by RecallRequest.
	History *History `json:"history,omitempty"`
	// At, Every and On make a schedule, whose id is RunID, instead of a run: docs/schedules.md.
	At      string `json:"at,omitempty"`
	Every   string `json:"every,omitempty"`
	Zone    string `json:"zone,omitempty"` // an IANA name; "": UTC
	On      string `json:"on,omitempty"`
	Missed  string `json:"missed,omitempty"`  // what missed due times begin: skip (nothing), once (one run for all) or all; "": once
	Overlap string `json:"overlap,omitempty"` // what a due time begins while the run before works: skip (nothing) or parallel; "": skip
	// Resume continues the run RunID, which must exist. Of the other fields only TimeoutMS counts: the new time limit.
	Resume bool `json:"resume,omitempty"`
	// DryRun begins nothing: the answer has what the run would be opened with (RunAccepted.Preview), or the error of the request.
	DryRun bool `json:"dry_run,omitempty"`
}

// RunAccepted answers a RunRequest: the run, or the schedule, is in its log.
type RunAccepted struct {
	RunID string   `json:"run_id"`
	Model string   `json:"model"`
	Why   string   `json:"why"` // why this model was chosen, or that the run existed
	Notes []string `json:"notes,omitempty"`
	Limit int64    `json:"max_tokens"`
	// Conversation is the conversation of the run, and Ahead how many of its runs have not ended; "": it has none.
	Conversation string `json:"conversation_id,omitempty"`
	Ahead        int    `json:"ahead,omitempty"`
	// Continues is the run of the conversation whose history the run continues; "": none.
	Continues string `json:"continues,omitempty"`
	Schedule  string `json:"schedule_id,omitempty"` // the schedule that was made instead of a run
	Next      string `json:"next,omitempty"`        // when its first run is due; RFC 3339
	// LimitUSD is the limit in dollars; 0: none. Estimated: list prices are used for a gateway.
	LimitUSD     float64 `json:"max_budget_usd,omitempty"`
	Estimated    bool    `json:"estimated,omitempty"`
	UserSettings bool    `json:"user_settings,omitempty"` // the node has applied the user's own files in ~/.claude
	Existed      bool    `json:"existed,omitempty"`       // the run existed before, and the request changed nothing but to resume it
	// Differs names the fields of the request (prompt, agent, dir, limits, times) that the run or schedule, which existed, was
	// not made with. They have no effect.
	Differs []string `json:"differs,omitempty"`
	// Preview answers a request with dry_run: there is no run; nil: there is one.
	Preview *Preview `json:"preview,omitempty"`
}

// Preview is what a run would be opened with, and its root agent as it would begin.
type Preview struct {
	Description
	// StopReason says why the run would end before its first call, and Detail explains it; "": it would begin.
	StopReason spec.Reason `json:"stop_reason,omitempty"`
	Detail     string      `json:"detail,omitempty"`
}

// RunInfo is one row of a list.
type RunInfo struct {
	RunID string   `json:"run_id"`
	State RunState `json:"state"`
	// Position is the place of a queued run in the queue of its node, from 1; 0: unknown.
	Position int    `json:"position,omitempty"`
	Title    string `json:"title"`
	// Agent is the name of the agent that the run began with; "": it is not known.
	Agent string `json:"agent,omitempty"`
	// Fork is the point of another run at which the run began: RUN, RUN@TURN or RUN@AGENT:POINT; "": it is no fork.
	Fork    string `json:"fork,omitempty"`
	Model   string `json:"model"`
	Started string `json:"started"`
	// Ended is when the run ended; "": it has not, or its row does not say when.
	Ended  string        `json:"ended,omitempty"`
	Node   string        `json:"node,omitempty"`
	Result *event.Result `json:"result,omitempty"`
	// Spend is what a run that has not ended has spent, to the sixteenth of its limit; nil: not known yet.
	Spend *event.Spend `json:"spend,omitempty"`
	// Conversation is the conversation in whose lane the run is; "": none.
	Conversation string `json:"conversation_id,omitempty"`
	// Owner is who may see and change the run, besides operators; "": operators only.
	Owner string `json:"owner,omitempty"`
	// ContinueWith is what continues an interrupted run whose logs this node does not read, and "" otherwise.
	ContinueWith string `json:"continue_with,omitempty"`
	// Description is set if the request asked for it.
	Description *Description `json:"description,omitempty"`
	// AgentsStarted counts the agents of a run at work, LiveAgents are some of them: in a brief answer, without a result.
	AgentsStarted int         `json:"agents_started,omitempty"`
	LiveAgents    []LiveAgent `json:"live_agents,omitempty"`
}

// ListRequest selects runs. The newest come first.
type ListRequest struct {
	// Limit is the most runs that are wanted; 0: as many as fit a reply.
	Limit int `json:"limit,omitempty"`
	// State selects runs in this state only; see RunState. "": all.
	State RunState `json:"state,omitempty"`
	// Since is the earliest start, as RFC 3339.
	Since string `json:"since,omitempty"`
	// Before is a run id: only older runs are wanted. With the last run of a reply it asks for the
	// next page.
	Before string `json:"before,omitempty"`
	// Prefix is what the run ids begin with.
	Prefix string `json:"prefix,omitempty"`
}

// CancelRequest stops a run, or one agent of it and the agents below.
type CancelRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id"`
	Agent   string `json:"agent,omitempty"`
	Now     bool   `json:"now,omitempty"`
	Why     string `json:"why,omitempty"`
	By      string `json:"by,omitempty"` // the name of the user, for the record
	// WaitMS is how long the acknowledgement may wait for the agents to stop, at most
	// CancelWaitMax. 0 means CancelWaitDefault; a negative value means no wait.
	WaitMS int64 `json:"wait_ms,omitempty"`
}

const (
	// CancelWaitDefault is how long the acknowledgement of a cancel waits for the agents to
	// stop, unless the request says otherwise.
	CancelWaitDefault = 5 * time.Second
	// CancelWaitMax is the longest wait: requests time out soon after.
	CancelWaitMax = 10 * time.Second
)

// Wait is how long the acknowledgement waits.
func (r CancelRequest) Wait() time.Duration {
	switch {
	case r.WaitMS < 0:
		return 0
	case r.WaitMS == 0:
		return CancelWaitDefault
	}
	return time.Duration(min(r.WaitMS, CancelWaitMax.Milliseconds())) * time.Millisecond
}

// CancelReply is the acknowledgement of a cancel. The log of the run holds the request in any
// case. An agent that counts as stopped starts no further call.
type CancelReply struct {
	Agents  int `json:"agents"`   // agents that the cancel is for
	Stopped int `json:"stopped"`  // agents that reported their end
	GivenUp int `json:"given_up"` // agents without a known state
	// Pending counts the agents that have not stopped yet, by the node that last reported
	// them.
	Pending []PendingOn `json:"pending"`
	// Text is a summary such as "17 of 17 stopped".
	Text string `json:"text"`
}

// PendingOn is how many agents have not stopped yet on one node.
type PendingOn struct {
	// Node is "" for agents that no node has activated yet: no node has run them.
	Node   string `json:"node"`
	Agents int    `json:"agents"`
	// Unreachable says that the node missed a renewal of its lease. It may be frozen,
	// disconnected or dead.
	Unreachable bool `json:"unreachable"`
	// HeardMS is the number of milliseconds since the node's last heartbeat.
	HeardMS int64 `json:"heard_ms"`
	// LeaseMS is the number of milliseconds until its lease ends, unless the node renews it:
	// after that, no work begins there. 0: the lease has ended.
	LeaseMS int64 `json:"lease_ms"`
}

// SteerRequest sends a user's message to an agent; "" is the root.
type SteerRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id"`
	Agent   string `json:"agent,omitempty"`
	Text    string `json:"text"`
	// Now does not wait for the end of the turn under way: its request to the model and its calls that only read are
	// aborted, and calls that have not begun do not begin. A side effect that has begun completes.
	Now bool `json:"now,omitempty"`
}

// AnswerRequest decides a query that an agent waits for.
type AnswerRequest struct {
	RunID    string        `json:"run_id"`
	Request  string        `json:"request_id"`
	Agent    string        `json:"agent,omitempty"` // "": the only one with an open question Query
	Query    string        `json:"query"`
	Decision spec.Decision `json:"decision"`
	Text     string        `json:"text,omitempty"`
	// Digest is the SHA-256 of the call that the question was about, from the question; an
	// answer to another call is refused.
	Digest string `json:"digest,omitempty"`
	// Always is "run": an approval counts for calls like this one, too, until the run ends.
	Always string `json:"always,omitempty"`
	By     string `json:"by,omitempty"` // the name of the user, for the audit log
}

// PolicyRequest replaces a live run's policy.
type PolicyRequest struct {
	RunID   string            `json:"run_id"`
	Request string            `json:"request_id"`
	Policy  supervisor.Policy `json:"policy"`
	By      string            `json:"by,omitempty"` // the name of the user, for the audit log
}

// GetRequest asks for one run, with its Description if Describe is set.
type GetRequest struct {
	RunID    string `json:"run_id"`
	Describe bool   `json:"describe,omitempty"`
	// Brief asks for the row of the run in the index, with its current state: a node reads no log
	// for it but the newest entries.
	Brief bool `json:"brief,omitempty"`
}

// Event is one document of `troupe.evt.>`, with its data still as JSON.
type Event struct {
	event.Published
	Data json.RawMessage `json:"data,omitempty"`
}

// NodeInfo is one live node.
type NodeInfo struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Started string `json:"started,omitempty"`
	// State is live or leaving, or silent if two heartbeats in a row are missing; for a single node with its own server,
	// it is alone.
	State string `json:"state"`
	// Heard is the time of its last heartbeat, by the clock of the server.
	Heard string `json:"heard,omitempty"`
	// HeardMS is the age of that heartbeat in milliseconds, by the answering node's clock.
	HeardMS int64 `json:"heard_ms,omitempty"`
	// Live is how many actors it runs, Busy how many calls they have under way, and Resting
	// how many actors are passivated in logs that it holds, waiting for a person, another
	// agent, or the clock.
	Live    int64 `json:"live"`
	Busy    int64 `json:"busy"`
	Resting int64 `json:"resting"`
	// LiveRuns and QueuedRuns are set only for the node that answers.
	LiveRuns   int `json:"live_runs,omitempty"`
	QueuedRuns int `json:"queued_runs,omitempty"`
	// Pools lists the node pools that it serves, each with the shards that it holds; Shards
	// are those of the pool "default".
	Pools  map[string][]int `json:"pools,omitempty"`
	Shards []int            `json:"shards"`
	// Avoids lists shards, by pool, with newer logs, which the node leaves to others.
	Avoids map[string][]int `json:"avoids,omitempty"`
	// Unreadable lists shards, by pool, that it holds and cannot read: their runs do not
	// progress.
	Unreadable map[string][]int `json:"unreadable,omitempty"`
	// Profile is the durability that its server promises (docs/profiles.md), Unproven the part of that promise which
	// the node could not verify when it started. The node that answers sets Proof to all that it verified.
	Profile  string     `json:"profile,omitempty"`
	Unproven string     `json:"unproven,omitempty"`
	Proof    *bus.Proof `json:"proof,omitempty"`
	// LogHealth is set while the node that answers cannot write its logs, or has little room
	// left for them.
	LogHealth *LogHealth `json:"logs,omitempty"`
	// HTTP is the address at which the node that answers serves HTTP; "" if it does not.
	HTTP string `json:"http,omitempty"`
	// Settings is the file, as HOST:FILE, from which the node reads the permission rules of new runs, and beside which it
	// reads those for single directories; "": it reads none.
	Settings string `json:"settings,omitempty"`
	// Warning, in the answer to a drain, says what part of that request was not applied.
	Warning string `json:"warning,omitempty"`
}

// Held is how many shards the node holds.
func (n NodeInfo) Held() (sum int) {
	for _, shards := range n.Pools {
		sum += len(shards)
	}
	return sum
}
