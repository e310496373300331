package agent_test

import (
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent"
)

// printChildren prints the children in the background, and what was said and not read.
func printChildren(s agent.State) string {
	var b strings.Builder
	if s.Suspended.Why == agent.AwaitsOthers {
		b.WriteString(" idle")
	}
	for _, a := range s.BackgroundChildren {
		fmt.Fprintf(&b, " away=%s", a.Child)
	}
	if len(s.Mail) > 0 {
		fmt.Fprintf(&b, " mail=%d", len(s.Mail))
	}
	return b.String()
}

// sentOff says how a delegation differs from a call that waits.
func sentOff(e agent.Delegate) string {
	text := ""
	if e.Background {
		text = " background"
	}
	if e.Schema != "" {
		text += " schema=" + e.Schema
	}
	return text
}
