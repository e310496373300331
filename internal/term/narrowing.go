package term

import (
	"strings"

	"github.com/troupe-run/troupe/agent/event"
)

// describeNarrowing says what was taken from an agent and those below it, as `root-1-0 and below: plan, deny shell(rm:*)`.
func describeNarrowing(d event.PermissionsChanged) string {
	var parts []string
	if d.Mode != "" {
		parts = append(parts, string(d.Mode))
	}
	for _, rule := range d.Deny {
		parts = append(parts, "deny "+rule)
	}
	for _, rule := range d.Ask {
		parts = append(parts, "ask "+rule)
	}
	return string(d.Agent) + " and below: " + strings.Join(parts, ", ")
}
