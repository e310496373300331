package runspec

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/supervisor"
)

// grantBacklog gives the run the tools of the shared backlog if a definition or the request names one of them,
// also as backlog_*. As with restricted tools, an agent that names no tools may pass those that only
// definitions name on, and is not offered them.
func grantBacklog(allowed []string, t toolGrants) toolGrants {
	namesOne := func(name string) bool { return strings.HasPrefix(name, "backlog_") }
	byRequest := slices.ContainsFunc(allowed, namesOne)
	if !byRequest && !slices.ContainsFunc(t.definitions, func(d supervisor.Definition) bool { return slices.ContainsFunc(d.Tools, namesOne) }) {
		return t
	}
	if !byRequest {
		t.definitions = slices.Clone(t.definitions)
		for i, d := range t.definitions {
			if d.Tools == nil && d.Offer == nil {
				t.definitions[i].Offer = toolset.ToolNames(t.tools)
			}
		}
	}
	t.tools = slices.Concat(t.tools, agent.BacklogTools())
	return t
}
