// Package client speaks to a troupe node over NATS: the control verbs
// (`troupe.cmd.<verb>`, JSON request and reply) and the event cursor. cmd/cli,
// the gateway, tests and examples use it.
package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/supervisor"
)

// RunRequest starts a run. The fields are the long flags of `run` with
// underscores. Zero means the node's default.
type RunRequest struct {
	// RunID is chosen by the client (a lower-case ULID): asking again is harmless.
	RunID           string             `json:"run_id"`
	Prompt          string             `json:"prompt"`
	Agent           string             `json:"agent,omitempty"`
	Agents          string             `json:"agents,omitempty"`     // directory of agent files
	MCPConfig       string             `json:"mcp_config,omitempty"` // file of MCP servers
	Dir             string             `json:"dir,omitempty"`
	Model           string             `json:"model,omitempty"`
	MaxTurns        int                `json:"max_turns,omitempty"`
	MaxTokens       int64              `json:"max_tokens,omitempty"`
	MaxBudgetUSD    float64            `json:"max_budget_usd,omitempty"`
	MaxToolCalls    int64              `json:"max_tool_calls,omitempty"`
	MaxDepth        int                `json:"max_depth,omitempty"`
	MaxChildren     int                `json:"max_children,omitempty"`
	MaxMessages     int                `json:"max_messages,omitempty"`
	MaxAgents       int                `json:"max_agents,omitempty"`
	TimeoutMS       int64              `json:"timeout_ms,omitempty"`
	Temperature     *float64           `json:"temperature,omitempty"`
	Effort          string             `json:"effort,omitempty"`
	AllowedTools    []string           `json:"allowed_tools,omitempty"`
	DisallowedTools []string           `json:"disallowed_tools,omitempty"`
	Conversation    string             `json:"conversation,omitempty"`
	Yes             bool               `json:"yes,omitempty"` // writes in the directory, and shell commands in the sandbox, need no approval
	Caller          string             `json:"caller,omitempty"`
	Constraints     []string           `json:"constraints,omitempty"`
	Criteria        []string           `json:"criteria,omitempty"`
	Trace           string             `json:"trace,omitempty"`
	Policy          *supervisor.Policy `json:"policy,omitempty"`
	// Fallback are models that take over when the one before has failed for good.
	Fallback []string `json:"fallback,omitempty"`
	// PaidLimit: the limit in money that paid models have by default holds also
	// where MaxTokens is given, because that is no word of the user's.
	PaidLimit bool `json:"paid_limit,omitempty"`
	// AllowUnpriced are models that may be called under a limit in money though
	// nobody knows what they cost: PROVIDER/MODEL.
	AllowUnpriced []string `json:"allow_unpriced,omitempty"`
	// Attach are images and documents that come with the prompt.
	Attach []Attachment `json:"attach,omitempty"`
	// AllowUnbounded are models that may be sent attachments though nobody has
	// published what those cost there at most: PROVIDER/MODEL.
	AllowUnbounded []string `json:"allow_unbounded,omitempty"`
	// RequireTool are results that the answer needs: NAME, or NAME=TEXT.
	RequireTool []string        `json:"require_tool,omitempty"`
	JSONSchema  json.RawMessage `json:"json_schema,omitempty"` // of the answer
	UseTokens   int64           `json:"use_tokens,omitempty"`  // output tokens to use up before it may stop
	// Manners are how the loops behave where it is not as ever; models in them
	// are named, and hooks have no place here.
	Manners *agent.Manners `json:"manners,omitempty"`
	// NoAgentsMD leaves the project's instructions (AGENTS.md) out of the prompts.
	NoAgentsMD bool `json:"no_agents_md,omitempty"`
	// Fork begins with the history of another run's root: RUN as it stands, or
	// RUN@TURN as it stood after a turn.
	Fork string `json:"fork,omitempty"`
	// History begins with what was sent by RecallRequest.
	History *History `json:"history,omitempty"`
	// Resume continues the run RunID, which must exist; nothing else is read.
	Resume bool `json:"resume,omitempty"`
}

// RunAccepted answers a RunRequest: the run is in its log.
type RunAccepted struct {
	RunID string   `json:"run_id"`
	Model string   `json:"model"`
	Why   string   `json:"why"` // why this model
	Notes []string `json:"notes,omitempty"`
	Limit int64    `json:"max_tokens"`
}

