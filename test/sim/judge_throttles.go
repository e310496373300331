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
	sent      map[string][]int64                      // when, in the last minute, by model
}

func (j *throttleJudge) resetState() {
	j.closed, j.passed = map[string]int64{}, map[throttleQueue]map[throttleQueue]int{}
	j.sent = map[string][]int64{}
}

// checkRate checks that a node sends no more requests in a minute than the setting allows, whatever the provider
// reports. A new process knows nothing of those before it.
func (j *throttleJudge) checkRate(name string) {
	j.sent[name] = append(slices.DeleteFunc(j.sent[name], func(at int64) bool { return at <= j.now-60_000 }), j.now)
	if n := int64(len(j.sent[name])); j.perMinute > 0 && n > j.perMinute {
		j.fail("%d requests to %s in a minute that has room for %d", n, name, j.perMinute)
	}
}

// throttleQueue is a family that waits for a model.
type throttleQueue struct{ model, family string }

// checkFairShare checks that a throttle admits another family at most once while one family waits.
func (j *throttleJudge) checkFairShare(a *throttleRequest, fx throttle.AdmitCaller) {
	mine := throttleQueue{a.model, familyOf(a.shell.actor.id)}
	delete(j.passed, mine)
	if fx.Reserved && a.since == j.now {
		return // a has returned with a reservation after its turn, or no family waits
	}
	seen := map[throttleQueue]bool{mine: true}
	for _, other := range j.throttles.asks {
		l := throttleQueue{other.model, familyOf(other.shell.actor.id)}
		if l.model != a.model || seen[l] {
			continue
		}
		seen[l] = true
		if j.passed[l] == nil {
			j.passed[l] = map[throttleQueue]int{}
		}
		if j.passed[l][mine]++; j.passed[l][mine] > 1 {
			j.fail("%s is let in again at the gate of %s, while %s waits", mine.family, a.model, l.family)
		}
		j.reach.hit(placeSharedGate)
	}
}
