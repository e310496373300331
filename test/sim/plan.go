package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// faultSet is a set of kinds of faults, one bit each. A seed switches each kind on or off (a
// swarm), so that one kind does not always hide behind another.
type faultSet uint64

// The kinds of faults.
const (
	faultCrash       faultSet = 1 << iota // a shell dies between two steps; its appends in flight may land later
	faultPanic                            // a shell dies and starts again under the same lease
	faultLostAck                          // an append lands, its acknowledgement does not: the same bytes again
	faultLateCopy                         // a copy of an append lands later, at any time, from dead shells too
	faultFailing                          // an append fails while its process lives: the same bytes again
	faultTwoHolders                       // a second shell starts while the first one lives
	faultZombie                           // a shell is frozen, others may take over, it thaws later
	faultUnfenced                         // a thawed shell does not notice that its lease has run out
	faultBucket                           // the lease bucket is made anew: revisions start low again
	faultCancel                           // the run, or one agent, is canceled: at a boundary or now
	faultTiny                             // a budget of a few calls
	faultOverrun                          // the provider bills beyond its rules
	faultStorm                            // models delegate wherever they can
	faultTruncate                         // an agent's log loses its tail at a crash
	faultRot                              // bytes under a claimed floor change at a crash
	faultGarbage                          // bytes, strangers' outbox messages and forged entries in logs
	faultSteer                            // users speak to running agents
	faultClock                            // short time limits, early timers, stamps that go back
	faultVeto                             // a policy speaks against stops and turns, and is replaced
	faultLimits                           // the limits of the live run are changed
	faultDiffering                        // nodes have other prompts, tools and routes than the run was begun with
	faultSlow                             // a child reports nothing for a long time
	faultHostile                          // the model misbehaves in one way, to the end
	faultHooks                            // hooks stand at the points of the loop, and fail
	faultWatches                          // the loop watches itself; breakers
	faultGoals                            // requirements of a completion; budgets to use up
	faultFolds                            // small windows: the prompt is compacted
	faultFalls                            // other models, and tools that fail in passing
	faultAbsent                           // no user answers the questions of the run
	faultHandOver                         // an activation drains, and another one continues
	faultRefusals                         // providers throttle every caller for a while
	faultRest                             // a waiting actor has no shell: its next entry, or the clock, wakes it
	faultBackground                       // children in the background, and messages between agents
	faultHead                             // an agent's log loses its head
	faultRunTail                          // the log of the run loses its tail
	faultPermissions                      // rules and modes decide about calls; questions expire
	faultHandoffs                         // agents hand off their conversations
	faultModels                           // another model is set, for the run or for one agent
	faultOthers                           // agents that are not in the run use its budget
	faultContexts                         // the prompts and tools of live agents change
	faultBacklog                          // agents share a backlog, and people change it
	faultSubtrees                         // the limits of agents and those below them are changed and frozen
	faultNarrowings                       // operators take rights from agents and those below them
	faultsAll        faultSet = 1<<iota - 1
)

var faultNames = [...]string{"crash", "panic", "lost-ack", "late-copy", "failing", "two-holders", "zombie", "unfenced", "bucket",
	"cancel", "tiny", "overrun", "storm", "truncate", "rot", "garbage", "steer", "clock", "veto", "limits", "differing", "slow",
	"hostile", "hooks", "watches", "goals", "folds", "falls", "absent", "hand-over", "refusals", "rest", "background", "head", "run-tail", "permissions", "handoffs", "models", "others", "contexts", "backlog", "subtrees", "narrowings"}

// String lists the kinds that are on.
func (f faultSet) String() string {
	var on []string
	for i, name := range faultNames {
		if f&(1<<i) != 0 {
			on = append(on, name)
		}
	}
	return strings.Join(on, ",")
}

// seedPlan holds the decisions of a seed before the first step.
type seedPlan struct {
	faults              faultSet
	rate                int // faults per 1000 steps
	faultSteps          int // after them no fault happens any more
	temper              modelHabits
	opened              supervisor.Opened
	softMS              int64
	answerPermille      int // how likely a person answers a query that waits
	first               spec.Model
	misbehaviour        misbehaviour
	hookPercent         int // how often a hook decides something
	flood               bool
	changesMisbehaviour bool // another misbehaviour for each reply
	hooksNeverPass      bool
	mixedPriorities     bool                  // the families of agents have different ones, as runs may
	window              int                   // requests at once before anything was refused
	perMinute           int64                 // requests that a setting allows to each model; 0: there is no such setting
	setModels           map[string]spec.Model // that were set while the run lived
	contexts            int                   // changes of prompts and tools so far
}

// modelHabits is how the model of a run behaves, in percent.
type modelHabits struct {
	final, delegate, bad, empty, cut, fail, unknownUsage, effect int
}

// Bounds of a plan.
const (
	faultStepsMin  = 100
	faultStepsMax  = 460
	rateMin        = 8
	rateMax        = 70
	differingEvery = 5
	ratesEvery     = 3
	perMinuteMin   = 4
	perMinuteMore  = 40
	runName        = "01SIM"
	output         = 120 // output tokens a call
	closingOutput  = 60
)

