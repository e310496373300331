package term

import "time"

// interruptedNotice says that nobody works on the run: what was in progress is done again or answered once a node
// continues it.
const interruptedNotice = "interrupted: no process works on it"

// MarkInterrupted says that no process works on the run. Its clock stops at its newest event, until another one comes.
func (t *Tree) MarkInterrupted() {
	if t.Ended.IsZero() {
		t.interrupted = true
	}
}

// noteTime keeps the time of the newest event: an event says that a process works on the run.
func (t *Tree) noteTime(at time.Time) {
	t.interrupted = false
	if at.After(t.last) {
		t.last = at
	}
}

// clock is the time at which the tree is drawn: of an interrupted run that of its newest event.
func (t *Tree) clock(now time.Time) time.Time {
	if t.interrupted && !t.last.IsZero() {
		return t.last
	}
	return now
}

// isLost reports whether the work of an agent was lost with the process that did it. A question is still open, and an agent
// in the queue has not begun.
func (m *member) isLost() bool { return m.reason == "" && !m.asks && m.activity != "queued" }
