package control

import (
	"testing"

	"github.com/troupe-run/troupe/internal/lane"
)

// TestARunDoesNotContinueItself: a run that has ended before its caller hears of it is among the histories of its
// conversation, and the note names the run before it.
func TestARunDoesNotContinueItself(t *testing.T) {
	if note := continuedNote("c", "r2", []lane.Run{{ID: "r2"}}); note != "" {
		t.Errorf("the first run of a conversation: %q", note)
	}
	if note := continuedNote("c", "r2", []lane.Run{{ID: "r2"}, {ID: "r1"}}); note != "it continues the conversation c after r1" {
		t.Errorf("the second one: %q", note)
	}
}
