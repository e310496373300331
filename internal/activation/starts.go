package activation

import "github.com/troupe-run/troupe/mailbox"

// UnfinishedStarts counts the activations at the end of a log that began, but never wrote a
// Checkpoint or ended in order. If there are more than StartsMax, the node gives the actor up without stepping its
// log.
func UnfinishedStarts(log []mailbox.Message) int {
	var starts StartCount
	for _, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil || len(e.Items) == 0 {
			continue
		}
		if e.Items[0].Kind == "closed" { // the next activation reads that, and stops
			return 0
		}
		starts.Read(e)
	}
	return starts.Unfinished
}

// StartCount counts as UnfinishedStarts, an entry at a time.
type StartCount struct {
	Unfinished int
	last       string // the newest activation
}

// Read counts an entry with items.
func (c *StartCount) Read(e mailbox.Entry) {
	switch e.Items[0].Kind {
	case "resumed":
		if e.Start != c.last { // an activation that claims twice has more to report
			c.Unfinished++
		}
		c.last = e.Start
	case "checkpoint", "released":
		c.Unfinished = 0
	}
}
