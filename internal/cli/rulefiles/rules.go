// Package rulefiles holds the commands about permission rules in files: those that a new run in a directory would have.
package rulefiles

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

// Commands show, test and remove permission rules.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// AddTo adds the commands to the command permissions.
func (cs *Commands) AddTo(c *cobra.Command) *cobra.Command {
	c.AddCommand(cs.list(), cs.test(), cs.remove())
	return c
}

// takes checks the arguments of a command whose name may also be the id of a run.
func takes(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "set" {
			return exit.UsageError("troupe permissions --deny RULE -- "+c.Name()+" set", "%s is a command here; for a run with this id write -- before it", c.Name())
		}
		return check(c, args)
	}
}

// rule is one rule as the commands print it.
type rule struct {
	List    string `json:"list"` // deny, ask, allow or only
	Rule    string `json:"rule"`
	From    string `json:"from"` // as questions and events name it
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Matches *bool  `json:"matches,omitempty"` // the call of a test

	source spec.PermissionRule
}

// listDoc is what list prints as JSON.
type listDoc struct {
	Dir       string `json:"dir"`
	Agent     string `json:"agent,omitempty"`
	Mode      string `json:"mode"`
	Approvals int    `json:"approvals"`
	Taint     string `json:"taint,omitempty"`
	Rules     []rule `json:"rules"`
}

func (cs *Commands) list() *cobra.Command {
	var g agents.Sources
	var agent string
	c := g.AddFlags(&cobra.Command{
		Use: "list", Args: takes(command.NoArguments),
		Short: "List the permission rules of a new run here, each with its file and line",
		Long: `List the permission rules that a run of yours in a directory begins with, in the order
in which they count: deny, ask, allow. They come from your own troupe.yaml, your rules
for the directory, its troupe.yaml, and the settings of Claude Code. --agent adds
those of an agent's file. The flags of a run add to them (--allowed-tools, ...).

For a run whose id is "list", write: troupe permissions -- list`,
		Example:     "  troupe permissions list\n  troupe permissions list --agent reviewer -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			_, p, err := cs.rulesOf(&g, agent)
			if err != nil {
				return err
			}
			return cs.printRules(listDoc{Dir: g.Dir, Agent: agent, Mode: string(cmp.Or(p.Mode, spec.ModeDefault)), Approvals: max(p.Approvals, 1), Taint: p.Taint, Rules: rulesIn(p)})
		},
	})
	c.Flags().StringVar(&agent, "agent", "", "agent whose file's rules are listed, too")
	return c
}

// rulesOf returns a run of an agent as it would be opened, and the permissions of that agent; "" is the root agent.
func (cs *Commands) rulesOf(g *agents.Sources, agent string) (o supervisor.Opened, p spec.Permissions, err error) {
	if err := g.Complete(); err != nil {
		return o, p, err
	}
	if o, _, err = agents.PreviewOwnRun(cs.Sessions, *g, agent); err != nil {
		return o, p, err
	}
	own := (*spec.Permissions)(nil)
	if i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == o.Root }); i >= 0 && agent != "" {
		own = o.Definitions[i].Permissions
	}
	return o, permission.Merge(*o.Permissions, own), nil
}

// rulesIn lists rules in the order in which they count.
func rulesIn(p spec.Permissions) []rule {
	list := []rule{}
	for _, l := range []struct {
		name  string
		rules []spec.PermissionRule
	}{{"deny", p.Deny}, {"ask", p.Ask}, {"allow", p.Allow}, {"only", p.Only}} {
		for _, r := range l.rules {
			listed := rule{List: l.name, Rule: r.Text, From: r.From, source: r}
			listed.File, listed.Line = splitPlace(r.From)
			list = append(list, listed)
		}
	}
	return list
}

// splitPlace takes apart FILE:LINE; a place that names no file has none.
func splitPlace(from string) (file string, line int) {
	i := strings.LastIndexByte(from, ':')
	if i < 0 {
		if strings.ContainsRune(from, '/') {
			return from, 0
		}
		return "", 0
	}
	line, err := strconv.Atoi(from[i+1:])
	if err != nil {
		return from[:i], 0
	}
	return from[:i], line
}

// newPage makes a page on which no place of a rule is cut off, at a terminal neither.
func (cs *Commands) newPage() *console.Page {
	p := cs.Console.NewPage()
	p.Width = console.Unbounded
	return p
}

func (cs *Commands) printRules(doc listDoc) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(doc)
	}
	p := cs.newPage()
	if len(doc.Rules) > 0 {
		var rows [][]string
		for _, r := range doc.Rules {
			rows = append(rows, []string{r.List, term.CleanLine(r.Rule), term.CleanLine(r.From)})
		}
		p.AddTable(console.Left("LIST", "RULE", "FROM"), rows)
		p.Lines = append(p.Lines, "")
	}
	text := fmt.Sprintf("%s; mode %s decides about other calls", console.CountOf(len(doc.Rules), "rule"), doc.Mode)
	if doc.Approvals > 1 {
		text += fmt.Sprintf("; %d people must approve what is asked about", doc.Approvals)
	}
	p.AddLine(text)
	return cs.Console.PrintLines(p.Lines)
}
