package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/model"
)

// Whether a call needs approval depends on where it runs: one node has a sandbox
// that another lacks. So an approval counts on the node whose hooks gave it, and
// another node asks its own hooks before it begins the call (LoopOptions.Reask). A
// person's approval stays valid as long as the hooks there give the reason that
// the person read, and the arguments are the same.

// letThrough reports whether the hooks before a call have approved it on the node where it is to begin.
func (s State) letThrough(c Call) bool {
	return c.Passed && (!s.Task.LoopOptions.Reask || c.Node == s.Node) //mutant:word-of-another-node-counts
}

// heardOf records the node on which the hooks before a call were asked.
func (s State) heardOf(c Call) Call {
	if s.Task.LoopOptions.Reask {
		c.Node = s.Node
	}
	return c
}

// decided returns a call after a person's decision about it.
func (s State) decided(c Call, f Answered) Call {
	why := c.Person
	c = c.approved(f)
	if s.Task.LoopOptions.Reask && c.Passed {
		c.Agreed = why
	}
	return c
}

// lost reports whether an attempt of the call has begun and its outcome is unknown.
func (c Call) lost() bool { return c.Class != model.Read && c.Attempt > c.Tries }

// begunBefore reports whether the next attempt of a call has not begun but an earlier attempt is lost.
func (s State) begunBefore(c Call) bool {
	switch c.Stage {
	case Starting:
		c.Attempt--
	case Pending, Retrying:
	default:
		return false
	}
	return s.Task.LoopOptions.Reask && c.lost()
}

// unbegun ends a call whose next attempt has not begun; never is the result if no
// attempt has.
func (s State) unbegun(c Call, never string) Call {
	switch {
	case !s.begunBefore(c):
		return c.unbegun(never)
	case c.Tries > 0: // the result of the last attempt is kept
		return c.unbegun(never).confessing()
	}
	return c.fail("killed while running: its outcome is unknown")
}

// unrun describes a call that ends before it begins.
func (c Call) unrun() string {
	if c.lost() {
		return "not run again"
	}
	return "never started"
}

const lostNote = "\n[it had been started before, and whether that took effect is unknown]"

// confessing adds a note to a result that comes from no attempt: an earlier attempt had begun.
func (c Call) confessing() Call {
	if c.Stage == Ended && c.lost() {
		c.Result.Text += lostNote
	}
	return c
}

// askedAs names the question about a call. A repeated question has another name:
// an answer to the first does not answer it.
func (c Call) askedAs() string {
	if c.Again > 0 {
		return fmt.Sprintf("%s.%d.%d", c.ID, c.Attempt, c.Again)
	}
	return fmt.Sprintf("%s.%d", c.ID, c.Attempt)
}
