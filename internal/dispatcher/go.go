package dispatcher

import "time"

// idleKept is how long a goroutine of Go waits for its next function.
const idleKept = 100 * time.Millisecond

var shared = make(idleGoroutines)

// Go runs f as a go statement does, but takes a goroutine that has just ended another f, if one waits: its stack has
// grown already, which is a part of the cost of a short call. f may block for as long as it likes, and must leave its
// goroutine as it was: it must not lock it to a thread.
func Go(f func()) { shared.run(f) }

// idleGoroutines takes functions to goroutines that wait for one.
type idleGoroutines chan func()

func (g idleGoroutines) run(f func()) {
	select {
	case g <- f:
	default:
		go g.runFunctions(f)
	}
}

func (g idleGoroutines) runFunctions(f func()) {
	idle := time.NewTimer(idleKept)
	defer idle.Stop()
	for {
		f()
		f = nil // what it holds must not stay in memory while the goroutine waits
		idle.Reset(idleKept)
		select {
		case f = <-g:
		case <-idle.C:
			return
		}
	}
}
