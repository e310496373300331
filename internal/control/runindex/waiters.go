package runindex

import (
	"sync"

	"github.com/troupe-run/troupe/agent/event"
)

// runWaiters wake the callers in this process that wait for runs: no server, subscription or poll is
// between them and the state that the actors report.
type runWaiters struct {
	mu      sync.Mutex
	waiting map[string][]*Waiter
}

// Waiter waits for the end of one run.
type Waiter struct {
	ends    *Ends
	Run     string
	Changed chan struct{} // has room for one signal
	result  *event.Result // of a run that is over; guarded by runWaiters.mu
}

// NewWaiter makes a waiter of a run, which need not exist yet. The caller must Close it.
func (e *Ends) NewWaiter(run string) *Waiter {
	w := &Waiter{ends: e, Run: run, Changed: make(chan struct{}, 1)}
	e.waiters.mu.Lock()
	defer e.waiters.mu.Unlock()
	if e.waiters.waiting == nil {
		e.waiters.waiting = map[string][]*Waiter{}
	}
	e.waiters.waiting[run] = append(e.waiters.waiting[run], w)
	return w
}

// Close forgets the waiter.
func (w *Waiter) Close() {
	k := &w.ends.waiters
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := k.waiting[w.Run]
	for i, other := range rest {
		if other == w {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(k.waiting, w.Run)
		return
	}
	k.waiting[w.Run] = rest
}

// ArrivedResult returns the result that has arrived; nil: the run has only changed.
func (w *Waiter) ArrivedResult() *event.Result {
	w.ends.waiters.mu.Lock()
	defer w.ends.waiters.mu.Unlock()
	return w.result
}

// wake signals that a run has changed; result is that of a run that is over, otherwise nil.
func (k *runWaiters) wake(run string, result *event.Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.waiting[run] {
		if result != nil {
			w.result = result
		}
		select {
		case w.Changed <- struct{}{}:
		default: // a change is already signaled
		}
	}
}
