package agent

import "fmt"

// Whether a call needs approval depends on where it runs: one node has a sandbox
// that another lacks. So an approval counts on the node whose hooks gave it, and
// another node asks its own hooks before it begins the call. A person's approval
// stays valid as long as the hooks there give the reason that the person read, and
// the arguments are the same.

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
