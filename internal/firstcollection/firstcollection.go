// Package firstcollection lets the heap of a command grow before the garbage collector runs for the first time.
package firstcollection

import (
	"os"
	"runtime"
	"runtime/debug"
)

// percent is GOGC until the first collection, which then begins at 16 MB of heap instead of 4. A command
// that starts a node would collect five times before its first model request, a tenth of its processor time.
const percent = 400

// Delay delays the first collection. After it the collector works as it does without Delay. It changes nothing if the
// user has configured the collector.
func Delay() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	before := debug.SetGCPercent(percent)
	first := new([64]byte) // nothing refers to it, so the first collection frees it
	runtime.AddCleanup(first, func(before int) { debug.SetGCPercent(before) }, before)
}
