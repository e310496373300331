package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/hook"
	"github.com/troupe-run/troupe/internal/permission/rule"
	"github.com/troupe-run/troupe/internal/toolset/shell"
)

// This file is the approval hook of runs that a release before permissions began: their logs name it, so it stays.
// Newer runs have permissions, and PrepareQuestion.

// Rules are the rules of such a task about calls that need no approval.
type Rules struct {
	Allow []string `json:"allow,omitempty"` // rules of shell: the operator's, and of trusted files
	// Request are rules of shell that the request brought: like Yes, they count only where the
	// sandbox confines commands, because nothing proves who wrote them.
	Request []string `json:"request,omitempty"`
	Deny    []string `json:"deny,omitempty"`  // commands of shell that never run
	Yes     bool     `json:"yes,omitempty"`   // any command that the sandbox confines
	Asked   []string `json:"asked,omitempty"` // tools that always need approval
	// DenyOnly: the agent takes over the rules of its parent, so only Deny applies.
	DenyOnly bool `json:"deny_only,omitempty"`
}

// NewHook returns the hook with these rules before calls of some tools.
func (l Rules) NewHook(tools ...string) spec.Hook {
	for i, name := range tools {
		tools[i] = regexp.QuoteMeta(name)
	}
	rules, err := json.Marshal(l)
	if err != nil {
		rules = nil // strings always marshal; without rules nothing is allowed
	}
	return spec.Hook{Name: spec.ApprovalHook, Point: spec.HookPreTool, Tools: strings.Join(tools, "|"), Failing: spec.HookDeny, Rules: string(rules)}
}

// DecideApproval decides whether a call needs approval: it is the function of spec.ApprovalHook.
func DecideApproval(ctx context.Context, c hook.Call) (spec.HookAnswer, error) {
	return DecideWithProtections(ctx, c, MissingProtections)
}

// DecideWithProtections is DecideApproval with a function that reports which sandbox protections this
// system lacks. It runs on the node that would execute the call, and the question to the user names what
// the system does not enforce. If another node lacks other protections, the user is asked again.
func DecideWithProtections(ctx context.Context, c hook.Call, missing func(context.Context) string) (spec.HookAnswer, error) {
	var l Rules
	if err := json.Unmarshal([]byte(c.Hook.Rules), &l); err != nil {
		return spec.HookAnswer{}, fmt.Errorf("its rules cannot be read: %w", err)
	}
	ask := func(why string) (spec.HookAnswer, error) {
		if len(c.Data.Args) > QuestionBytesMax {
			return spec.HookAnswer{Decision: spec.HookDeny, Text: fmt.Sprintf("a person must agree to it, and it is too long to be shown: %d bytes, at most %d", len(c.Data.Args), QuestionBytesMax)}, nil
		}
		if c.Data.Tool == shell.Name {
			if protections := missing(ctx); protections != "" {
				why += "; this system does not enforce: " + protections
			}
		}
		return spec.HookAnswer{Decision: spec.HookAsk, Text: why}, nil
	}
	var args struct {
		Command string `json:"command"`
	}
	found := rule.Clear
	if c.Data.Tool == shell.Name {
		if err := json.Unmarshal([]byte(c.Data.Args), &args); err != nil {
			return spec.HookAnswer{}, fmt.Errorf("the arguments cannot be read: %w", err)
		}
		found = rule.Find(l.Deny, args.Command)
	}
	switch {
	case found == rule.Denied:
		return spec.HookAnswer{Decision: spec.HookDeny, Text: "a rule denies a command of it; the rules deny: " + strings.Join(l.Deny, ", ")}, nil
	case slices.Contains(l.Asked, c.Data.Tool):
		return ask("what it does cannot be undone")
	case found == rule.Unclear:
		return ask("it is decided only when it runs whether a rule denies a command of it")
	case l.DenyOnly:
		return spec.HookAnswer{}, nil
	}
	if rule.Allowed(l.Allow, args.Command) {
		return spec.HookAnswer{}, nil
	}
	return approveWhereConfined(l, args.Command, func() bool { return missing(ctx) == "" }, ask)
}

// approveWhereConfined applies the rules that count only where the sandbox confines a
// command.
func approveWhereConfined(l Rules, command string, isConfined func() bool, ask func(string) (spec.HookAnswer, error)) (spec.HookAnswer, error) {
	ruled := rule.Allowed(slices.Concat(l.Allow, l.Request), command)
	switch {
	case !ruled && !l.Yes:
		return ask("no rule allows this command")
	case isConfined():
		return spec.HookAnswer{}, nil
	case l.Yes:
		return ask("--yes does not count for commands here")
	}
	return ask("rules of the request do not count for commands here")
}
