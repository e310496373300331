package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool/mcp"
)

// mcpPlaces say where MCP servers are looked for.
type mcpPlaces struct {
	agentPlaces
	config string
}

func (g *mcpPlaces) add(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&g.config, "mcp-config", "", "file of MCP servers that goes before the others")
	return g.agentPlaces.add(c)
}

// userServers is the file in which the user names MCP servers.
func userServers() string { return filepath.Join(filepath.Dir(config.UserFile()), mcp.UserFileName) }

func (a *toolCommands) mcpCommand() *cobra.Command {
	c := commandGroup("mcp", "List, try and allow the MCP servers whose tools agents can have",
		"MCP servers are named in .mcp.json of the directory, in the user's own mcp.json, in agent files, or in a file that --mcp-config names: docs/mcp.md.",
		"  troupe mcp list\n  troupe mcp allow files\n  troupe mcp test files")
	c.AddCommand(a.mcpList(), a.mcpTest(), a.mcpAllow())
	return c
}

// mcpInfo is one server, as scripts read it.
type mcpInfo struct {
	Name      string    `json:"name"`
	Source    string    `json:"source"`
	Transport string    `json:"transport"` // stdio, http
	Line      string    `json:"line"`      // the command, or the address
	Dir       string    `json:"cwd,omitempty"`
	Variables []string  `json:"variables,omitempty"` // that it reads of the environment
	Env       []string  `json:"env,omitempty"`       // names that it is given
	On        bool      `json:"on"`
	Why       string    `json:"why,omitempty"` // it is off
	Server    string    `json:"server,omitempty"`
	Protocol  string    `json:"protocol,omitempty"`
	Tools     []mcpTool `json:"tools"`
	Refused   []string  `json:"refused,omitempty"`
}

// mcpTool is one tool of a server and its state compared with what was allowed.
type mcpTool struct {
	Name        string      `json:"name"`
	State       mcp.State   `json:"state"`
	Class       model.Class `json:"class"`
	Description string      `json:"description"`
	Schema      string      `json:"input_schema"`
	Was         string      `json:"was,omitempty"` // its description when it was allowed
}

// completeConfig makes the path of the file absolute.
func (g *mcpPlaces) completeConfig() error {
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

// find are the servers of the places.
func (g *mcpPlaces) find(a *toolCommands) ([]node.Server, error) {
	if err := errors.Join(g.complete(), g.completeConfig()); err != nil {
		return nil, err
	}
	var real [3]string // as a node names them
	for i, path := range []string{g.dir, g.config, g.agents} {
		if path == "" {
			continue
		}
		var err error
		if real[i], err = filepath.EvalSymlinks(path); err != nil {
			return nil, usage("name one that is there", "%s: %v", path, err)
		}
	}
	all, notes, err := node.Servers(node.Config{StateDir: a.sessions.storeIn, Env: a.console.getenv, Servers: userServers()}, real[0], real[1], real[2])
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		if !a.console.quiet {
			a.console.say(a.console.errors.Yellow("note: ") + term.Line(n))
		}
	}
	return all, nil
}

// one is the server of a name that counts.
func (g *mcpPlaces) one(a *toolCommands, name string) (node.Server, error) {
	all, err := g.find(a)
	if err != nil {
		return node.Server{}, err
	}
	var known []string
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	hint := "troupe mcp list shows them"
	if near := config.Near(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return node.Server{}, usage(hint, "there is no MCP server %q", name)
}

func serverInfo(s node.Server, v mcp.Verdict) mcpInfo {
	i := mcpInfo{Name: s.Name, Source: s.Source, Transport: "stdio", Line: s.Line(), Dir: s.Dir, Variables: s.Variables(), On: s.Off == "", Why: s.Off, Tools: []mcpTool{}}
	if s.URL != "" {
		i.Transport = "http"
	}
	for name := range s.Env {
		i.Env = append(i.Env, name)
	}
	slices.Sort(i.Env)
	for _, t := range v.Tools {
		i.Tools = append(i.Tools, mcpTool{Name: t.Spec.Name, State: t.State, Class: t.Spec.Class, Description: t.Spec.Description, Schema: t.Spec.Schema})
	}
	return i
}

func (a *toolCommands) lock() mcp.Lock { return mcp.OpenLock(statedir.StateDir(a.sessions.storeIn)) }

func (a *toolCommands) mcpList() *cobra.Command {
	var g mcpPlaces
	return g.add(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: none,
		Short: "List the MCP servers that a run here would have, and why one is off",
		Long: `List the MCP servers that a run in this directory would have. Nothing is started: the
tools are those that were pinned when a server was first used or allowed.`,
		Example:     "  troupe mcp list\n  troupe mcp list -o json | jq -r '.[] | select(.on | not) | .why'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			all, err := g.find(a)
			if err != nil {
				return err
			}
			list := []mcpInfo{}
			for _, s := range all {
				v, err := a.lock().Pinned(s.Server)
				if err != nil {
					return err
				}
				list = append(list, serverInfo(s, v))
			}
			if a.console.output != "table" {
				return a.console.printData(list)
			}
			var rows [][]string
			for _, i := range list {
				rows = append(rows, []string{term.Line(i.Name), i.state(), term.Line(g.short(i.Source)), term.Line(i.Line)})
			}
			return a.console.table([]string{"NAME", "STATE", "FROM", "USES"}, rows)
		},
	})
}

