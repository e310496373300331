package supervisor_test

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
)

// markLive marks the answer to a delegation whose child goes on in the background.
func markLive(f agent.Returned) string {
	if f.Live {
		return " live"
	}
	return ""
}

// printCancel prints the account of a cancel, if there was one.
func printCancel(r event.Result) string {
	if r.Cancel == nil {
		return ""
	}
	text := fmt.Sprintf("%s (%dms)\n", r.Cancel.Text, r.Cancel.TookMS)
	for _, who := range r.Cancel.Pending {
		text += fmt.Sprintf("  not yet: %s on %q\n", who.ID, who.Node)
	}
	for _, who := range r.Cancel.Orphans {
		text += fmt.Sprintf("  given up: %s on %q\n", who.ID, who.Node)
	}
	return text
}
