package sim

import (
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// The models of a run. Signatures of one are no other's.
const (
	firstModel   = "anthropic/one"
	secondModel  = "anthropic/two"
	thirdModel   = "openai/three"
	fourthModel  = "openai/four"
	summaryModel = "anthropic/small"
)

// drawLoopOptions draws the loop options of a run: a swarm of its own, each family on
// or off.
func drawLoopOptions(d dice, p *seedPlan) spec.LoopOptions {
	m := spec.LoopOptions{AskPeople: d.percent(70)}
	if p.isOn(faultHooks) {
		m.Hooks = drawHooks(d)
	}
	if p.isOn(faultWatches) {
		m.Watch = spec.Watch{Of: oneOf(d, 3, spec.WatchOf, 12), Identical: oneOf(d, 0, 2, spec.WatchIdentical),
			Pattern: oneOf(d, 0, 3, spec.WatchPattern), Stuck: oneOf(d, 0, 2, spec.WatchStuck), Polling: oneOf(d, nil, []string{"note"})}
		m.Breaker = spec.Breaker{Failures: oneOf(d, 0, 1, spec.BreakerFailures), Forbidden: oneOf(d, 0, 2, spec.BreakerForbidden)}
	}
	if p.isOn(faultGoals) {
		m.Require = drawRequirements(d)
		if d.percent(50) {
			m.Continue = spec.Continue{Tokens: int64(d.between(20, 400)), Percent: oneOf(d, 0, 50, 90), Small: int64(oneOf(d, 0, 5, 40)), Rounds: oneOf(d, 0, 1, 3)}
		}
	}
	if p.isOn(faultFolds) {
		m.Context = spec.Context{Percent: oneOf(d, 0, 30, spec.CompactPercent), Tail: d.between(1, spec.CompactTail), PruneTail: d.between(0, spec.PruneTail),
			Within: oneOf(d, 0, 1, 3, spec.LadderTurns), Summary: int64(oneOf(d, 0, 40, 200))}
		if d.percent(40) {
			m.Context.Model = &spec.Model{Name: summaryModel, Window: int64(oneOf(d, 0, 300)), Price: drawPrice(d)}
		}
		m.Journal = d.percent(75)
		m.Dynamic = oneOf(d, "", "", "It is late.")
	}
	if p.isOn(faultFalls) {
		second := spec.Model{Name: secondModel, Price: drawPrice(d), Window: drawWindow(d, p)}
		all := []spec.Model{second, {Name: thirdModel, Price: drawPrice(d)}, p.first, {Name: fourthModel}}
		if d.percent(50) {
			all[3] = second
		}
		m.Fallbacks = all[:d.between(1, len(all))] // one more than counts, at times
	}
	if p.isOn(faultRefusals) || d.percent(30) {
		m.PatienceMS = oneOf[int64](d, 0, 500, 5000, spec.PatienceMS, spec.PatienceMS)
	}
	if d.percent(60) {
		m.ToolRetries = d.between(1, spec.ToolRetriesMax+1)
	}
	return m
}

// drawHooks stand at the points of the loop. What they answer is drawn when they run.
func drawHooks(d dice) []spec.Hook {
	points := []spec.HookPoint{spec.HookContext, spec.HookInput, spec.HookOutput, spec.HookSampled, spec.HookPreTool,
		spec.HookPreTool, spec.HookToolError, spec.HookPostTool, spec.HookStop, spec.HookStop, spec.HookStopFailure}
	list := make([]spec.Hook, d.between(1, 4))
	for i := range list {
		list[i] = spec.Hook{Name: "h" + itoa(i), Point: points[d.IntN(len(points))], Tools: oneOf(d, "", "", "pay|wipe", "look", "("),
			Report: d.percent(10), Of: oneOf(d, "", "", "", spec.OfRoot, spec.OfChild)}
		// without another draw: seeds without such hooks stay what they were
		if list[i].Point == spec.HookPostTool && i%2 == 1 {
			list[i].Point = spec.HookToolResult
		}
		if d.percent(40) {
			list[i].Failing = decisions[d.IntN(len(decisions))]
		}
	}
	return list
}

// decisions are all decisions of hooks, and an invalid one.
var decisions = []spec.HookDecision{spec.HookPass, spec.HookAllow, spec.HookDeny, spec.HookAsk, spec.HookSkip, spec.HookOverride,
	spec.HookBlock, spec.HookPrevent, spec.HookTrip, "maybe"}

// proof is a word in the middle of tool results, where no outline
// would keep it.
const proof = "proof"

// drawRequirements draws the requirements of a claimed completion.
func drawRequirements(d dice) spec.Require {
	r := spec.Require{Tries: oneOf(d, 0, 1, 3)}
	if d.percent(60) {
		r.Evidence = []spec.Evidence{{Tool: oneOf(d, "look", "look", "look", "pay", "fly"), Contains: oneOf(d, "", proof, proof, "nowhere")}}
	}
	if d.percent(40) {
		r.Schema = oneOf(d, `{"type":"object","required":["answer"]}`, `{"type":"string"}`)
	}
	return r
}

func drawPrice(d dice) budget.Price {
	if d.percent(30) {
		return budget.Price{}
	}
	return budget.Price{Known: true, Input: int64(oneOf(d, 1, 3)), Output: int64(oneOf(d, 5, 15)), CacheRead: 1, CacheWrite: 4, Long: long}
}

// long is the price of a long prompt: a few turns produce one.
var long = budget.Tier{Above: 400, Input: 6, Output: 22, CacheRead: 2, CacheWrite: 8}

// drawWindow is small where the run compacts, so that a few turns fill it.
func drawWindow(d dice, p *seedPlan) int64 {
	if !p.isOn(faultFolds) || d.percent(10) {
		return 0
	}
	return int64(d.between(200, 900))
}

// allModels are all models that a run may call, by name.
func (p *seedPlan) allModels() map[string]spec.Model {
	all := map[string]spec.Model{p.opened.Model.Name: p.opened.Model}
	for _, m := range slices.Backward(p.opened.LoopOptions.Fallbacks) {
		if _, ok := all[m.Name]; !ok {
			all[m.Name] = m
		}
	}
	if m := p.opened.LoopOptions.Context.Model; m != nil {
		all[m.Name] = *m
	}
	for _, d := range p.opened.Definitions {
		if d.Model != nil {
			all[d.Model.Name] = *d.Model
		}
	}
	maps.Copy(all, p.setModels)
	return all
}
