package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

func (cs *Commands) testServerCommand() *cobra.Command {
	var g serverSources
	return g.addFlags(&cobra.Command{
		Use: "test SERVER", Args: command.Exactly("SERVER"),
		Short:       "Start an MCP server and show its tools and which are allowed",
		Long:        "Start an MCP server and show its tools and which are allowed. Nothing is pinned by it.",
		Example:     "  troupe mcp test files\n  troupe mcp test files -o json |\n    jq -r '.tools[] | select(.state != \"allowed\") | .name'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := g.findServer(cs, args[0])
			if err != nil {
				return err
			}
			if s.Off != "" {
				return exit.UsageError(s.Remedy("allow"), "the MCP server %s is off: %s", s.Name, s.Off)
			}
			now, err := cs.queryServer(c.Context(), s)
			if err != nil {
				return err
			}
			v, err := cs.serverLock().Compare(s.Server, now)
			if err != nil {
				return err
			}
			return cs.printServer(s, now, v)
		},
	})
}

// queryServer starts a server for as long as it takes to list its tools.
func (cs *Commands) queryServer(ctx context.Context, s node.MCPServer) (mcpclient.Listing, error) {
	hub := mcpclient.New(mcpclient.Config{Getenv: cs.Console.Getenv, Logger: cs.Console.Logger()})
	defer hub.Close()
	now, err := hub.List(cmp.Or(ctx, context.Background()), s.Server, node.ServerDir(s.Source))
	if err != nil {
		return now, &exit.Failure{Code: exit.Failed, Err: err, Hint: "try it by hand: " + term.CleanLine(s.Line())}
	}
	return now, nil
}

func (cs *Commands) printServer(s node.MCPServer, now mcpclient.Listing, v mcpclient.Verdict) error {
	i := newServerInfo(s, v)
	i.Server, i.Protocol, i.Refused = now.Server, now.Version, now.Refused
	before, err := cs.serverLock().Pinned(s.Server)
	if err != nil {
		return err
	}
	for k, t := range i.Tools {
		was := slices.IndexFunc(before.Tools, func(b mcpclient.Standing) bool { return b.Spec.Name == t.Name })
		if t.State == mcpclient.Changed && was >= 0 {
			i.Tools[k].Was = before.Tools[was].Spec.Description
		}
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(i)
	}
	if !cs.Console.Quiet {
		cs.Console.Say(term.CleanLine(fmt.Sprintf("%s answers as %s, protocol %s", i.Name, cmp.Or(i.Server, "nobody"), i.Protocol)))
		for _, why := range i.Refused {
			cs.Console.Say(cs.Console.ErrStyle.Yellow("left out: ") + term.CleanLine(why))
		}
	}
	var rows [][]string
	for _, t := range i.Tools {
		what := t.Description
		if t.State == mcpclient.Changed {
			what += " [it was: " + t.Was + "]"
		}
		state := string(t.State)
		if v.First {
			state = "not pinned yet"
		}
		rows = append(rows, []string{term.CleanLine(t.Name), state, string(t.Class), term.CleanLine(what)})
	}
	return cs.Console.PrintTable([]string{"TOOL", "STATE", "CLASS", "DESCRIPTION"}, rows)
}
