package tools

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// serverInfo is one server, as scripts read it.
type serverInfo struct {
	Name      string       `json:"name"`
	Source    string       `json:"source"`
	Transport string       `json:"transport"` // stdio, http
	Line      string       `json:"line"`      // the command, or the address
	Dir       string       `json:"cwd,omitempty"`
	Variables []string     `json:"variables,omitempty"` // that it reads of the environment
	Env       []string     `json:"env,omitempty"`       // names that it is given
	On        bool         `json:"on"`
	Why       string       `json:"why,omitempty"` // it is off
	Server    string       `json:"server,omitempty"`
	Protocol  string       `json:"protocol,omitempty"`
	Tools     []serverTool `json:"tools"`
	Refused   []string     `json:"refused,omitempty"`
}

// serverTool is one tool of a server and its state compared with what was allowed.
type serverTool struct {
	Name        string          `json:"name"`
	State       mcpclient.State `json:"state"`
	Class       model.Class     `json:"class"`
	Description string          `json:"description"`
	Schema      string          `json:"input_schema"`
	Was         string          `json:"was,omitempty"` // its description when it was allowed
}

func newServerInfo(s node.MCPServer, v mcpclient.Verdict) serverInfo {
	i := serverInfo{Name: s.Name, Source: s.Source, Transport: "stdio", Line: s.Line(), Dir: s.Dir, Variables: s.Variables(), On: s.Off == "", Why: s.Off, Tools: []serverTool{}}
	if s.URL != "" {
		i.Transport = "http"
	}
	for name := range s.Env {
		i.Env = append(i.Env, name)
	}
	slices.Sort(i.Env)
	for _, t := range v.Tools {
		i.Tools = append(i.Tools, serverTool{Name: t.Spec.Name, State: t.State, Class: t.Spec.Class, Description: t.Spec.Description, Schema: t.Spec.Schema})
	}
	return i
}

func (cs *Commands) listServersCommand() *cobra.Command {
	var g serverSources
	return g.addFlags(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short: "List the MCP servers of a run started here, and why one is disabled",
		Long: `List the MCP servers that a run in this directory would have. Nothing is started: the
tools are those that were pinned when a server was first used or allowed.`,
		Example:     "  troupe mcp list\n  troupe mcp list -o json | jq -r '.[] | select(.on | not) | .why'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			all, err := g.findServers(cs)
			if err != nil {
				return err
			}
			list := []serverInfo{}
			for _, s := range all {
				v, err := cs.serverLock().Pinned(s.Server)
				if err != nil {
					return err
				}
				list = append(list, newServerInfo(s, v))
			}
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(list)
			}
			var rows [][]string
			for _, i := range list {
				rows = append(rows, []string{term.CleanLine(i.Name), i.stateText(), term.CleanLine(g.ShortPath(i.Source)), term.CleanLine(i.Line)})
			}
			return cs.Console.PrintTable([]string{"NAME", "STATE", "FROM", "USES"}, rows)
		},
	})
}

// stateText is a server in one word or a few.
func (i serverInfo) stateText() string {
	if !i.On {
		return "off: " + term.CleanLine(i.Why)
	}
	off := 0
	for _, t := range i.Tools {
		if t.State != mcpclient.Allowed {
			off++
		}
	}
	switch {
	case len(i.Tools) == 0:
		return "on, not used yet"
	case off > 0:
		return fmt.Sprintf("on, %s, %d off", console.CountOf(len(i.Tools), "tool"), off)
	}
	return "on, " + console.CountOf(len(i.Tools), "tool")
}
