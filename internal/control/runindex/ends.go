package runindex

import (
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/supervisor"
)

// Ends is what this process knows of the ends of its runs, and of the runs that wait for a person, before any row says it.
// It wakes the callers that wait for a run, and has the newest results. The zero value is ready.
type Ends struct {
	waiters runWaiters
	recent  recentResults
}

// NoteState remembers the result of a run whose supervisor's log says that it is over, and wakes the
// callers that wait for it.
func (e *Ends) NoteState(run string, s supervisor.State) {
	if s.Phase != supervisor.Over {
		return
	}
	result := bounds.FitAgents(s.Result())
	e.recent.put(run, recentResult{result, time.Now()})
	e.NoteResult(run, result)
}

// RecentResult returns the result of a run that ended here last, and when this node learned that.
func (e *Ends) RecentResult(run string) (result event.Result, ended time.Time, ok bool) {
	recent, ok := e.recent.find(run)
	return recent.Result, recent.ended, ok
}

// NoteParked wakes the callers that wait for a run: it waits for a person now.
func (e *Ends) NoteParked(run string) { e.waiters.wake(run, nil) }

// NoteResult wakes the callers that wait for a run: it is over.
func (e *Ends) NoteResult(run string, result event.Result) { e.waiters.wake(run, &result) }
