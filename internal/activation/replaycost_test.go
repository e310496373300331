package activation_test

import (
	"runtime"
	"testing"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// What an activation allocates for each entry that it replays does not grow with the log, also if observers are to
// receive the events of the entries.
func TestReplayCostsTheSameForEachEntry(t *testing.T) {
	short, long := replayCost(t, 300), replayCost(t, 3000)
	t.Logf("bytes for an entry: %.0f in a short log, %.0f in a long one", short, long)
	if long > 1.5*short {
		t.Errorf("an entry of a log 10 times as long allocates %.1f times as much", long/short)
	}
}

// replayCost returns how many bytes an activation allocates for each entry of a log of some turns.
func replayCost(t *testing.T, turns int) float64 {
	t.Helper()
	p := newPair(t, turns)
	p.runToRest()
	at := p.root.Addr
	log := p.logs[at]
	s := activation.New(at, "next", mailbox.Epoch{Lease: 1 << 40}, "node", true)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, _ = activation.Step(s, activation.Input{Fact: activation.Activate{}})
	s, _ = activation.Step(s, activation.Input{LeaseHeld: true, Fact: activation.LogRead{Log: log}})
	runtime.ReadMemStats(&after)
	if s.Reader.N != uint64(len(log)) {
		t.Fatalf("%d of %d entries were replayed", s.Reader.N, len(log))
	}
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(log))
}
