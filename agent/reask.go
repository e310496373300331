package agent

import (
	"fmt"

	"github.com/troupe-run/troupe/model"
)

// Whether a call needs somebody's word depends on where it runs: one node has a
// sandbox that another lacks. So what was let through counts on the node whose
// hooks let it through, and another node asks its own before it begins the call
// (Manners.Reask). What a person agreed to stays agreed, as long as the hooks there
// give the reason that the person read, and the arguments are the same.

// letThrough: the hooks before a call have let it through, where it is to begin.
func (s State) letThrough(c Call) bool {
	return c.Passed && (!s.Task.Manners.Reask || c.Node == s.Node) //mutant:word-of-another-node-counts
}

// heardOf notes where the hooks before a call were asked.
func (s State) heardOf(c Call) Call {
	if s.Task.Manners.Reask {
		c.Node = s.Node
	}
	return c
}

// decided is a call after a person has decided about it.
func (s State) decided(c Call, f Answered) Call {
	why := c.Person
	c = c.approved(f)
	if s.Task.Manners.Reask && c.Passed {
		c.Agreed = why
	}
	return c
}

// lost: an attempt of the call has begun, and nobody knows what became of it.
func (c Call) lost() bool { return c.Class != model.Read && c.Attempt > c.Tries }

// begunBefore: a call whose next attempt has not begun is one of which another is lost.
func (s State) begunBefore(c Call) bool {
	switch c.Stage {
	case Starting:
		c.Attempt--
	case Pending, Retrying:
	default:
		return false
	}
	return s.Task.Manners.Reask && c.lost()
}

// unbegun ends a call whose next attempt has not begun; never is for one of which
// no attempt has.
func (s State) unbegun(c Call, never string) Call {
	switch {
	case !s.begunBefore(c):
		return c.unbegun(never)
	case c.Tries > 0: // what the last attempt said is kept
		return c.unbegun(never).confessing()
	}
	return c.fail("killed while running: its outcome is unknown")
}

// unrun is what a call is that is ended before it begins.
func (c Call) unrun() string {
	if c.lost() {
		return "not run again"
	}
	return "never started"
}

const lostNote = "\n[it had been started before, and whether that took effect is unknown]"

// confessing adds to a result that stands for no attempt that there was one.
func (c Call) confessing() Call {
	if c.Stage == Ended && c.lost() {
		c.Result.Text += lostNote
	}
	return c
}

// askedAs names the question about a call. What is asked anew is another question:
// an answer to the first is none to it.
func (c Call) askedAs() string {
	if c.Again > 0 {
		return fmt.Sprintf("%s.%d.%d", c.ID, c.Attempt, c.Again)
	}
	return fmt.Sprintf("%s.%d", c.ID, c.Attempt)
}
