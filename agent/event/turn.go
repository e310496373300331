package event

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// AgentStarted is agent.started.
type AgentStarted struct {
	Name    string  `json:"name"`
	Parent  spec.ID `json:"parent,omitempty"`
	Model   string  `json:"model"`
	Goal    string  `json:"goal,omitempty"`
	Tools   int     `json:"tools"`
	MaxTurn int     `json:"max_turns"`
	// Recalled is how many messages of an earlier history it begins with.
	Recalled int `json:"recalled,omitempty"`
}

// AgentResumed is agent.resumed.
type AgentResumed struct {
	Phase      string `json:"phase"`
	Activation string `json:"activation"`
}

// AgentParked is agent.parked and query.asked.
type AgentParked struct {
	Query    string      `json:"query"`
	Question string      `json:"question,omitempty"`
	Reason   spec.Reason `json:"reason"`
	Call     string      `json:"call,omitempty"`
	// Digest is the SHA-256 of the call that is asked about, Rule the rule that an answer may add, DueMS
	// when the question expires.
	Digest string `json:"digest,omitempty"`
	Rule   string `json:"rule,omitempty"`
	DueMS  int64  `json:"due_ms,omitempty"`
	// Approvals is how many different people must approve; 0: one. ApprovedBy has.
	Approvals  int    `json:"approvals,omitempty"`
	ApprovedBy string `json:"approved_by,omitempty"`
}

// QueryAnswered is query.answered.
type QueryAnswered struct {
	Query    string        `json:"query"`
	Decision spec.Decision `json:"decision"`
	By       string        `json:"by,omitempty"`     // who answered, or the clock
	Why      string        `json:"why,omitempty"`    // the text of a decision about a call
	Always   string        `json:"always,omitempty"` // run or project: such calls are not asked about again
	Digest   string        `json:"digest,omitempty"`
	// Missing is how many more people must approve: the question is asked again. 0: it is answered.
	Missing int `json:"missing_approvals,omitempty"`
}

// AgentFinished is agent.finished.
type AgentFinished struct {
	Name    string      `json:"name"`
	Reason  spec.Reason `json:"stop_reason"`
	Partial bool        `json:"partial"`
	Detail  string      `json:"detail,omitempty"`
	Text    string      `json:"text,omitempty"`
	Turns   int         `json:"turns"`
	Calls   int         `json:"tool_calls"`
	Journal string      `json:"journal,omitempty"` // of an agent that did not complete
	// Usage is what replies reported. What the supervisor charges for calls of unknown usage, such as those that a crash
	// cut off, is in AgentResult.Tokens and BudgetResult.Unknown.
	Usage model.Usage `json:"usage"`
}

// TurnStarted is turn.started.
type TurnStarted struct {
	Transition  spec.Transition `json:"transition,omitempty"`
	Reservation int             `json:"reservation"`
	MaxOutput   int64           `json:"max_output_tokens"`
	Policy      *PolicyVerdict  `json:"policy,omitempty"` // the rule that began the turn, or made it the last
}

// TurnFinished is turn.finished: Transition is why the loop goes on, empty at the end.
type TurnFinished struct {
	Transition spec.Transition `json:"transition,omitempty"`
	Phase      string          `json:"phase"`
	Policy     *PolicyVerdict  `json:"policy,omitempty"` // that has vetoed the stop
}

// ModelStarted is model.started.
type ModelStarted struct {
	Model       string `json:"model"`
	Reservation int    `json:"reservation"`
	Purpose     string `json:"purpose,omitempty"` // summary, or empty for a turn
}

// ModelFinished is model.finished, model.retry and error.raised of a model.
type ModelFinished struct {
	Model      string           `json:"model"`
	Purpose    string           `json:"purpose,omitempty"`
	Stop       model.Stop       `json:"stop,omitempty"`
	Usage      model.Usage      `json:"usage"`
	UsageKnown bool             `json:"usage_known"`
	CostUSD    float64          `json:"cost_usd,omitempty"` // by the price of the model; 0: free or unknown
	TookMS     int64            `json:"took_ms"`
	Error      model.ErrorClass `json:"error,omitempty"`
	Detail     string           `json:"detail,omitempty"`
}

// Said is message.user, message.assistant and message.tombstoned.
type Said struct {
	Text  string `json:"text,omitempty"`
	Bytes int    `json:"bytes"`
	Calls int    `json:"calls,omitempty"`
	// Interrupted: the stream was cut here by a cancel.
	Interrupted bool `json:"interrupted,omitempty"`
}

// ToolCall is tool.proposed, tool.validated, tool.started and tool.finished, and the
// delegation kinds, where Child is set.
type ToolCall struct {
	Call    string      `json:"call"`
	Tool    string      `json:"tool"`
	Class   model.Class `json:"class,omitempty"`
	Child   spec.ID     `json:"child,omitempty"`
	Attempt int         `json:"attempt,omitempty"`
	Args    string      `json:"args,omitempty"`
	Error   bool        `json:"error,omitempty"`
	Bytes   int         `json:"bytes,omitempty"`
	Text    string      `json:"text,omitempty"`
	TookMS  int64       `json:"took_ms,omitempty"`
	// Ref names the whole result if Text is only a part of it; Size is the bytes of the whole.
	Ref  string `json:"ref,omitempty"`
	Size int64  `json:"size,omitempty"`
	// Metrics are what the tool has reported about the call, and MetricsLost how many reports broke a limit.
	Metrics     map[string]float64 `json:"metrics,omitempty"`
	MetricsLost int                `json:"metrics_lost,omitempty"`
	// Synthetic says that the loop wrote the result, because something kept the call from beginning or cut it off. It is
	// for this process only: the events of old logs stay as they were.
	Synthetic Synthetic `json:"-"`
}

// Synthetic is what a call had come to when the loop wrote its result.
type Synthetic string

// What calls had come to.
const (
	NeverStarted Synthetic = "never_started"
	Killed       Synthetic = "killed" // it ran; its outcome is unknown, or it was aborted
)

// Stop is stop.proposed, stop.allowed and stop.vetoed.
type Stop struct {
	Proposal int    `json:"proposal"`
	Why      string `json:"why,omitempty"`
	Final    bool   `json:"final,omitempty"`
	// Policy is the version of the policy that decided, and its rule.
	Policy *PolicyVerdict `json:"policy,omitempty"`
}

// PolicyVerdict names what decided: a version of the run's policy, and the rule of it that spoke against it.
type PolicyVerdict struct {
	Version int    `json:"version"`
	Rule    string `json:"rule,omitempty"`
}

// LimitReached is limit.soft.
type LimitReached struct {
	What string        `json:"what"`
	Used budget.Amount `json:"used,omitzero"`
}

// LimitNear is limit.near: the model was told that a limit is near.
type LimitNear struct {
	What  string `json:"what"`  // turns, time, tokens, money, tool_calls
	Level string `json:"level"` // near, last
	Left  int64  `json:"left"`  // turns, milliseconds, tokens, billionths of a US dollar, calls
	Limit int64  `json:"limit"`
}