// state is a server in one word or a few.
func (i mcpInfo) state() string {
	if !i.On {
		return "off: " + term.Line(i.Why)
	}
	off := 0
	for _, t := range i.Tools {
		if t.State != mcp.Allowed {
			off++
		}
	}
	switch {
	case len(i.Tools) == 0:
		return "on, not used yet"
	case off > 0:
		return fmt.Sprintf("on, %s, %d off", countOf(len(i.Tools), "tool"), off)
	}
	return "on, " + countOf(len(i.Tools), "tool")
}

func (a *toolCommands) mcpTest() *cobra.Command {
	var g mcpPlaces
	return g.add(&cobra.Command{
		Use: "test SERVER", Args: exactly("SERVER"),
		Short:       "Start an MCP server, and show what it offers and what of it is allowed",
		Long:        "Start an MCP server, and show what it offers and what of it is allowed. Nothing is pinned by it.",
		Example:     "  troupe mcp test files\n  troupe mcp test files -o json | jq -r '.tools[] | select(.state != \"allowed\") | .name'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := g.one(a, args[0])
			if err != nil {
				return err
			}
			if s.Off != "" {
				return usage(s.Remedy("allow"), "the MCP server %s is off: %s", s.Name, s.Off)
			}
			now, err := a.askServer(c.Context(), s)
			if err != nil {
				return err
			}
			v, err := a.lock().Compare(s.Server, now)
			if err != nil {
				return err
			}
			return a.showServer(s, now, v)
		},
	})
}

// askServer starts a server for as long as it takes to list its tools.
func (a *toolCommands) askServer(ctx context.Context, s node.Server) (mcp.Listing, error) {
	hub := mcp.New(mcp.Config{Getenv: a.console.getenv, Logger: a.console.logger()})
	defer hub.Close()
	now, err := hub.List(cmp.Or(ctx, context.Background()), s.Server, node.ServerDir(s.Source))
	if err != nil {
		return now, &failure{code: exitFailed, err: err, hint: "try it by hand: " + term.Line(s.Line())}
	}
	return now, nil
}

func (a *toolCommands) showServer(s node.Server, now mcp.Listing, v mcp.Verdict) error {
	i := serverInfo(s, v)
	i.Server, i.Protocol, i.Refused = now.Server, now.Version, now.Refused
	before, err := a.lock().Pinned(s.Server)
	if err != nil {
		return err
	}
	for k, t := range i.Tools {
		was := slices.IndexFunc(before.Tools, func(b mcp.Standing) bool { return b.Spec.Name == t.Name })
		if t.State == mcp.Changed && was >= 0 {
			i.Tools[k].Was = before.Tools[was].Spec.Description
		}
	}
	if a.console.output != "table" {
		return a.console.printData(i)
	}
	if !a.console.quiet {
		a.console.say(term.Line(fmt.Sprintf("%s answers as %s, protocol %s", i.Name, cmp.Or(i.Server, "nobody"), i.Protocol)))
		for _, why := range i.Refused {
			a.console.say(a.console.errors.Yellow("left out: ") + term.Line(why))
		}
	}
	var rows [][]string
	for _, t := range i.Tools {
		what := t.Description
		if t.State == mcp.Changed {
			what += " [it was: " + t.Was + "]"
		}
		state := string(t.State)
		if v.First {
			state = "not pinned yet"
		}
		rows = append(rows, []string{term.Line(t.Name), state, string(t.Class), term.Line(what)})
	}
	return a.console.table([]string{"TOOL", "STATE", "CLASS", "DESCRIPTION"}, rows)
}

// completeServers makes the path of the file of servers absolute.
func (r *runFlags) completeServers() error {
	if r.request.MCPConfig == "" {
		return nil
	}
	abs, err := filepath.Abs(r.request.MCPConfig)
	if err != nil {
		return fmt.Errorf("file %s: %w", r.request.MCPConfig, err)
	}
	if _, err := mcp.Read(abs); err != nil {
		return usage("mend the file", "--mcp-config: %v", err)
	}
	if _, err := os.Stat(abs); err != nil {
		return usage("name a file that is there", "--mcp-config: %v", err)
	}
	r.request.MCPConfig = abs
	return nil
}
