package agent

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/model"
)

// Manners are how a loop behaves beyond its limits: what it watches for in
// itself, who is asked before it acts, how it keeps its context small. They are
// data of the task, so a replay needs nothing else; the zero value switches all
// of it off, which is what logs written before they existed mean.
type Manners struct {
	// Hooks are asked or told at their points, in this order.
	Hooks []Hook `msgpack:"h,omitempty" json:"hooks,omitempty"`
	// Fallbacks are tried in order when a model fails for good; at most FallbacksMax.
	Fallbacks []Model  `msgpack:"f,omitempty" json:"fallbacks,omitempty"`
	Context   Context  `msgpack:"c,omitempty" json:"context"`
	Watch     Watch    `msgpack:"w,omitempty" json:"watch"`
	Breaker   Breaker  `msgpack:"b,omitempty" json:"breaker"`
	Require   Require  `msgpack:"r,omitempty" json:"require"`
	Continue  Continue `msgpack:"n,omitempty" json:"continue"`
	// Ask: a person may be asked. Without it what needs a person ends the loop.
	Ask bool `msgpack:"a,omitempty" json:"ask,omitempty"`
	// Journal: the agent keeps a run journal by its three tools.
	Journal bool `msgpack:"j,omitempty" json:"journal,omitempty"`
	// Kin: it may delegate in the background and by a schema, and agents of the run
	// may send messages to each other.
	Kin bool `msgpack:"k,omitempty" json:"kin,omitempty"`
	// Vouch: no side effect begins before the supervisor has vouched for the log
	// of the life in force.
	Vouch bool `msgpack:"v,omitempty" json:"vouch,omitempty"`
	// Reask: a call that hooks have let through on one node and that is to begin on
	// another is asked about there too.
	Reask bool `msgpack:"e,omitempty" json:"reask,omitempty"`
	// ToolRetries is how often a call of a read or idempotent tool is run again
	// after a transient failure; 0 never.
	ToolRetries int `msgpack:"t,omitempty" json:"tool_retries,omitempty"`
	// PatienceMS is how long the loop waits at the gate of a model that refuses
	// everybody; 0: each refusal is a failed attempt.
	PatienceMS int64 `msgpack:"g,omitempty" json:"patience_ms,omitempty"`
	// Dynamic is the part of the system prompt that stands behind the cache
	// breakpoint; Task.System is the stable part before it (package prompt).
	Dynamic string `msgpack:"y,omitempty" json:"dynamic,omitempty"`
}

// FallbacksMax bounds the chain of models behind the first.
const FallbacksMax = 3

// HookPoint is a place of the loop where hooks are called.
type HookPoint string

// Hook points. The loop waits at a gate until all of its hooks have answered;
// at the others it goes on, and an answer can only add a message to the next turn.
const (
	HookContext     HookPoint = "context"       // gate before a model call: may reshape what is sent this turn
	HookInput       HookPoint = "input"         // gate before a model call: guardrail on what is sent
	HookOutput      HookPoint = "output"        // gate after a reply, before its tools: guardrail
	HookSampled     HookPoint = "post_sampling" // told of a reply, before its tools
	HookPreTool     HookPoint = "pre_tool"      // gate before a call
	HookToolError   HookPoint = "tool_error"    // gate after a call that failed
	HookPostTool    HookPoint = "post_tool"     // told of a result
	HookStop        HookPoint = "stop"          // gate before a stop is proposed
	HookStopFailure HookPoint = "stop_failure"  // told that the model's provider failed
)

// Gates are the points at which the loop waits.
var gates = []HookPoint{HookContext, HookInput, HookOutput, HookPreTool, HookToolError, HookStop}

// Gate reports whether the loop waits at a point.
func (p HookPoint) Gate() bool { return slices.Contains(gates, p) }

