package dispatcher

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A function that blocks keeps none from running.
func TestGoRunsEachFunctionAtOnce(t *testing.T) {
	const functions = 50
	release, running, goroutines := make(chan struct{}), make(chan struct{}), NewGoroutines()
	for range functions {
		goroutines.Go(func() {
			running <- struct{}{}
			<-release
		})
	}
	for range functions {
		<-running
	}
	close(release)
}

func TestGoTakesAGoroutineThatHasEndedItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goroutines, ids := NewGoroutines(), make(chan string, 2)
		for range 2 {
			goroutines.Go(func() {
				text := make([]byte, 64)
				ids <- strings.Fields(string(text[:runtime.Stack(text, false)]))[1]
			})
			synctest.Wait() // the goroutine waits for its next function
		}
		if first, second := <-ids, <-ids; first != second {
			t.Errorf("goroutine %s ran the first function, and %s the second", first, second)
		}
		<-time.After(2 * idleKept) // a goroutine that has not ended by then fails synctest.Test
	})
}
