//go:build unix

package replay_test

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/test/cputime"
)

// TestReplayIsFast: 10,000 entries replay in less than a second of one processor.
func TestReplayIsFast(t *testing.T) {
	log := longRun(t, 3300)
	began, cpu := time.Now(), cputime.Used(t)
	r := replay.Logs(log, replay.Options{})
	took, used := time.Since(began), cputime.Used(t)-cpu
	if err := r.Err(); err != nil || r.Entries < 10_000 || !r.Ended {
		t.Fatalf("%d entries, ended %v: %v", r.Entries, r.Ended, err)
	}
	t.Logf("%d entries in %s, %s of the processor", r.Entries, took, used)
	if used > time.Second {
		t.Errorf("%d entries took %s of the processor", r.Entries, used)
	}
}
