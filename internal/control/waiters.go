package control

import (
	"sync"

	"github.com/troupe-run/troupe/agent/event"
)

// runWaiters wake the callers in this process that wait for runs: no server, subscription or poll is
// between them and the state that the actors report.
type runWaiters struct {
	mu      sync.Mutex
	waiting map[string][]*RunWaiter
}

// RunWaiter waits for the end of one run.
type RunWaiter struct {
	runs    *Runs
	run     string
	changed chan struct{} // has room for one signal
	result  *event.Result // of a run that is over; guarded by runWaiters.mu
}

// NewWaiter makes a waiter of a run, which need not exist yet. The caller must Close it.
func (r *Runs) NewWaiter(run string) *RunWaiter {
	w := &RunWaiter{runs: r, run: run, changed: make(chan struct{}, 1)}
	r.waiters.mu.Lock()
	defer r.waiters.mu.Unlock()
	if r.waiters.waiting == nil {
		r.waiters.waiting = map[string][]*RunWaiter{}
	}
	r.waiters.waiting[run] = append(r.waiters.waiting[run], w)
	return w
}

// Close forgets the waiter.
func (w *RunWaiter) Close() {
	k := &w.runs.waiters
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := k.waiting[w.run]
	for i, other := range rest {
		if other == w {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(k.waiting, w.run)
		return
	}
	k.waiting[w.run] = rest
}

// arrivedResult returns the result that has arrived; nil: the run has only changed.
func (w *RunWaiter) arrivedResult() *event.Result {
	w.runs.waiters.mu.Lock()
	defer w.runs.waiters.mu.Unlock()
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
		case w.changed <- struct{}{}:
		default: // a change is already signaled
		}
	}
}

// NoteParked wakes the callers that wait for a run: it waits for a person now.
func (r *Runs) NoteParked(run string) { r.waiters.wake(run, nil) }

// NoteResult wakes the callers that wait for a run: it is over.
func (r *Runs) NoteResult(run string, result event.Result) { r.waiters.wake(run, &result) }
