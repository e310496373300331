package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/model"
)

// Whether a call needs approval depends on where it runs: one node has a sandbox
// that another lacks. So an approval counts on the node whose hooks gave it, and
// another node asks its own hooks before it begins the call. A person's approval
// stays valid as long as the hooks there give the reason that the person read, and
// the arguments are the same.

// isApprovedOn reports whether the hooks before a call have approved it on the node where it is to begin.
func (c Call) isApprovedOn(node string) bool {
	return c.Gate.Passed && c.Gate.Node == node //mutant:word-of-another-node-counts
}

// isLost reports whether an attempt of the call has begun and its outcome is unknown.
func (c Call) isLost() bool { return c.Class != model.Read && c.Attempt > c.Tries }

// isLostBefore reports whether the next attempt of a call has not begun but an earlier attempt is lost.
func (c Call) isLostBefore() bool {
	switch c.Stage {
	case Starting:
		c.Attempt--
	case Pending, Retrying:
	default:
		return false
	}
	return c.isLost()
}

// notRunText describes a call that ends before it begins.
func (c Call) notRunText() string {
	if c.isLost() {
		return "not run again"
	}
	return "never started"
}

// notRunAs is what a call had come to that ends before it begins.
func (c Call) notRunAs() event.Synthetic {
	if c.isLost() {
		return event.Killed
	}
	return event.NeverStarted
}

const lostNote = "\n[it had been started before, and whether that took effect is unknown]"

// withLostNote adds a note to a result that comes from no attempt: an earlier attempt had begun.
func (c Call) withLostNote() Call {
	if c.Stage == Ended && c.isLost() {
		c.Result.Text += lostNote
	}
	return c
}

// askedAs names the question about a call. A repeated question has another name:
// an answer to the first does not answer it.
func (c Call) askedAs() string {
	if c.Gate.Again > 0 {
		return fmt.Sprintf("%s.%d.%d", c.ID, c.Attempt, c.Gate.Again)
	}
	return fmt.Sprintf("%s.%d", c.ID, c.Attempt)
}