// RunInfo is one row of a list.
type RunInfo struct {
	RunID string `json:"run_id"`
	State string `json:"state"` // live, queued, parked, finished
	// Position is the place of a queued run in the queue of its node, from 1; 0: unknown.
	Position int                `json:"position,omitempty"`
	Title    string             `json:"title"`
	Model    string             `json:"model"`
	Started  string             `json:"started"`
	Node     string             `json:"node,omitempty"`
	Result   *supervisor.Result `json:"result,omitempty"`
	// Description is there if it was asked for.
	Description *Description `json:"description,omitempty"`
}

// CancelRequest stops a run, or one agent of it and what is below.
type CancelRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id"`
	Agent   string `json:"agent,omitempty"`
	Now     bool   `json:"now,omitempty"`
	Why     string `json:"why,omitempty"`
	// WaitMS is how long the acknowledgement may wait for the agents to stop, at most
	// CancelWaitMax. 0 is CancelWaitDefault; negative: it does not wait.
	WaitMS int64 `json:"wait_ms,omitempty"`
}

const (
	// CancelWaitDefault is how long the acknowledgement of a cancel waits for the agents
	// to stop, if the request does not say.
	CancelWaitDefault = 5 * time.Second
	// CancelWaitMax is the longest that it may wait: requests end soon after.
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

// CancelReply is the acknowledgement of a cancel. The request is in the log of the run
// in any case. An agent that counts as stopped begins nothing any more.
type CancelReply struct {
	Agents  int `json:"agents"`   // that the cancel is for
	Stopped int `json:"stopped"`  // by their own word
	GivenUp int `json:"given_up"` // nobody knows of them
	// Pending are those that have not stopped yet, by the node that they were last
	// heard of on.
	Pending []PendingOn `json:"pending"`
	// Text is such a sentence: "17 of 17 stopped".
	Text string `json:"text"`
}

// PendingOn is how many agents have not stopped yet on one node.
type PendingOn struct {
	// Node is "" for agents that no node has taken up yet: they have begun nothing.
	Node   string `json:"node"`
	Agents int    `json:"agents"`
	// Unreachable: the node missed a renewal of its lease. It may be frozen, cut off or
	// dead.
	Unreachable bool `json:"unreachable"`
	// HeardMS is for how long the node has not been heard of.
	HeardMS int64 `json:"heard_ms"`
	// LeaseMS is after how many milliseconds its lease ends unless it is heard of again:
	// from then on nothing begins there. 0: it has ended.
	LeaseMS int64 `json:"lease_ms"`
}

// SteerRequest sends a user's message to an agent; "" is the root.
type SteerRequest struct {
	RunID   string `json:"run_id"`
	Request string `json:"request_id"`
	Agent   string `json:"agent,omitempty"`
	Text    string `json:"text"`
}

// AnswerRequest decides a query that an agent waits for.
type AnswerRequest struct {
	RunID    string `json:"run_id"`
	Request  string `json:"request_id"`
	Agent    string `json:"agent,omitempty"` // "": the one that asked Query
	Query    string `json:"query"`
	Decision string `json:"decision"` // approve, deny, skip, text
	Text     string `json:"text,omitempty"`
}

// PolicyRequest replaces a live run's policy.
type PolicyRequest struct {
	RunID   string            `json:"run_id"`
	Request string            `json:"request_id"`
	Policy  supervisor.Policy `json:"policy"`
}

// BudgetRequest replaces a live run's limits: all of them, with Patch those
// that are not zero, with Freeze none, but nothing but closing turns is granted.
type BudgetRequest struct {
	RunID   string            `json:"run_id"`
	Request string            `json:"request_id"`
	Limits  supervisor.Limits `json:"limits"`
	Patch   bool              `json:"patch,omitempty"`
	Freeze  bool              `json:"freeze,omitempty"`
}

// GetRequest asks for one run, with its Description if that is wanted.
type GetRequest struct {
	RunID    string `json:"run_id"`
	Describe bool   `json:"describe,omitempty"`
}

// Cursor is a vector of places: for each log of a run, the ordinal of the last
// entry whose events were seen. To users it is opaque.
type Cursor map[string]uint64

// EventsRequest asks for the events after a cursor.
type EventsRequest struct {
	RunID string `json:"run_id"`
	From  Cursor `json:"from,omitempty"`
}

// EventsPage is as many events as fit a reply. More: ask again from Cursor.
type EventsPage struct {
	Events []json.RawMessage `json:"events"`
	Cursor Cursor            `json:"cursor"`
	More   bool              `json:"more"`
}

// Event is one document of `troupe.evt.>`, with its data still as JSON.
type Event struct {
	life.Event
	Data json.RawMessage `json:"data,omitempty"`
}

// Codes of errors, in Nats-Service-Error-Code.
const (
	CodeBad         = "400"
	CodeForbidden   = "403"
	CodeNotFound    = "404"
	CodeConflict    = "409"
	CodeGone        = "410" // it was deleted
	CodeLimit       = "429"
	CodeInternal    = "500"
	CodeUnavailable = "503"
	CodeJournal     = "507" // the node's logs cannot be written now: a full disk, a server whose store is off
)

// ErrUnavailable: no node answered.
var ErrUnavailable = errors.New("client: no node answers")

// Error is a refusal by a node.
type Error struct {
	Code string
	Text string
	Hint string
	// Retry is when to ask the same again, of a node that is only busy; else 0.
	Retry time.Duration
}

func (e *Error) Error() string { return fmt.Sprintf("node: %s (%s)", e.Text, e.Code) }

// TranscriptRequest asks for one agent's messages; "" is the root.
type TranscriptRequest struct {
	RunID string `json:"run_id"`
	Agent string `json:"agent,omitempty"`
}

// NodeInfo is one live node.
type NodeInfo struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Version string `json:"version,omitempty"`
	Started string `json:"started,omitempty"`
	// State is live or leaving; a node alone with its own server is alone.
	State string `json:"state"`
	// Heard is when it last said that it lives, by the clock of the server.
	Heard string `json:"heard,omitempty"`
	// HeardMS is for how long the node that answers has not heard of it, by its own clock.
	HeardMS int64 `json:"heard_ms,omitempty"`
	// Live is how many actors it runs, Busy the calls that those have under way, and
	// Resting how many wait in logs that it holds, without a process of their own: for
	// a person, another agent, or the clock.
	Live    int64 `json:"live"`
	Busy    int64 `json:"busy"`
	Resting int64 `json:"resting"`
	// LiveRuns and QueuedRuns are told by the node that answers of itself.
	LiveRuns   int `json:"live_runs,omitempty"`
	QueuedRuns int `json:"queued_runs,omitempty"`
	// Pools that it serves, each with the shards that it holds; Shards are those of
	// the pool "default".
	Pools  map[string][]int `json:"pools,omitempty"`
	Shards []int            `json:"shards"`
	// Profile is what its server promises (docs/profiles.md), Unproven what it did
	// not see of that when it started. The node that answers tells all that it saw.
	// Rules are the newest that it knows; Avoids are shards, by pool, with logs that
	// are newer, which it leaves to others.
	Rules  int              `json:"rules,omitempty"`
	Avoids map[string][]int `json:"avoids,omitempty"`
	// Unreadable are shards, by pool, that it holds and cannot read: their runs stand still.
	Unreadable map[string][]int `json:"unreadable,omitempty"`
	Profile    string           `json:"profile,omitempty"`
	Unproven   string           `json:"unproven,omitempty"`
	Proof      *bus.Proof       `json:"proof,omitempty"`
	// Journal is there while the node that answers cannot write its logs, or has
	// little room left for them.
	Journal *JournalInfo `json:"journal,omitempty"`
	// Warning says what will not happen as asked.
	Warning string `json:"warning,omitempty"`
}

// JournalInfo says why a node cannot write its logs, or that their disk is Low: then
// live runs go on, and new ones are refused.
type JournalInfo struct {
	Since     string `json:"since,omitempty"`
	Why       string `json:"why"`
	Remedy    string `json:"remedy"`
	Path      string `json:"path,omitempty"`
	FreeBytes int64  `json:"free_bytes,omitempty"`
	Low       bool   `json:"low,omitempty"`
}

// Held is how many shards a node holds.
func (n NodeInfo) Held() (sum int) {
	for _, shards := range n.Pools {
		sum += len(shards)
	}
	return sum
}

// DrainRequest asks all nodes of a name to give away what they hold and take
// nothing more, or, with Undo, to be ordinary nodes again.
type DrainRequest struct {
	Node string `json:"node"`
	Undo bool   `json:"undo,omitempty"`
}

// Fold is a compaction: in later prompts Text stood for the first Upto messages.
type Fold struct {
	Upto int  `json:"upto"`
	Turn int  `json:"turn"`
	Deep bool `json:"deep,omitempty"`
	// Plain: no model wrote it, it is cut out of the messages.
	Plain bool   `json:"plain,omitempty"`
	Text  string `json:"text"`
}
