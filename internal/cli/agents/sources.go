// Package agents holds the commands about agent files, and the roster of agents that a run
// here can have.
package agents

import (
	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/workdir"
)

// Sources say where agents are looked for.
type Sources struct{ Agents, Dir string }

// AddFlags adds the flags of the sources to a command.
func (g *Sources) AddFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&g.Agents, "agents", "", "directory of agent files (takes precedence over all others)")
	c.Flags().StringVar(&g.Dir, "dir", ".", "directory whose agents to list")
	return c
}

// Complete checks the directories and makes them absolute.
func (g *Sources) Complete() error {
	for _, p := range []*string{&g.Agents, &g.Dir} {
		if err := request.AbsoluteDir(p); err != nil {
			return err
		}
	}
	g.Dir = workdir.Real(g.Dir) // the agents of a directory are read without links in its path
	return nil
}

// ShortPath returns a path as a person in the directory would write it.
func (g *Sources) ShortPath(path string) string { return console.ShortPath(path, g.Dir) }

// loadFiles reads all agent files of the places.
func (g *Sources) loadFiles() ([]agentfile.Definition, []agentfile.Note, error) {
	if g.Agents != "" {
		return agentfile.LoadWorkspace(g.Dir, g.Agents)
	}
	return agentfile.LoadWorkspace(g.Dir)
}
