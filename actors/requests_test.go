package actors

import (
	"testing"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// TestAttackNoClientHasTheNameOfTheFirstRequest: an actor applies the first request of a name only.
func TestAttackNoClientHasTheNameOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	if names.CheckToken(openRequest) == nil {
		t.Errorf("a client may name its request %s", openRequest)
	}
}
