package control

import (
	"testing"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/lane"
)

// TestARunDoesNotContinueItself: a run that has ended before its caller hears of it is among the histories of its
// conversation, and it continues the run before it.
func TestARunDoesNotContinueItself(t *testing.T) {
	if before := continuedRun("r2", []lane.Run{{ID: "r2"}}); before != "" {
		t.Errorf("the first run of a conversation continues %q", before)
	}
	if before := continuedRun("r2", []lane.Run{{ID: "r2"}, {ID: "r1"}}); before != "r1" {
		t.Errorf("the second one continues %q", before)
	}
}

// TestAttackNoClientHasTheNameOfARequestOfALane: an actor applies the first request of a name only, so a run would wait for
// its turn for ever.
func TestAttackNoClientHasTheNameOfARequestOfALane(t *testing.T) {
	for _, id := range []string{laneStartRequest, laneDropRequest, deleteRequest} {
		if names.CheckToken(id) == nil {
			t.Errorf("a client may name its request %s", id)
		}
	}
}