func newPlan(d dice, force *faultSet) seedPlan {
	p := seedPlan{rate: d.between(rateMin, rateMax), faultSteps: d.between(faultStepsMin, faultStepsMax), answerPermille: oneOf(d, 5, 100, 500)}
	for i := range faultNames {
		on, derived := p.isDerived(1 << i)
		if on || !derived && d.percent(faultOdds(1<<i)) {
			p.faults |= 1 << i
		}
	}
	if force != nil {
		p.faults = *force
	}
	p.temper = modelHabits{final: oneOf(d, 10, 25, 40), delegate: oneOf(d, 10, 20, 40), bad: oneOf(d, 0, 10, 40), empty: oneOf(d, 0, 4, 30),
		cut: oneOf(d, 0, 4, 40), fail: oneOf(d, 0, 8, 30), unknownUsage: oneOf(d, 0, 8, 40), effect: oneOf(d, 20, 50, 80)}
	if p.isOn(faultStorm) {
		p.temper.delegate, p.temper.final = 90, 10
	}
	p.misbehaviour, p.hookPercent, p.flood = misbehaviours[d.IntN(len(misbehaviours))], oneOf(d, 5, 20, 60), d.permille(floodOdds)
	p.changesMisbehaviour, p.hooksNeverPass = d.percent(fickleOdds), d.percent(8)
	p.window = 64
	if p.isOn(faultRefusals) {
		p.window = oneOf(d, 1, 1, 2, 64)
	}
	if p.isOn(faultRefusals) && p.rate%ratesEvery == 0 { // derived, as faultDiffering is
		p.perMinute = int64(perMinuteMin + (p.faultSteps+7*p.rate)%perMinuteMore)
	}
	p.mixedPriorities = p.isOn(faultRefusals) && p.rate%ratesEvery < 2
	p.opened = drawRun(d, &p)
	return p
}

// isDerived reports whether a kind of fault follows from what was drawn already, so that the runs of the other seeds
// do not change, and whether it is on.
func (p *seedPlan) isDerived(f faultSet) (on, derived bool) {
	switch f {
	case faultDiffering:
		return p.rate%differingEvery == 0, true
	case faultPermissions:
		return p.rate%permissionsEvery == 0, true
	case faultHandoffs:
		return p.rate%handoffsEvery == 0, true
	case faultModels:
		return p.rate%modelsEvery == modelsAt, true
	case faultOthers:
		return p.rate%othersEvery == othersAt, true
	case faultContexts:
		return p.rate%contextsEvery == contextsAt, true
	case faultSubtrees:
		return p.rate%subtreesEvery == subtreesAt, true
	case faultNarrowings:
		return p.rate%narrowingsEvery == narrowingsAt, true
	case faultBacklog:
		return p.rate%backlogEvery == backlogAt, true
	}
	return false, false
}

// faultOdds is how often a kind of fault is on. Faults that damage a log for
// good are rare: after one of them many invariants say nothing.
func faultOdds(f faultSet) int {
	switch f {
	case faultTruncate, faultRot, faultHead, faultRunTail:
		return 6
	case faultSlow, faultOverrun, faultStorm, faultLimits:
		return 15
	case faultTiny, faultClock, faultVeto:
		return 25
	case faultHostile:
		return 35
	case faultWatches, faultGoals, faultFolds, faultFalls:
		return 40
	case faultAbsent:
		return 10
	case faultHooks:
		return 100
	}
	return 45
}

func (p *seedPlan) isOn(f faultSet) bool { return p.faults&f != 0 }

// sendTool is the loop's own where agents may speak to each other. It is the
// last of the tools, and no other run has it.
const sendTool = "send_message"

// journalTool is the loop's own where a run has a journal.
const journalTool = "append_run_journal_entry"

// Tools of every run. The schemas are small: a seed compiles them often.
var tools = []model.ToolSpec{
	{Name: "look", Schema: `{"type":"object"}`, Class: model.Read},
	{Name: "note", Schema: `{"type":"object","required":["x"]}`, Class: model.Idempotent},
	{Name: "pay", Schema: `{"type":"object","required":["x"]}`, Class: model.Effect},
	{Name: "wipe", Schema: `{"type":"object"}`, Class: model.Irreversible},
	{Name: "delegate", Schema: `{"type":"object","required":["task"]}`, Class: model.Read},
	{Name: journalTool, Schema: `{"type":"object","required":["section","entry"]}`, Class: model.Read},
	{Name: "ask_human", Schema: `{"type":"object","required":["question"]}`, Class: model.Effect},
	{Name: sendTool, Schema: `{"type":"object","required":["to","text"]}`, Class: model.Read},
}

