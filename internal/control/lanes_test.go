package control

import (
	"testing"

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
