package tools

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

// serverSources say where MCP servers are looked for.
type serverSources struct {
	agents.Sources
	config string
}

func (g *serverSources) addFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&g.config, "mcp-config", "", "MCP server config file (takes precedence over all others)")
	return g.Sources.AddFlags(c)
}

// completeConfig makes the path of the file absolute.
func (g *serverSources) completeConfig() error {
	if g.config == "" {
		return nil
	}
	abs, err := filepath.Abs(g.config)
	if err != nil {
		return fmt.Errorf("file %s: %w", g.config, err)
	}
	g.config = abs
	return nil
}

// findServers are the servers of the places.
func (g *serverSources) findServers(a *Commands) ([]node.MCPServer, error) {
	if err := errors.Join(g.Complete(), g.completeConfig()); err != nil {
		return nil, err
	}
	var real [3]string // as a node names them
	for i, path := range []string{g.Dir, g.config, g.Agents} {
		if path == "" {
			continue
		}
		var err error
		if real[i], err = filepath.EvalSymlinks(path); err != nil {
			return nil, exit.UsageError("name an existing one", "%s: %v", path, err)
		}
	}
	all, notes, err := node.ListServers(node.Config{StateDir: a.Sessions.StateDir, Env: a.Console.Getenv, Servers: session.UserServerFile()}, real[0], real[1], real[2])
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		if !a.Console.Quiet {
			a.Console.Say(a.Console.ErrStyle.Yellow("note: ") + term.CleanLine(n))
		}
	}
	return all, nil
}

// findServer is the server of a name that counts.
func (g *serverSources) findServer(a *Commands, name string) (node.MCPServer, error) {
	all, err := g.findServers(a)
	if err != nil {
		return node.MCPServer{}, err
	}
	var known []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	hint := "troupe mcp list shows them"
	if near := config.NearestName(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return node.MCPServer{}, exit.UsageError(hint, "there is no MCP server %q", name)
}