// drawRun is the run that the client asks for.
func drawRun(d dice, p *seedPlan) supervisor.Opened {
	p.first = spec.Model{Name: firstModel, Window: drawWindow(d, p)}
	if d.percent(40) {
		p.first.Price = budget.Price{Known: true, Input: 3, Output: 15, CacheRead: 1, CacheWrite: 4, Long: long}
	}
	o := supervisor.Opened{
		Run: runName, Goal: "find out", Root: "lead", Tools: tools,
		Model: p.first, LoopOptions: drawLoopOptions(d, p),
		Agent: spec.Limits{Output: output, Closing: closingOutput, Turns: oneOf(d, 0, 0, 0, 1, 3, 5, 8, 8), Calls: oneOf(d, 0, 0, 0, 0, 5),
			ReplyCalls: oneOf(d, 0, 2, 3), Parallel: oneOf(d, 0, 1, 2), Retries: oneOf(d, 0, 1), Cuts: oneOf(d, 0, 1)},
		Limits: spec.RunLimits{Calls: int64(oneOf(d, 0, 0, 12, 40)), Depth: oneOf(d, 0, 2, 3, 4), Children: oneOf(d, 0, 0, 1, 2, 3, 3),
			Agents: oneOf(d, 4, 5, 6, 9), Messages: oneOf(d, 0, 0, 1, 2)},
		Definitions: []supervisor.Definition{
			{Name: "lead", System: "You lead. Begin with " + spec.FailedMark + " if you have failed.", Deny: oneOf(d, nil, nil, []string{"wipe"}), Limits: spec.Limits{Children: oneOf(d, 0, 0, 6)}},
			{Name: "hand", System: "You work.", Deny: oneOf(d, nil, []string{"wipe"})},
			{Name: "clerk", System: "You read.", Tools: []string{"look", "note", sendTool}, Limits: spec.Limits{Turns: 3}},
			{Name: "shy", System: "You wait.", Delegates: []string{"clerk"}, LoopOptions: drawSchema(d, p)},
		},
	}
	if !p.isOn(faultBackground) {
		o.Tools = tools[:len(tools)-1]
	}
	if len(o.LoopOptions.Hooks) > 0 { // one that only lead's file has
		o.Definitions[0].LoopOptions.Hooks = []spec.Hook{{Name: "lead/gate", Point: spec.HookPreTool, Tools: "pay|wipe"}}
	}
	if p.isOn(faultHostile) { // it lets no run end by itself
		o.Agent.Turns = oneOf(d, 1, 2, 3, 5, 5, 8, 12)
	}
	if p.isOn(faultTiny) {
		o.Limits.Tokens = int64(d.between(700, 12_000))
		if d.percent(30) && o.Model.Price.Known {
			o.Limits.Nano, o.Limits.Tokens = int64(d.between(3000, 40000)), 0
		}
		if d.percent(40) { // of the helpers, one has a share
			share := &o.Definitions[d.between(1, 2)]
			part := int64(oneOf(d, 2, 3, 5))
			share.Carved, share.Limits.Tokens, share.Limits.Nano = true, o.Limits.Tokens/part, o.Limits.Nano/part
		}
	} else if d.percent(60) {
		o.Limits.Tokens = 400_000
	}
	if p.isOn(faultClock) {
		p.softMS = int64(d.between(200, 6000))
		o.Agent.SoftMS = p.softMS
		o.Agent.HardMS = p.softMS + int64(d.between(0, 3000))
	}
	if p.isOn(faultVeto) {
		o.Policy = drawPolicy(d)
	}
	if p.isOn(faultPermissions) {
		drawPermissions(p, &o)
	}
	if p.isOn(faultHandoffs) {
		drawHandoffs(d, &o)
	}
	if p.isOn(faultBacklog) {
		drawBacklog(d, &o)
	}
	if p.isOn(faultModels) {
		giveClerksAModel(&o)
	}
	return o
}

// drawSchema sometimes lets a definition set the schema of its agents' answers.
func drawSchema(d dice, p *seedPlan) spec.LoopOptions {
	if !p.isOn(faultBackground) || d.percent(70) {
		return spec.LoopOptions{}
	}
	return spec.LoopOptions{Require: spec.Require{Schema: `{"type":"object"}`}}
}

// drawPolicy is a random policy.
func drawPolicy(d dice) supervisor.Policy {
	p := supervisor.Policy{Version: d.IntN(100)}
	switch d.IntN(5) {
	case 0:
		p.Rules = []supervisor.Rule{{Name: "always", On: "stop", Why: "Go on."}}
	case 1:
		p.Rules = []supervisor.Rule{{Name: "evidence", On: "stop", Why: "Say why.",
			When: []supervisor.Condition{{Fact: "answer", Op: "lacks", Text: "because"}}}}
	case 2:
		p.Rules = []supervisor.Rule{{Name: "frugal", On: "turn", Why: "Enough.",
			When: []supervisor.Condition{{Fact: "turns", Op: ">=", Number: float64(d.between(1, 4))}}}}
	case 3:
		p.Rules = []supervisor.Rule{{Name: "root", On: "stop", Agent: "root", Why: "Look again.",
			When: []supervisor.Condition{{Fact: "turns", Op: "<", Number: 3}}}}
	}
	return p
}
