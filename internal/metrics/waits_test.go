package metrics

import (
	"strconv"
	"testing"
	"time"
)

// A node that has noted too many delegations forgets the oldest, not all.
func TestTheOldestPendingDelegationIsForgotten(t *testing.T) {
	pending := pendingDelegations{asked: map[string]time.Time{}}
	began := time.Unix(1, 0)
	for i := range trackedAgentMax + 1 {
		pending.add(strconv.Itoa(i), began)
	}
	if _, ok := pending.take("0"); ok {
		t.Error("the oldest is known")
	}
	if _, ok := pending.take("1"); !ok {
		t.Error("the second is forgotten")
	}
	for i := range 5 * trackedAgentMax { // each starts at once
		pending.add("c"+strconv.Itoa(i), began)
		if _, ok := pending.take("c" + strconv.Itoa(i)); !ok {
			t.Fatalf("child %d is forgotten", i)
		}
	}
	if n := len(pending.order); n > 2*trackedAgentMax {
		t.Errorf("%d names for %d delegations", n, len(pending.asked))
	}
}
