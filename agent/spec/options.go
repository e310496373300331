package spec

import (
	"cmp"
	"slices"
)

// LoopOptions configure a loop beyond its limits: how it detects repetition, which
// hooks and people it asks before it acts, how it keeps its context small. They
// are data of the task, so a replay needs nothing else; the zero value switches
// all of it off.
type LoopOptions struct {
	// Hooks are called at their points, in this order.
	Hooks []Hook `msgpack:"h,omitempty" json:"hooks,omitempty"`
	// Fallbacks are tried in order when a model fails for good; at most FallbacksMax.
	Fallbacks []Model  `msgpack:"f,omitempty" json:"fallbacks,omitempty"`
	Context   Context  `msgpack:"c,omitempty" json:"context"`
	Watch     Watch    `msgpack:"w,omitempty" json:"watch"`
	Breaker   Breaker  `msgpack:"b,omitempty" json:"breaker"`
	Require   Require  `msgpack:"r,omitempty" json:"require"`
	Continue  Continue `msgpack:"n,omitempty" json:"continue"`
	// AskPeople: a person may be asked. Without it, a need for a person ends the loop.
	AskPeople bool `msgpack:"a,omitempty" json:"ask_people,omitempty"`
	// Unattended forbids all questions to people, whatever AskPeople says. It binds all descendants.
	Unattended bool `msgpack:"un,omitempty" json:"unattended,omitempty"`
	// Obstacles: an agent that claims completion although calls were denied or failed is asked whether its task is done.
	Obstacles bool `msgpack:"o,omitempty" json:"obstacles,omitempty"`
	// DeclareFailure: the agent may declare by a tool that it failed or refuses.
	DeclareFailure bool `msgpack:"df,omitempty" json:"declare_failure,omitempty"`
	// QuestionMS is how long a question to a person stays open before it counts as denied; 0: for ever.
	QuestionMS int64 `msgpack:"q,omitempty" json:"question_timeout_ms,omitempty"`
	// Journal: the agent keeps a run journal by its three tools.
	Journal bool `msgpack:"j,omitempty" json:"journal,omitempty"`
	// ToolRetries is how often a call of a read or idempotent tool is run again
	// after a transient failure; 0 never.
	ToolRetries int `msgpack:"t,omitempty" json:"tool_retries,omitempty"`
	// PatienceMS is how long the loop waits for a model that throttles all callers; 0:
	// each refusal is a failed attempt.
	PatienceMS int64 `msgpack:"g,omitempty" json:"patience_ms,omitempty"`
	// LimitNotes tell the model when a limit is near.
	LimitNotes LimitNotes `msgpack:"ln,omitempty" json:"limit_notes,omitzero"`
	// Dynamic is the part of the system prompt after the cache breakpoint; Task.System
	// is the stable part before it (package prompt).
	Dynamic string `msgpack:"y,omitempty" json:"dynamic,omitempty"`
}

// Models are the routes of the additional models that loops with these options may call.
func (o LoopOptions) Models() (routes []string) {
	for _, m := range o.Fallbacks {
		routes = append(routes, m.Name)
	}
	if m := o.Context.Model; m != nil {
		routes = append(routes, m.Name)
	}
	return routes
}

// LimitNotes set when the model learns how much of its turns, time, tokens, money and tool calls remains: at the
// percentages of a limit that are used up, once for each. Near 0 is off.
type LimitNotes struct {
	Near int `msgpack:"n,omitempty" json:"near,omitempty"`
	Last int `msgpack:"l,omitempty" json:"last,omitempty"`
}

// Defaults of LimitNotes.
const (
	notesNear = 75
	notesLast = 90
)

// FallbacksMax bounds the number of models after the first.
const FallbacksMax = 3

const (
	// PatienceMS is how long a loop waits for one answer of its model.
	PatienceMS = 10 * 60 * 1000
	// PatienceElseMS is how long it waits where another model can take over.
	PatienceElseMS = 30 * 1000
	// PatienceMax is the longest that options may ask for.
	PatienceMax = 24 * 60 * 60 * 1000
)

// Context configures how a loop keeps its prompt within the model's window.
// Percent 0 leaves only the reactive compaction after the provider's error that
// the prompt is too long, and that only if Tail is set.
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
	// Apart is how many replies a model gets after one step of the ladder before the next step may follow.
	// 0: a step may follow at the next reply.
	Apart int `msgpack:"a,omitempty" json:"apart,omitempty"`
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
	watchApart       = 1
	BreakerFailures  = 2
	BreakerForbidden = 3
	ContinuePercent  = 90
	ContinueSmall    = 500
	ContinueRounds   = 3
	ToolRetriesMax   = 3
)

// DefaultLoopOptions are the options of a new run that sets none.
func DefaultLoopOptions() LoopOptions {
	return LoopOptions{
		Context:     Context{Percent: CompactPercent, Tail: CompactTail, PruneTail: PruneTail, Within: LadderTurns, Summary: SummaryTokens},
		Watch:       Watch{Of: WatchOf, Identical: WatchIdentical, Pattern: WatchPattern, Stuck: WatchStuck, Apart: watchApart},
		Breaker:     Breaker{Failures: BreakerFailures, Forbidden: BreakerForbidden},
		ToolRetries: ToolRetriesMax, PatienceMS: PatienceMS, AskPeople: true, Journal: true, Obstacles: true, DeclareFailure: true,
		LimitNotes: LimitNotes{Near: notesNear, Last: notesLast},
	}
}

// Merge applies the options of a definition over those of its run: hooks of both
// are called, the run's first; any other option that the definition sets counts.
func (m LoopOptions) Merge(run LoopOptions) LoopOptions {
	run.Hooks = slices.Concat(run.Hooks, m.Hooks)
	if m.Fallbacks != nil {
		run.Fallbacks = m.Fallbacks
	}
	run.Context = m.Context.merge(run.Context)
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
	run.LimitNotes = cmp.Or(m.LimitNotes, run.LimitNotes)
	run.QuestionMS = cmp.Or(m.QuestionMS, run.QuestionMS)
	run.Dynamic = cmp.Or(m.Dynamic, run.Dynamic)
	run.Unattended = run.Unattended || m.Unattended
	return run
}

func (c Context) merge(run Context) Context {
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
