// Package leaks looks for goroutines that tests leave behind. goleak alone gives
// them less than half a second to end, which on a loaded machine is less than it
// takes to run them once.
package leaks

import (
	"time"

	"go.uber.org/goleak"
)

// Patience is how long goroutines may take to end; the check continues as soon as
// they have. One goroutine of the actor library counts lost messages, for a few seconds.
const Patience = 30 * time.Second

// Main runs the tests of a package and fails them if goroutines are left, but
// for the exceptions. It does not return.
func Main(m goleak.TestingM, except ...goleak.Option) {
	goleak.VerifyTestMain(patientTests{m, except}, except...)
}

// findLeaks reports which goroutines are left when patience is over.
func findLeaks(patience time.Duration, except []goleak.Option) (left error) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if left = goleak.Find(except...); left == nil { // it waits a moment itself
			return nil
		}
	}
	return left
}

// patientTests are tests that end when their goroutines have, or with Patience.
type patientTests struct {
	goleak.TestingM
	except []goleak.Option
}

// Run implements goleak.TestingM.
func (p patientTests) Run() int {
	code := p.TestingM.Run()
	if code == 0 {
		_ = findLeaks(Patience, p.except) // goleak retries, and reports the goroutines that are left
	}
	return code
}
