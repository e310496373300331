package agent_test

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
)

// printBacklog prints a call of a tool of the backlog, as the supervisor gets it.
func printBacklog(f agent.Backlog) string {
	return fmt.Sprintf("backlog %s %s task=%q title=%q %q", f.Call, f.Do, f.Task, f.Title, f.Text)
}