// Hook is code of the user that the shell runs: a command line, or a Go function
// registered under the hook's name.
type Hook struct {
	Name  string    `msgpack:"n" json:"name"`
	Point HookPoint `msgpack:"p" json:"point"`
	// Tools is a regular expression on tool names, for pre_tool, tool_error and
	// post_tool; "" matches all.
	Tools string `msgpack:"t,omitempty" json:"tools,omitempty"`
	// Command is a command line; "" is the Go function of that name.
	Command   string `msgpack:"c,omitempty" json:"command,omitempty"`
	TimeoutMS int64  `msgpack:"o,omitempty" json:"timeout_ms,omitempty"` // 0: HookTimeoutMS
	// Failing is what counts when the hook crashes, hangs or makes no sense: ""
	// goes on as if it were not there, any other word is its decision.
	Failing HookDecision `msgpack:"f,omitempty" json:"failing,omitempty"`
	// Report: its decision is told and has no effect.
	Report bool `msgpack:"r,omitempty" json:"report,omitempty"`
	// Of is whose hook it is: OfRoot, OfChild, or "" for every agent's.
	Of string `msgpack:"w,omitempty" json:"of,omitempty"`
	// Rules are what a Go function is to go by, in a form of its own.
	Rules string `msgpack:"u,omitempty" json:"rules,omitempty"`
}

// Whose hook a hook is.
const (
	OfRoot  = "root"
	OfChild = "child"
)

// HookTimeoutMS is how long a hook may take where it names no time.
const HookTimeoutMS = 60_000

// HookDecision is what a hook answered.
type HookDecision string

// Decisions of hooks. Which of them a point knows: see hooks.go.
const (
	HookPass     HookDecision = ""         // nothing against it
	HookAllow    HookDecision = "allow"    // pre_tool: without asking further
	HookDeny     HookDecision = "deny"     // pre_tool: the call gets Text as an error result; input, output: not passed, escalates
	HookAsk      HookDecision = "ask"      // pre_tool: a person decides
	HookSkip     HookDecision = "skip"     // pre_tool: not run, Text is a normal result
	HookOverride HookDecision = "override" // pre_tool, tool_error: Text is the result; with Args the call runs with these
	HookBlock    HookDecision = "block"    // stop: go round again with Text
	HookPrevent  HookDecision = "prevent"  // stop: end here; tool_error: end as tool_failure; pre_tool: end as policy_blocked
	HookTrip     HookDecision = "trip"     // input, output: end as guardrail
)

// HookAnswer is one hook's answer.
type HookAnswer struct {
	Hook     string          `msgpack:"h"`
	Decision HookDecision    `msgpack:"d,omitempty"`
	Text     string          `msgpack:"t,omitempty"` // for the model, at most HookTextMax bytes
	Args     string          `msgpack:"a,omitempty"` // JSON: pre_tool, the arguments to run with instead
	Messages []model.Message `msgpack:"m,omitempty"` // context: what is sent this turn
	// Sent is how many messages a context hook answered with, where the next one
	// has changed them again.
	Sent int `msgpack:"s,omitempty"`
	// Failed says why the hook gave no verdict; Decision is then its default.
	Failed string `msgpack:"f,omitempty"`
	TookMS int64  `msgpack:"o,omitempty"`
}

// HookTextMax bounds what one hook may say.
const HookTextMax = 8 << 10

// Context is how a loop keeps its prompt within the model's window. Percent 0
// leaves only the reactive compaction when the provider says "too long", and
// that only if Tail is set.
type Context struct {
	Percent   int    `msgpack:"p,omitempty" json:"percent,omitempty"` // of the window, when compaction begins
	Tail      int    `msgpack:"t,omitempty" json:"tail,omitempty"`    // messages kept verbatim
	PruneTail int    `msgpack:"u,omitempty" json:"prune_tail,omitempty"`
	Within    int    `msgpack:"w,omitempty" json:"within,omitempty"` // turns within which the next stage of the ladder follows
	Summary   int64  `msgpack:"s,omitempty" json:"summary_tokens,omitempty"`
	Model     *Model `msgpack:"m,omitempty" json:"model,omitempty"` // of summaries; nil: the agent's own
}

// Defaults of Context.
const (
	CompactPercent = 70
	CompactTail    = 10
	PruneTail      = 4
	LadderTurns    = 20
	SummaryTokens  = 1024
	RecoveriesMax  = 4 // of one loop: prunes, questions, reactive and failed compactions
)

// Watch is loop detection over the last Of calls. Of 0 is off.
type Watch struct {
	Of        int `msgpack:"o,omitempty" json:"of,omitempty"`
	Identical int `msgpack:"i,omitempty" json:"identical,omitempty"` // same tool and arguments
	Pattern   int `msgpack:"p,omitempty" json:"pattern,omitempty"`   // same tool, other arguments
	Stuck     int `msgpack:"s,omitempty" json:"stuck,omitempty"`     // same tool, same result
	// Polling are tools that are made to be called again.
	Polling []string `msgpack:"l,omitempty" json:"polling,omitempty"`
}

