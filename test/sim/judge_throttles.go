package sim

import (
	"github.com/troupe-run/troupe/internal/throttle"
)

// throttleJudge knows by itself when a provider accepts requests again, and whose turn it is.
type throttleJudge struct {
	*environment
	throttles *throttles
	closed    map[string]int64                    // by the provider's own words: nothing is sent before
	passed    map[waitingLane]map[waitingLane]int // times others were admitted while a request of a lane waits
}

func (j *throttleJudge) resetState() {
	j.closed, j.passed = map[string]int64{}, map[waitingLane]map[waitingLane]int{}
}

// waitingLane is a family that waits for a model.
type waitingLane struct{ model, family string }

// checkFairShare checks that a throttle admits another family at most once while one family waits.
func (j *throttleJudge) checkFairShare(a *throttleRequest, fx throttle.AdmitCaller) {
	mine := waitingLane{a.model, familyOf(a.shell.actor.id)}
	delete(j.passed, mine)
	if fx.Reserved && a.since == j.now {
		return // a has returned with a reservation after its turn, or no family waits
	}
	seen := map[waitingLane]bool{mine: true}
	for _, other := range j.throttles.asks {
		l := waitingLane{other.model, familyOf(other.shell.actor.id)}
		if l.model != a.model || seen[l] {
			continue
		}
		seen[l] = true
		if j.passed[l] == nil {
			j.passed[l] = map[waitingLane]int{}
		}
		if j.passed[l][mine]++; j.passed[l][mine] > 1 {
			j.fail("%s is let in again at the gate of %s, while %s waits", mine.family, a.model, l.family)
		}
		j.reach.hit(placeSharedGate)
	}
}
