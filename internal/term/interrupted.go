package term

import "time"

// interruptedNotice says that nobody works on the run: what was in progress is done again or answered once a node
// continues it.
const interruptedNotice = "interrupted: no process works on it"

// runClock is the time of a run: that of its newest event while no process works on it.
type runClock struct {
	newest      time.Time // of the events
	interrupted bool
}

// MarkInterrupted says that no process works on the run. Its clock stops at its newest event, until another one comes.
func (t *Tree) MarkInterrupted() {
	if t.Ended.IsZero() {
		t.clock.interrupted = true
	}
}

// note keeps the time of the newest event: an event says that a process works on the run.
func (c *runClock) note(at time.Time) {
	c.interrupted = false
	if at.After(c.newest) {
		c.newest = at
	}
}

// at is the time at which the run is drawn.
func (c *runClock) at(now time.Time) time.Time {
	if c.interrupted && !c.newest.IsZero() {
		return c.newest
	}
	return now
}

// isLost reports whether the work of an agent was lost with the process that did it. A question is still open, and an agent
// in the queue has not begun.
func (m *member) isLost() bool { return m.reason == "" && !m.asks && m.activity != "queued" }
