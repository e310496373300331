package sim

import (
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// judges check the run as a whole. Each keeps its own record of what it has seen.
type judges struct {
	run      *runJudge
	budget   *budgetJudge
	effects  *effectJudge
	tree     *treeJudge
	policy   *policyJudge
	messages *messageJudge
	drift    *driftJudge
	futures  *futuresJudge
	models   *runModelJudge
	contexts *runContextJudge
	backlog  *backlogJudge
	narrowed *narrowingJudge
	coverage *coverage
}

// wireJudges makes the judges of a run.
func (js *judges) wireJudges(p *population) {
	env := p.environment
	js.coverage = &coverage{environment: env, population: p}
	js.run = &runJudge{environment: env, population: p, judges: js}
	js.budget, js.effects = newBudgetJudge(p), newEffectJudge(env)
	js.tree, js.messages = newTreeJudge(p, js.coverage), newMessageJudge(p)
	js.policy, js.models = newPolicyJudge(p), &runModelJudge{population: p}
	js.contexts, js.backlog = newRunContextJudge(p), newBacklogJudge(p)
	js.narrowed = &narrowingJudge{population: p, set: map[spec.ID][]spec.Narrowing{}}
	js.drift, js.futures = &driftJudge{environment: env, agreed: map[spec.ID][]string{}}, &futuresJudge{environment: env}
}

// decodeFact decodes a fact of a log once more, for the judge.
func decodeFact[T any](p *population, f activation.Fact) T {
	var v T
	if err := mailbox.Unmarshal(f.Body, &v); err != nil && !p.isOn(faultGarbage) && !p.anyDamaged() {
		p.fail(factsAreReadable, "a fact %s does not decode: %v", f.Kind, err)
	}
	return v
}
