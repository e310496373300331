package dispatcher

import "time"

// idleKept is how long a goroutine waits for its next function.
const idleKept = 100 * time.Millisecond

// Goroutines run functions that may block, each on a goroutine of its own. A goroutine that has ended one takes another
// for a while: its stack has grown already, which is a part of the cost of a short call.
type Goroutines chan func()

// NewGoroutines returns Goroutines without any.
func NewGoroutines() Goroutines { return make(Goroutines) }

// Go runs f as a go statement does. f must leave its goroutine as it was: it must not lock it to a thread.
func (g Goroutines) Go(f func()) {
	select {
	case g <- f:
	default:
		go g.runFunctions(f)
	}
}

func (g Goroutines) runFunctions(f func()) {
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
