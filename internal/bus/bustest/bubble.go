// Package bustest starts NATS servers for tests, and runs tests of embedded ones on the
// clock of testing/synctest.
package bustest

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// Bubble runs a test in a bubble of testing/synctest, which may contain embedded servers
// whose clients connect inside the process (embedded.Config.DontListen). Leases and timeouts
// then take no real time, however long they are, and do not depend on how busy the machine
// is. A listener on a port cannot be in a bubble, because it would stop the bubble's clock.
//
// The test must not run in parallel (t.Parallel): the NATS libraries keep timers in pools of
// the process, and a timer of one bubble cannot be used in another.
func Bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	// The process has one goroutine that keeps the access times of all stores. If the first
	// server in the bubble started it, it would belong to the bubble and stop the bubble's
	// clock.
	ats.Register()
	defer ats.Unregister()
	emptyPools()
	defer emptyPools()
	synctest.Test(t, run)
}

// emptyPools drops the contents of every sync.Pool: the first garbage collection moves them
// aside, the second frees them.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}
