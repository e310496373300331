//go:build unix

package replay_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/replay"
)

// TestReplayIsFast: 10,000 entries replay in less than a second of one processor.
func TestReplayIsFast(t *testing.T) {
	log := longRun(t, 3300)
	began, cpu := time.Now(), cpuTime(t)
	r := replay.Logs(log, replay.Options{})
	took, used := time.Since(began), cpuTime(t)-cpu
	if err := r.Err(); err != nil || r.Entries < 10_000 || !r.Ended {
		t.Fatalf("%d entries, ended %v: %v", r.Entries, r.Ended, err)
	}
	t.Logf("%d entries in %s, %s of the processor", r.Entries, took, used)
	if used > time.Second {
		t.Errorf("%d entries took %s of the processor", r.Entries, used)
	}
}

// cpuTime is what this process has used of the processors: on a machine that others use, too, it says
// more than the clock.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
