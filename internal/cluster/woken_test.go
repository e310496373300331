package cluster

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// TestSweepsWakeALogWithoutNewsMoreRarely: an actor that writes nothing when it is woken is woken again after ever more
// sweeps, and at once when its log has grown.
func TestSweepsWakeALogWithoutNewsMoreRarely(t *testing.T) {
	var w wokenLogs
	var woken []int
	sweep := func(n int, entries uint64) {
		if w.isDue(mailbox.Head{Message: mailbox.Message{To: mailbox.At("r", "a1")}, Entries: entries}) {
			woken = append(woken, n)
		}
		w.forgetOthers()
	}
	for n := 1; n <= 20; n++ {
		sweep(n, 7)
	}
	sweep(21, 8)
	sweep(22, 8)
	if want := []int{1, 2, 4, 8, 16, 21, 22}; !slices.Equal(woken, want) {
		t.Errorf("woken by the sweeps %v, want %v", woken, want)
	}
	w.forgetOthers() // a sweep that no longer finds the log
	if len(w.last) != 0 {
		t.Errorf("%d logs are remembered", len(w.last))
	}
}
