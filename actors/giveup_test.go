package actors

import (
	"testing"
	"time"
)

// Crashes in a row double the pause and come to an end; one long after the
// others begins a new row.
func TestConsecutiveCrashesDoubleThePauseThenEnd(t *testing.T) {
	var p shellPlace
	now := time.Unix(0, 0)
	for i := range CrashesMax {
		if pause, hopeless := p.countCrash(now); hopeless || pause != crashPause<<i {
			t.Fatalf("crash %d: pause %v, hopeless %v", i+1, pause, hopeless)
		}
		now = now.Add(time.Minute)
	}
	if _, hopeless := p.countCrash(now.Add(crashMemory)); hopeless {
		t.Fatal("a crash long after the others is counted with them")
	}
	for range CrashesMax - 1 {
		p.countCrash(now)
	}
	if _, hopeless := p.countCrash(now); !hopeless {
		t.Fatal("crashes in a row do not come to an end")
	}
}
