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

// approvalRules says whose approval of a call counts.
type approvalRules struct {
	reask bool   // on another node the hooks there are asked again
	node  string // where the agent runs
}

func (s State) approvalRules() approvalRules {
	return approvalRules{s.Task.LoopOptions.Reask, s.Node}
}

// isApproved reports whether the hooks before a call have approved it on the node where it is to begin.
func (r approvalRules) isApproved(c Call) bool {
	return c.Passed && (!r.reask || c.Node == r.node) //mutant:word-of-another-node-counts
}

// askedHere records the node on which the hooks before a call were asked.
func (r approvalRules) askedHere(c Call) Call {
	if r.reask {
		c.Node = r.node
	}
	return c
}

// decide returns a call after a person's decision about it.
func (r approvalRules) decide(c Call, f Answered) Call {
	why := c.Person
	c = c.applyDecision(f)
	if r.reask && c.Passed {
		c.Agreed = why
	}
	return c
}

// isLost reports whether an attempt of the call has begun and its outcome is unknown.
func (c Call) isLost() bool { return c.Class != model.Read && c.Attempt > c.Tries }

// isLostBefore reports whether the next attempt of a call has not begun but an earlier attempt is lost.
func (r approvalRules) isLostBefore(c Call) bool {
	switch c.Stage {
	case Starting:
		c.Attempt--
	case Pending, Retrying:
	default:
		return false
	}
	return r.reask && c.isLost()
}

// endUnbegun ends a call whose next attempt has not begun; never is the result if no
// attempt has.
func (r approvalRules) endUnbegun(c Call, never string) Call {
	switch {
	case !r.isLostBefore(c):
		return c.endUnbegun(never)
	case c.Tries > 0: // the result of the last attempt is kept
		return c.endUnbegun(never).withLostNote()
	}
	return c.fail("killed while running: its outcome is unknown")
}

// notRunText describes a call that ends before it begins.
func (c Call) notRunText() string {
	if c.isLost() {
		return "not run again"
	}
	return "never started"
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
	if c.Again > 0 {
		return fmt.Sprintf("%s.%d.%d", c.ID, c.Attempt, c.Again)
	}
	return fmt.Sprintf("%s.%d", c.ID, c.Attempt)
}
