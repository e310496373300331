package sim

import (
	"slices"

	"github.com/troupe-run/troupe/internal/throttle"
)

// throttleJudge knows by itself when a provider accepts requests again, and whose turn it is.
type throttleJudge struct {
	*environment
	throttles *throttles
	closed    map[string]int64                        // by the provider's own words: nothing is sent before
	passed    map[throttleQueue]map[throttleQueue]int // times others were admitted while a request of a lane waits
	turns     map[rankOf]int                          // turns of other priorities while a priority waits
	sent      map[string][]int64                      // when, in the last minute, by model
}

func (j *throttleJudge) resetState() {
	j.closed, j.passed = map[string]int64{}, map[throttleQueue]map[throttleQueue]int{}
	j.turns = map[rankOf]int{}
	j.sent = map[string][]int64{}
}

// checkRate checks that a node sends no more requests in a minute than the setting allows, whatever the provider
// reports. A new process knows nothing of those before it.
func (j *throttleJudge) checkRate(name string) {
	j.sent[name] = append(slices.DeleteFunc(j.sent[name], func(at int64) bool { return at <= j.now-60_000 }), j.now)
	if n := int64(len(j.sent[name])); j.perMinute > 0 && n > j.perMinute {
		j.fail(throttlesAreFair, "%d requests to %s in a minute that has room for %d", n, name, j.perMinute)
	}
}

// throttleQueue is a family that waits for a model.
type throttleQueue struct{ model, family string }

// rankOf is a priority at the throttle of a model.
type rankOf struct {
	model    string
	priority throttle.Priority
}

// turnsOfOthers are the most turns of other priorities while one waits, under gateLimits.
var turnsOfOthers = map[throttle.Priority]int{throttle.PriorityHigh: 2, throttle.PriorityNormal: 3, throttle.PriorityLow: 3}

// beginWait begins to count the turns of others if no agent of this priority waits yet.
func (j *throttleJudge) beginWait(a *throttleRequest) {
	rank := rankOf{a.model, j.throttles.priorityOf(familyOf(a.shell.actor.id))}
	if !slices.ContainsFunc(j.throttles.asks, func(o *throttleRequest) bool {
		return o.model == a.model && j.throttles.priorityOf(familyOf(o.shell.actor.id)) == rank.priority
	}) {
		delete(j.turns, rank)
	}
}

// checkPriorities checks that no priority waits for more turns of others than the rule says.
func (j *throttleJudge) checkPriorities(mine throttleQueue) {
	own, seen := j.throttles.priorityOf(mine.family), map[throttle.Priority]bool{}
	for _, other := range j.throttles.asks {
		p := j.throttles.priorityOf(familyOf(other.shell.actor.id))
		if other.model != mine.model || p == own || seen[p] {
			continue
		}
		seen[p] = true
		rank := rankOf{mine.model, p}
		if j.turns[rank]++; j.turns[rank] > turnsOfOthers[p] {
			j.fail(throttlesAreFair, "%d turns of others at the gate of %s while %s priority waits", j.turns[rank], mine.model, p)
		}
		j.reach.hit(placeLowerPriorityWaits)
	}
}

// checkFairShare checks that a throttle admits another family of the same priority at most once while one family waits.
func (j *throttleJudge) checkFairShare(a *throttleRequest, fx throttle.AdmitCaller) {
	mine := throttleQueue{a.model, familyOf(a.shell.actor.id)}
	delete(j.passed, mine)
	delete(j.turns, rankOf{a.model, j.throttles.priorityOf(mine.family)})
	if fx.Reserved && a.since == j.now {
		return // a has returned with a reservation after its turn, or no family waits
	}
	j.checkPriorities(mine)
	seen := map[throttleQueue]bool{mine: true}
	for _, other := range j.throttles.asks {
		l := throttleQueue{other.model, familyOf(other.shell.actor.id)}
		if l.model != a.model || seen[l] || j.throttles.priorityOf(l.family) != j.throttles.priorityOf(mine.family) {
			continue
		}
		seen[l] = true
		if j.passed[l] == nil {
			j.passed[l] = map[throttleQueue]int{}
		}
		if j.passed[l][mine]++; j.passed[l][mine] > 1 {
			j.fail(throttlesAreFair, "%s is let in again at the gate of %s, while %s waits", mine.family, a.model, l.family)
		}
		j.reach.hit(placeSharedGate)
	}
}
