package tools

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

func (cs *Commands) allowServerCommand() *cobra.Command {
	var g serverSources
	var yes bool
	c := g.addFlags(&cobra.Command{
		Use: "allow SERVER", Args: command.Exactly("SERVER"),
		Short: "Allow a directory's MCP server, with its tools as they are now",
		Long: `Allow an MCP server that .mcp.json of a directory names to be used, and pin its tools
as they are now: also those that have changed since they were pinned, and are off.
What would run is shown first. On a terminal you are asked, unless --yes is given;
elsewhere --yes is needed.`,
		Example:     "  troupe mcp allow files\n  troupe mcp allow files --yes -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := g.findServer(cs, args[0])
			if err != nil {
				return err
			}
			return cs.allowServer(c.Context(), g, s, yes)
		},
	})
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (cs *Commands) allowServer(ctx context.Context, g serverSources, s node.MCPServer, yes bool) error {
	state, err := cs.serverLock().State(s.Server)
	if err != nil {
		return err
	}
	if state != mcpclient.Allowed || !s.Trusted && s.Off != "" {
		for _, line := range consentLines(s) {
			cs.Console.Say(line)
		}
		if err := cs.Console.Confirm(yes, "allow it to be used", "?", "nothing was allowed"); err != nil {
			return err
		}
	}
	now, err := cs.queryServer(ctx, s)
	if err != nil {
		return err
	}
	v, err := cs.serverLock().Compare(s.Server, now)
	if err != nil {
		return err
	}
	if len(v.Off()) > 0 && !v.First {
		if cs.Console.Output == "table" {
			if err := cs.printServer(s, now, v); err != nil {
				return err
			}
		}
		if err := cs.Console.Confirm(yes, "allow these tools as they are now", "?", "nothing was allowed"); err != nil {
			return err
		}
	}
	if err := cs.serverLock().Allow(s.Server, now); err != nil {
		return err
	}
	s.Off = ""
	if v, err = cs.serverLock().Compare(s.Server, now); err != nil {
		return err
	}
	return cs.printServer(s, now, v)
}

// consentLines is exactly what would be used, with nothing hidden in it.
func consentLines(s node.MCPServer) []string {
	lines := []string{"the MCP server " + term.CleanLine(s.Name) + " of " + term.CleanLine(s.Source)}
	if s.URL != "" {
		lines = append(lines, "  asks  "+term.CleanLine(s.Line()))
	} else {
		lines = append(lines, "  runs  "+quoteWords(append([]string{s.Command}, s.Args...)), "  in    "+term.CleanLine(cmp.Or(s.Dir, node.ServerDir(s.Source))))
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		lines = append(lines, "  file  "+term.CleanLine(path)+"  sha256 "+s.Files[path])
	}
	i := newServerInfo(s, mcpclient.Verdict{})
	for _, name := range i.Env {
		lines = append(lines, "  env   "+term.CleanLine(name)+"="+quoteWord(s.Env[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		lines = append(lines, "  sends "+term.CleanLine(name)+": "+quoteWord(s.Headers[name]))
	}
	if len(i.Variables) > 0 {
		lines = append(lines, "  reads "+strings.Join(i.Variables, ", ")+" of your environment")
	}
	return lines
}

// quoteWords are the arguments of a command, each for itself.
func quoteWords(argv []string) string {
	list := make([]string, len(argv))
	for i, w := range argv {
		list[i] = quoteWord(w)
	}
	return strings.Join(list, " ")
}

// quoteWord renders a text so that no part of it can be mistaken for something else: a text that
// is not plain ASCII, or has a space, is quoted with escapes.
func quoteWord(text string) string {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\\' && r != '\'' && r != '`' }
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return strconv.QuoteToASCII(text)
}
