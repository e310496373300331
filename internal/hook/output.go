package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// commandOutput is what a command may print: the fields that other agent tools know, then troupe's
// own. Unknown fields are ignored.
type commandOutput struct {
	Continue   *bool  `json:"continue"`
	StopReason string `json:"stopReason"`
	Decision   string `json:"decision"`
	Severity   string `json:"severity"` // of a guardrail's decision
	Reason     string `json:"reason"`
	Specific   struct {
		Permission string          `json:"permissionDecision"`
		Reason     string          `json:"permissionDecisionReason"`
		Input      json.RawMessage `json:"updatedInput"`
		Context    string          `json:"additionalContext"`
	} `json:"hookSpecificOutput"`

	Text     string           `json:"text"`     // for the model
	Result   string           `json:"result"`   // of the call, with the decision override
	Args     json.RawMessage  `json:"args"`     // of the call, instead of its own
	Messages *[]model.Message `json:"messages"` // that are sent instead of the prompt
	System   *string          `json:"system"`   // that is sent instead of the first part of the system prompt
}

// toAnswer returns the meaning of an output at a hook point.
func (o commandOutput) toAnswer(p spec.HookPoint) (spec.HookAnswer, error) {
	var a spec.HookAnswer
	decision, err := o.toDecision(p)
	if err != nil {
		return a, err
	}
	a.Decision, a.Severity = decision, spec.Severity(o.Severity)
	args := o.Args
	if len(args) == 0 {
		args = o.Specific.Input
	}
	if len(args) > 0 && !bytes.Equal(args, []byte("null")) {
		var b bytes.Buffer
		if err := json.Compact(&b, args); err != nil {
			return a, fmt.Errorf("its arguments: %w", err)
		}
		a.Args = b.String()
	}
	a.System = o.System
	if o.Messages != nil {
		a.Messages = *o.Messages
		if a.Messages == nil {
			a.Messages = []model.Message{}
		}
	}
	switch {
	case o.stopsRun():
		a.Text = joinTexts(o.StopReason, o.Reason, o.Specific.Reason, o.Text)
	case decision == spec.HookPass && (o.Decision == "block" || o.Decision == "deny"):
		a.Text = joinTexts(o.Reason, o.Text, o.Specific.Context) // the hook is only notified: its text is all it can give
	case decision == spec.HookPass, decision == spec.HookAllow:
		a.Text = joinTexts(o.Text, o.Specific.Context) // a reason to pass is for people
	case decision == spec.HookOverride:
		a.Text = joinTexts(o.Result, o.Text, o.Reason)
	default:
		a.Text = joinTexts(o.Reason, o.Specific.Reason, o.Text, o.Specific.Context)
	}
	return a, nil
}

func (o commandOutput) stopsRun() bool { return o.Continue != nil && !*o.Continue }

// toDecision translates the decision of an output for the point.
func (o commandOutput) toDecision(p spec.HookPoint) (spec.HookDecision, error) {
	if o.stopsRun() {
		return haltDecision(p), nil
	}
	word := o.Decision
	if p == spec.HookPreTool && o.Specific.Permission != "" {
		word = o.Specific.Permission
	}
	switch word {
	case "", "pass":
		return spec.HookPass, nil
	case "approve", "allow":
		if p == spec.HookPreTool {
			return spec.HookAllow, nil
		}
		return spec.HookPass, nil
	case "block":
		return blockDecision(p), nil
	}
	if d := spec.HookDecision(word); p.Knows(d) {
		return d, nil
	}
	if !p.Gate() {
		return spec.HookPass, nil
	}
	return "", fmt.Errorf("%q is not a decision at %s", clipText(word, wordShown), p)
}

const wordShown = 64

// joinTexts joins the texts that are not empty.
func joinTexts(texts ...string) string {
	var parts []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n")
}
