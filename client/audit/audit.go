// Package audit makes the audit of a run from its events: which calls with a side effect it made or was refused,
// who or what decided about each, on which arguments, and what changed the rules of the run meanwhile. The events
// come from the logs of the run.
package audit

import (
	"context"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
)

// Limits of the texts in an audit; the digest is of the whole call.
const (
	argumentBytesMax = 2000
	textBytesMax     = 300
)

// Audit is what `troupe audit -o json` prints.
type Audit struct {
	Run     string   `json:"run_id"`
	Ended   bool     `json:"ended"`
	Entries []*Entry `json:"entries"` // in the order of time
}

// Kinds of entries.
const (
	KindCall   = "call"
	KindRule   = "rule"   // a person has added a rule
	KindPolicy = "policy" // the policy of the run was replaced
	// KindPermissions: an agent and those below it may do less.
	KindPermissions = "permissions"
	// KindContext: the system prompt or the tools of an agent were changed.
	KindContext = "context"
	KindLimits  = "limits" // the limits of the run were changed, or it was frozen
	KindRun     = "run"    // the run began or ended
	// KindCancel: the run, or an agent, was canceled.
	KindCancel = "cancel"
	KindTaint  = "taint" // an agent has read text from outside
	KindAgent  = "agent" // a question that is not about a call was answered
	// KindGuardrail: a guardrail did not pass a prompt, a reply or a result.
	KindGuardrail = "guardrail"
)

// Entry is one call, or one change of what the run may do.
type Entry struct {
	At    string `json:"at"` // RFC 3339: of a call, when the model asked for it
	Kind  string `json:"kind"`
	Agent string `json:"agent,omitempty"`
	Name  string `json:"agent_name,omitempty"`
	Turn  int    `json:"turn,omitempty"`
	Call  *Call  `json:"call,omitempty"`
	Text  string `json:"text,omitempty"` // of entries that are no call
	// Severity is that of a guardrail's finding.
	Severity spec.Severity `json:"severity,omitempty"`
	By       string        `json:"by,omitempty"` // name of the person or program that made the change; "": unknown
}

// Outcomes of calls.
const (
	NotBegun  = "not run"
	Running   = "running"
	Waiting   = "waits for an answer"
	Succeeded = "succeeded"
	Failed    = "failed"
	Unknown   = "unknown" // it began, and its end is not known
)

// Call is a call that has a side effect, or about which a rule, a hook or a person decided.
type Call struct {
	ID    string      `json:"id"`
	Tool  string      `json:"tool"`
	Class model.Class `json:"class,omitempty"`
	// Arguments are those that the call began with, or was proposed with, shortened, with control characters
	// escaped. They are empty on nodes whose events have no texts.
	Arguments string `json:"arguments"`
	// Digest is the SHA-256 of the tool as the model was offered it and of the arguments, if the permissions or a
	// person decided: an approval is for one digest. ArgumentDigest is that of the canonical arguments alone.
	Digest         string `json:"digest,omitempty"`
	ArgumentDigest string `json:"arguments_sha256,omitempty"`

	Decisions []Decision `json:"decisions"` // none: the call needed none
	Question  *Question  `json:"question,omitempty"`
	Begun     string     `json:"begun_at,omitempty"` // of the newest attempt; "": it did not begin
	Attempts  int        `json:"attempts"`
	Ended     string     `json:"ended_at,omitempty"`
	Outcome   string     `json:"outcome"`
	// Lost is how many attempts began whose end is not known.
	Lost        int    `json:"lost_attempts,omitempty"`
	ResultBytes int64  `json:"result_bytes"`
	Error       string `json:"error,omitempty"`
}

// Authors of decisions.
const (
	ByRule   = "rule"
	ByMode   = "mode"
	ByYes    = "yes"  // --yes
	ByTool   = "tool" // the default of the tool, or what the agent may use
	ByHook   = "hook"
	ByPerson = "person"
	ByClock  = "clock" // a question expired
)

// Decision is what a rule, the permission mode, --yes, a hook, a person or the clock decided about a call.
type Decision struct {
	At       string            `json:"at"`
	Author   string            `json:"author"`
	By       []string          `json:"by,omitempty"` // hooks, or who answered
	Decision spec.HookDecision `json:"decision"`
	Rule     string            `json:"rule,omitempty"`
	From     string            `json:"from,omitempty"` // where the rule was written
	Why      string            `json:"why,omitempty"`
	// Advance: the call was allowed before it was made, by a rule or the mode.
	Advance bool   `json:"in_advance,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Query is the question that a person or the clock decided, Always how long the answer holds: run or project.
	Query  string `json:"query,omitempty"`
	Always string `json:"always,omitempty"`
	// Arguments replace those of the call.
	Arguments string `json:"arguments,omitempty"`
}

// Question is the newest question about a call.
type Question struct {
	Query   string      `json:"query"`
	At      string      `json:"asked_at"`
	Expires string      `json:"expires_at,omitempty"`
	Reason  spec.Reason `json:"reason"`
	Digest  string      `json:"digest,omitempty"`
	Open    bool        `json:"open"`
	// Approvals is how many different people must approve the call; 0: one.
	Approvals int `json:"approvals,omitempty"`
}

// Read makes the audit of a run.
func Read(ctx context.Context, c client.EventReader, run string) (Audit, error) {
	b := newBuilder(run)
	err := c.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		b.add(e)
		return nil
	})
	if err != nil {
		return Audit{}, err
	}
	return b.finish(), nil
}