// Breaker escalates what fails again and again. 0 is off.
type Breaker struct {
	Failures  int `msgpack:"f,omitempty" json:"failures,omitempty"`  // of one tool on one target, in a row
	Forbidden int `msgpack:"b,omitempty" json:"forbidden,omitempty"` // proposals of forbidden tools, in a row
}

// Require is what a claimed completion must have.
type Require struct {
	Evidence []Evidence `msgpack:"e,omitempty" json:"evidence,omitempty"`
	Schema   string     `msgpack:"s,omitempty" json:"schema,omitempty"` // JSON Schema of the answer
	Tries    int        `msgpack:"t,omitempty" json:"tries,omitempty"`  // how often it is sent back; 0: RequireTries
}

// RequireTries is how often a completion that lacks something is sent back.
const RequireTries = 2

// Evidence is a successful result of a tool that must be in the record.
type Evidence struct {
	Tool     string `msgpack:"t" json:"tool"`
	Contains string `msgpack:"c,omitempty" json:"contains,omitempty"` // in the result; "" is any
}

// Continue makes the loop use up a budget of output tokens before it may stop.
type Continue struct {
	Tokens  int64 `msgpack:"t,omitempty" json:"tokens,omitempty"` // 0: off
	Percent int   `msgpack:"p,omitempty" json:"percent,omitempty"`
	Small   int64 `msgpack:"s,omitempty" json:"small,omitempty"`  // a continuation that brings fewer is small
	Rounds  int   `msgpack:"r,omitempty" json:"rounds,omitempty"` // small ones in a row that end it
}

// Defaults of Watch, Breaker, Continue and tool retries (CONFORMANCE A22, A24, A28, C5).
const (
	WatchOf          = 6
	WatchIdentical   = 3
	WatchPattern     = 4
	WatchStuck       = 3
	BreakerFailures  = 2
	BreakerForbidden = 3
	ContinuePercent  = 90
	ContinueSmall    = 500
	ContinueRounds   = 3
	ToolRetriesMax   = 3
)

// DefaultManners are what a new run gets where nobody says otherwise.
func DefaultManners() Manners {
	return Manners{
		Context:     Context{Percent: CompactPercent, Tail: CompactTail, PruneTail: PruneTail, Within: LadderTurns, Summary: SummaryTokens},
		Watch:       Watch{Of: WatchOf, Identical: WatchIdentical, Pattern: WatchPattern, Stuck: WatchStuck},
		Breaker:     Breaker{Failures: BreakerFailures, Forbidden: BreakerForbidden},
		ToolRetries: ToolRetriesMax, PatienceMS: PatienceMS, Ask: true, Journal: true, Kin: true, Vouch: true, Reask: true,
	}
}

// Over puts what a definition says over what its run says: hooks of both are
// called, the run's first; anything else that is set counts.
func (m Manners) Over(run Manners) Manners {
	run.Hooks = slices.Concat(run.Hooks, m.Hooks)
	if m.Fallbacks != nil {
		run.Fallbacks = m.Fallbacks
	}
	run.Context = m.Context.over(run.Context)
	polling := slices.Concat(run.Watch.Polling, m.Watch.Polling)
	if m.Watch.Of != 0 {
		run.Watch = m.Watch
	}
	run.Watch.Polling = polling
	if m.Breaker != (Breaker{}) {
		run.Breaker = m.Breaker
	}
	if m.Require.Evidence != nil || m.Require.Schema != "" {
		run.Require = m.Require
	}
	if m.Continue != (Continue{}) {
		run.Continue = m.Continue
	}
	run.ToolRetries = cmp.Or(m.ToolRetries, run.ToolRetries)
	run.PatienceMS = cmp.Or(m.PatienceMS, run.PatienceMS)
	run.Dynamic = cmp.Or(m.Dynamic, run.Dynamic)
	return run
}

func (c Context) over(run Context) Context {
	run.Percent = cmp.Or(c.Percent, run.Percent)
	run.Tail = cmp.Or(c.Tail, run.Tail)
	run.PruneTail = cmp.Or(c.PruneTail, run.PruneTail)
	run.Within = cmp.Or(c.Within, run.Within)
	run.Summary = cmp.Or(c.Summary, run.Summary)
	if c.Model != nil {
		run.Model = c.Model
	}
	return run
}
