package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	subtreesEvery = 6 // which of the seeds limit subtrees: see modelsEvery
	subtreesAt    = 2
	subtreeSteps  = 19 // between two changes
)

// limitSubtree changes the limit of a live agent and those below it, down to what they use at
// the least, or freezes them.
func (in *injector) limitSubtree() {
	super := in.population.super
	st := super.shadow.super.State
	if st.Phase != supervisor.Live || super.damaged {
		return
	}
	var live []spec.ID
	st.Members(func(m supervisor.Member) {
		if !m.Done || in.percent(5) {
			live = append(live, m.ID)
		}
	})
	if len(live) == 0 {
		return
	}
	f := supervisor.SubtreeLimitSet{Agent: live[in.IntN(len(live))], By: "user"}
	used := usedBelow(&st, f.Agent)
	switch in.IntN(6) {
	case 0:
		f.Frozen = freezes(true)
	case 1:
		f.Frozen = freezes(false)
	case 2:
		f.Limit.Tokens = max(1, used.Tokens/2)
	case 3:
		f.Limit.Tokens = max(1, used.Tokens)
	case 4:
		f.Limit.Calls = max(1, used.Calls+int64(in.between(0, 4)))
	default:
		f.Limit.Tokens = used.Tokens + int64(in.between(500, 9000))
	}
	in.store.appendCommand(super, f.Kind(), f)
}

// thawSubtrees unfreezes all subtrees, as a person does in the end: a frozen run would wait for ever.
func (in *injector) thawSubtrees() {
	super := in.population.super
	if in.step%subtreeSteps != 0 {
		return
	}
	st := super.shadow.super.State
	st.Members(func(m supervisor.Member) {
		if st.Pool.Account(string(m.ID)).Subtree.Frozen && !m.Done {
			f := supervisor.SubtreeLimitSet{Agent: m.ID, Frozen: freezes(false), By: "user"}
			in.store.appendCommand(super, f.Kind(), f)
		}
	})
}

// freezes is SubtreeLimitSet.Frozen.
func freezes(frozen bool) *bool { return &frozen }

// awaitsThaw reports whether an agent waits until a person unfreezes its subtree.
func (p *population) awaitsThaw() bool {
	return supervisor.PausedRequests(p.super.shadow.super.State) > 0
}

// usedBelow is what an agent and those below it have spent and hold, by their own accounts.
func usedBelow(st *supervisor.State, of spec.ID) (sum budget.Amount) {
	st.Members(func(m supervisor.Member) {
		if m.ID == of || slices.Contains(m.ID.Above(), of) {
			for _, who := range []string{string(m.ID), string(m.ID) + "/charge"} {
				a := st.Pool.Account(who)
				sum = sum.Plus(a.Spent).Plus(a.InUse()).Plus(a.Kept)
			}
		}
	})
	return sum
}

// subtreeRecord is what the judge knows of the limit of a subtree.
type subtreeRecord struct {
	limit  budget.Limit
	frozen bool
	over   budget.Amount // that was used beyond the limit when it was set
}

// checkSubtrees checks that no subtree uses more than its limit, but what it used when the limit was set, and that
// nothing of a frozen one is granted (checkThaw).
func (j *budgetJudge) checkSubtrees(before, after *supervisor.State, f activation.Fact) {
	if f.Kind == (supervisor.SubtreeLimitSet{}).Kind() {
		j.noteSubtree(before, after, decodeFact[supervisor.SubtreeLimitSet](j.population, f))
	}
	if f.Kind == (supervisor.LimitSet{}).Kind() { // a freeze of the run ends those that wait, too
		j.queueThawed(after)
	}
	if j.population.anyDamaged() { // a log that lost entries has other amounts than those that were reserved
		return
	}
	overrun := after.Pool.Overrun
	for id, r := range j.subtrees {
		used := usedBelow(after, id)
		over := used.Over(budget.Amount(r.limit))
		if r.limit.Tokens == 0 {
			over.Tokens = 0
		}
		if r.limit.Calls == 0 {
			over.Calls = 0
		}
		if over.Nano = 0; over.Tokens > r.over.Tokens+overrun.Tokens || over.Calls > r.over.Calls {
			j.fail(spendingStaysWithinLimits, "%s and the agents below it use %+v, their limit is %+v, and %+v were beyond it when it was set", id, used, r.limit, r.over)
		}
		if t := after.Pool.Account(string(id)).Subtree; t.Used != used {
			j.fail(poolAddsUp, "%s and the agents below it use %+v, the pool says %+v", id, used, t.Used)
		}
	}
}

// noteSubtree notes a change, as the judge reads the rule.
func (j *budgetJudge) noteSubtree(before, after *supervisor.State, f supervisor.SubtreeLimitSet) {
	m, ok := before.Member(f.Agent)
	if !ok || m.Done || before.Cancel != nil || before.Phase == "" || before.Phase == supervisor.Over {
		return
	}
	if j.subtrees == nil {
		j.subtrees = map[spec.ID]subtreeRecord{}
	}
	r := j.subtrees[f.Agent]
	if f.Limit.Tokens > 0 {
		r.limit.Tokens = f.Limit.Tokens
	}
	if f.Limit.Calls > 0 {
		r.limit.Calls = f.Limit.Calls
	}
	if f.Frozen != nil {
		r.frozen = *f.Frozen
	}
	r.over = usedBelow(before, f.Agent).Over(budget.Amount(r.limit))
	j.subtrees[f.Agent] = r
	j.reach.hit(placeSubtreeLimited)
	j.queueThawed(after)
}

// isFrozen reports whether an agent is in a frozen subtree of a run that is not frozen as a whole.
func (j *budgetJudge) isFrozen(after *supervisor.State, id spec.ID) bool {
	if after.Frozen {
		return false
	}
	for of, r := range j.subtrees {
		if r.frozen && (of == id || slices.Contains(id.Above(), of)) {
			return true
		}
	}
	return false
}

// notePaused notes an agent that waits for the end of a freeze; it no longer waits for budget.
func (j *budgetJudge) notePaused(after *supervisor.State, id spec.ID) {
	if !j.isFrozen(after, id) && !j.population.anyDamaged() {
		j.fail(waitsAreNamed, "%s waits for the end of a freeze, and no subtree of it is frozen", id)
	}
	j.queue = slices.DeleteFunc(j.queue, func(who spec.ID) bool { return who == id })
	j.paused = append(slices.DeleteFunc(j.paused, func(who spec.ID) bool { return who == id }), id)
	j.reach.hit(placeSubtreeFrozen)
}

// queueThawed queues the agents whose freeze has ended behind those that wait for budget.
func (j *budgetJudge) queueThawed(after *supervisor.State) {
	for _, id := range slices.Clone(j.paused) {
		if !j.isFrozen(after, id) {
			j.paused = slices.DeleteFunc(j.paused, func(who spec.ID) bool { return who == id })
			j.queue = append(j.queue, id)
			j.reach.hit(placeSubtreeThawed)
		}
	}
}

// checkThaw checks that nothing is granted to an agent of a frozen subtree.
func (j *budgetJudge) checkThaw(after *supervisor.State, id spec.ID) {
	if j.isFrozen(after, id) && !j.population.anyDamaged() {
		j.fail(grantsAreDue, "%s is granted a reservation, and its subtree is frozen", id)
	}
}
