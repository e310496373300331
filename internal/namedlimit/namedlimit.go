// Package namedlimit has the limits of an agent under the names by which users set them.
package namedlimit

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
)

// Limit is a limit of one agent under the names by which users set it.
type Limit struct {
	// Key is its name in an agent file, under x-troupe.limits.
	Key string
	// Request is its name for all agents of a run: a field of a request, a setting, and, with
	// hyphens, a flag. "": an agent file alone sets it.
	Request string
	// Most is the highest value. Least is 1, or spec.Off where the limit may be "none at all".
	Least, Most int64
	// Text says what it limits, for help and schemas.
	Text string

	field func(*spec.Limits) (*int, *int64)
}

// Highest values of limits: beyond them a limit would say nothing.
const (
	outputMax   = 1 << 20
	closingMax  = 1 << 16
	countMax    = 1 << 20
	parallelMax = 64
	replyMax    = 256
	inARowMax   = 100
	retriesMost = 10
)

// All are the limits of an agent that have a number of their own. Turns, tokens, money and
// time have other keys in agent files: maxTurns, budget, timeout.
func All() []Limit { return slices.Clone(all) }

var all = listLimits()

func listLimits() []Limit {
	count := func(field func(*spec.Limits) *int) func(*spec.Limits) (*int, *int64) {
		return func(l *spec.Limits) (*int, *int64) { return field(l), nil }
	}
	tokens := func(field func(*spec.Limits) *int64) func(*spec.Limits) (*int, *int64) {
		return func(l *spec.Limits) (*int, *int64) { return nil, field(l) }
	}
	return []Limit{
		{"max_output_tokens", "max_output_tokens", 1, outputMax, "most output tokens of one model call (default: the model's own limit, but at most an eighth of the budget; 4,096 if it is unknown)",
			tokens(func(l *spec.Limits) *int64 { return &l.Output })},
		{"closing_tokens", "closing_tokens", 1, closingMax, "output tokens that are kept for the closing turn of each agent (default 768)",
			tokens(func(l *spec.Limits) *int64 { return &l.Closing })},
		{"max_tool_calls", "max_agent_tool_calls", 1, countMax, "most tool calls of one agent (default: those of the run)",
			count(func(l *spec.Limits) *int { return &l.Calls })},
		{"max_children", "", 1, countMax, "most live children of the agent (default: those of the run)",
			count(func(l *spec.Limits) *int { return &l.Children })},
		{"max_reply_calls", "max_reply_calls", 1, replyMax, "most tool calls of one reply; the rest is answered \"not run\" (default 64)",
			count(func(l *spec.Limits) *int { return &l.ReplyCalls })},
		{"max_parallel_tools", "max_parallel_tools", 1, parallelMax, "most reading tools of one agent that run at once (default 4)",
			count(func(l *spec.Limits) *int { return &l.Parallel })},
		{"max_retries", "max_retries", spec.Off, retriesMost, "attempts after a failed model call, for each model; -1 for none (default 3)",
			count(func(l *spec.Limits) *int { return &l.Retries })},
		{"max_malformed", "max_malformed", 1, inARowMax, "useless replies in a row that end an agent (default 3)",
			count(func(l *spec.Limits) *int { return &l.Malformed })},
		{"max_cuts", "max_cuts", spec.Off, inARowMax, "continuations in a row after a reply that was cut at its output limit; -1 for none (default 3)",
			count(func(l *spec.Limits) *int { return &l.Cuts })},
		{"max_vetoes", "max_vetoes", spec.Off, inARowMax, "how often in a row a policy or a hook may send an answer back; -1 for never (default 8)",
			count(func(l *spec.Limits) *int { return &l.Vetoes })},
		{"max_handoffs", "max_handoffs", spec.Off, inARowMax, "how often a conversation may be handed off from agent to agent within a run; -1 for never (default 8)",
			count(func(l *spec.Limits) *int { return &l.Handoffs })},
	}
}

// Set sets the limit. The value is one that Allows.
func (n Limit) Set(l *spec.Limits, v int64) {
	if count, tokens := n.field(l); count != nil {
		*count = int(v)
	} else {
		*tokens = v
	}
}

// Allows reports whether the limit may have the value; 0 is its default.
func (n Limit) Allows(v int64) bool { return v >= min(0, n.Least) && v <= n.Most }
