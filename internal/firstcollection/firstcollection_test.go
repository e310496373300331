package firstcollection

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// currentPercent returns GOGC.
func currentPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

func TestOnlyTheFirstCollectionIsDelayed(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := currentPercent()
	t.Cleanup(func() { debug.SetGCPercent(before) })
	Delay()
	if got := currentPercent(); got != percent {
		t.Errorf("GOGC is %d, want %d", got, percent)
	}
	for end := time.Now().Add(10 * time.Second); currentPercent() != before; runtime.Gosched() {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("GOGC is %d after a collection, want %d", currentPercent(), before)
		}
	}
}

func TestTheUsersLimitsAreKept(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "200")
			before := currentPercent()
			if Delay(); currentPercent() != before {
				t.Errorf("GOGC is %d, want %d", currentPercent(), before)
			}
		})
	}
}
