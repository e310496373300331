package host

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/settings"
	"github.com/troupe-run/troupe/supervisor"
)

// hooks adds the operator's own hooks to a run. Those of the directory's own
// settings do not count: to look at a repository must not run its commands.
func (h *Host) hooks(o *supervisor.Opened, a *client.RunAccepted) error {
	o.Manners.Hooks = slices.Concat(o.Manners.Hooks, h.cfg.Hooks)
	for _, d := range o.Definitions {
		if n := len(o.Manners.Hooks) + len(d.Manners.Hooks); n > agent.HooksMax {
			return bad("give the agent fewer hooks", "agent %s has %d hooks with those of this node, at most %d are asked", d.Name, n, agent.HooksMax)
		}
	}
	if o.Workspace == "" {
		return nil
	}
	file := filepath.Join(o.Workspace, settings.FileName)
	if file == settings.UserFile() {
		return nil
	}
	// What is wrong with a file that does not count is its owner's to know.
	if found, _, err := agentfile.HooksOf(o.Workspace, settings.FileName); err == nil && len(found) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%s: its hooks are off; hooks count in %s and in agent files of --agents", file, settings.UserFile()))
	}
	return nil
}

// signed are the hooks of a definition, under names that say whose they are. Go
// functions keep theirs: it is how they are found.
func signed(d agentfile.Definition) []agent.Hook {
	hooks := slices.Clone(d.Hooks)
	for i, k := range hooks {
		if k.Command != "" {
			hooks[i].Name = d.Name + "/" + k.Name
		}
	}
	return hooks
}
