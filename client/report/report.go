// Package report makes the report of a run from its events: what each step of each agent cost, step by step,
// and their sums. The events come from the logs of the run, so the report needs no store of its own.
package report

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
)

// Limits of the texts in a report.
const (
	argumentBytesMax = 300
	errorBytesMax    = 300
)

// Report is what `troupe report -o json` prints. Its sums are those of its steps.
type Report struct {
	Run        string      `json:"run_id"`
	Ended      bool        `json:"ended"`
	Reason     spec.Reason `json:"stop_reason,omitempty"`
	StartedAt  string      `json:"started_at,omitempty"` // RFC 3339
	EndedAt    string      `json:"ended_at,omitempty"`
	DurationMS int64       `json:"duration_ms"` // until the newest event, of a run that has not ended
	Totals
	// CostEstimated: list prices of models behind a gateway, or charges for agents of other
	// programs, are part of the costs.
	CostEstimated bool `json:"cost_estimated,omitempty"`
	// ChargedUnknown is how many tokens the run was charged for calls of unknown usage, among them those that a process did
	// not survive: no step has them. ChargedUSD is then what the run was charged in all.
	ChargedUnknown int64   `json:"charged_unknown,omitempty"`
	ChargedUSD     float64 `json:"charged_usd,omitempty"`
	Agents         []Agent `json:"agents"`
	Steps          []*Step `json:"steps"` // in the order in which they began
	// Guardrails are what guardrails found, in the order of time.
	Guardrails []Guardrail `json:"guardrails,omitempty"`
}

// Guardrail is a prompt, a reply or a result that a guardrail did not pass.
type Guardrail struct {
	Agent    string            `json:"agent"`
	Turn     int               `json:"turn"`
	Name     string            `json:"guardrail"`
	Point    spec.HookPoint    `json:"point"`
	Decision spec.HookDecision `json:"decision"`
	Severity spec.Severity     `json:"severity"`
	Call     string            `json:"call,omitempty"` // of a result
	Why      string            `json:"why,omitempty"`
	Report   bool              `json:"report,omitempty"` // it had no effect
}

// Totals are sums over steps.
type Totals struct {
	Steps    int         `json:"num_steps"`
	Attempts int         `json:"model_attempts"`
	Calls    int         `json:"tool_calls"` // those that began, of tools and delegations
	Skipped  int         `json:"skipped_calls"`
	Failed   int         `json:"failed_calls"` // of those that began
	ModelMS  int64       `json:"model_ms"`
	ToolMS   int64       `json:"tool_ms"` // without delegations
	Usage    model.Usage `json:"usage"`
	// CostUSD is the price of the usage that providers have reported; nil: the price of a model is not known, or another
	// program did not say what a call has cost. An attempt of unknown usage costs what was reserved for it, which only the
	// result of the run has.
	CostUSD   *float64 `json:"cost_usd"`
	CostKnown bool     `json:"cost_known"` // CostUSD is not nil
	Unknown   int      `json:"attempts_of_unknown_usage"`
}

// Agent is the part of one agent in the sums.
type Agent struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"`
	Totals
}

// Step is one turn of an agent: a reply of the model, and the calls of that reply. Compactions before the reply
// are attempts of the step.
type Step struct {
	Agent     string      `json:"agent"`
	Turn      int         `json:"turn"`
	StartedAt string      `json:"started_at"`
	Model     string      `json:"model,omitempty"`
	Finish    model.Stop  `json:"finish_reason,omitempty"` // of the newest reply
	ModelMS   int64       `json:"model_ms"`                // of all attempts
	ToolMS    int64       `json:"tool_ms"`                 // of all calls, without delegations
	Usage     model.Usage `json:"usage"`
	CostUSD   *float64    `json:"cost_usd"` // nil: it is not known
	CostKnown bool        `json:"cost_known"`
	// Transition is why the loop went on after the step; "": it did not, or has not yet.
	Transition spec.Transition `json:"transition,omitempty"`
	Attempts   []Attempt       `json:"attempts"`
	Calls      []*Call         `json:"calls"`
}

// Attempt is one request to a model.
type Attempt struct {
	Model      string           `json:"model"`
	Purpose    string           `json:"purpose,omitempty"` // summary, or empty for a turn
	Finish     model.Stop       `json:"finish_reason,omitempty"`
	LatencyMS  int64            `json:"latency_ms"`
	Usage      model.Usage      `json:"usage"`
	UsageKnown bool             `json:"usage_known"`
	CostUSD    float64          `json:"cost_usd,omitempty"`
	Error      model.ErrorClass `json:"error,omitempty"`
	Detail     string           `json:"detail,omitempty"`
}

// Call is one tool call, or a delegation.
type Call struct {
	ID    string      `json:"id"`
	Tool  string      `json:"tool"`
	Class model.Class `json:"class,omitempty"`
	Child string      `json:"child,omitempty"` // the agent that a delegation began
	// Arguments are those that the call began with, or was proposed with, shortened. They are empty on nodes whose
	// events have no texts.
	Arguments     string `json:"arguments"`
	ArgumentBytes int    `json:"argument_bytes"`
	ResultBytes   int64  `json:"result_bytes"` // of the whole result
	// LatencyMS is how long the attempts took together; of a delegation, the time until its answer.
	LatencyMS int64  `json:"latency_ms"`
	Attempts  int    `json:"attempts"`
	Ended     bool   `json:"ended"`
	Skipped   bool   `json:"skipped"` // it did not begin: refused, denied, or answered by a hook
	Error     string `json:"error,omitempty"`
	// Metrics are what the tool has reported about the call.
	Metrics     map[string]float64 `json:"metrics,omitempty"`
	MetricsLost int                `json:"metrics_lost,omitempty"`

	begun time.Time
}

// runViewer returns the state of a run, which the events lack: it says whether the prices of its models are known.
type runViewer interface {
	Get(ctx context.Context, run string) (client.RunInfo, error)
}

// Read makes the report of a run.
func Read(ctx context.Context, c client.EventReader, run string) (Report, error) {
	b := newBuilder(run)
	err := c.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		b.add(e)
		return nil
	})
	if err != nil {
		return Report{}, err
	}
	if viewer, ok := c.(runViewer); ok && !b.report.Ended { // the end of a run says it itself
		if info, err := viewer.Get(ctx, run); err == nil && info.Result != nil {
			b.unpriced = !info.Result.CostKnown
		}
	}
	return b.finish(), nil
}

var zeroStep = Step{Attempts: []Attempt{}, Calls: []*Call{}}

// stampOf reads the time of an event.
func stampOf(e client.Event) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, e.TS) // an event without a time counts as the oldest
	return at
}

// isDelegation reports whether a kind is about a delegation.
func isDelegation(kind event.Kind) bool {
	return kind == event.KindDelegationRequested || kind == event.KindDelegationBackground || kind == event.KindDelegationFinished
}
