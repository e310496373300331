// Package bustest runs tests of embedded NATS servers on the clock of testing/synctest.
package bustest

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// Bubble runs a test in a bubble of testing/synctest, in which embedded servers may run
// whose clients connect inside the process (bus.EmbeddedConfig.DontListen). Leases and
// timeouts then take no time, however long they are, and do not depend on how busy the
// machine is. What listens on a port cannot be in a bubble: its clock would stand still.
//
// The test must not run beside others (t.Parallel): the NATS libraries keep timers in
// pools of the process, and a timer of one bubble cannot be used in another.
func Bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	// The goroutine that keeps the access times of all stores of a process would belong
	// to the bubble if the first server in it started it, and keep its clock from moving.
	ats.Register()
	defer ats.Unregister()
	emptyPools()
	defer emptyPools()
	synctest.Test(t, run)
}

// emptyPools drops what every sync.Pool holds: the first collection of garbage moves it
// aside, the second one frees it.
func emptyPools() {
	runtime.GC()
	runtime.GC()
}
