package actors_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// aftermath is how long a goroutine of the actor library may count lost messages after
// the test; the clock of a bubble stops when its test returns.
const aftermath = time.Minute

// inBubble runs a test on the clock of a bubble of testing/synctest, so that what waits
// takes no time. It is for tests of what is all in memory.
func inBubble(run func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			t.Cleanup(func() { <-time.After(aftermath) }) // after all others
			run(t)
		})
	}
}
