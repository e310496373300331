package follow

import (
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
)

// earlierEvents are the events that a run had before this command continued it. Where each event has a line, one line
// counts them.
type earlierEvents struct {
	newFrom time.Time // since when events are news; zero: all are
	count   int
	command string // shows them
}

// SummarizeBefore has one line in place of those about events before a time, unless the user wants all.
func (f *Follower) SummarizeBefore(t time.Time) {
	if !f.console.Verbose {
		f.earlier.newFrom = t.Truncate(time.Millisecond)
	}
}

// take counts an event, and reports whether it is an earlier one.
func (e *earlierEvents) take(of client.Event) bool {
	at, err := time.Parse(time.RFC3339, of.TS)
	if err != nil || !at.Before(e.newFrom) {
		return false
	}
	e.count++
	return true
}

// line is the line about the events that were counted since the last one; "": there are none.
func (e *earlierEvents) line() string {
	if e.count == 0 {
		return ""
	}
	text := "… " + console.CountOf(e.count, "earlier event") + "; " + e.command + " shows all, -v prints them here"
	e.count = 0
	return text
}

// printEarlier prints the line about earlier events.
func (f *Follower) printEarlier() {
	if text := f.earlier.line(); text != "" {
		f.console.Say(f.console.ErrStyle.Dim(text))
	}
}
