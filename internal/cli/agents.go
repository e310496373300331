package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

// agentPlaces say where agents are looked for.
type agentPlaces struct{ agents, dir string }

func (g *agentPlaces) add(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&g.agents, "agents", "", "directory of agent files that goes before the others")
	c.Flags().StringVar(&g.dir, "dir", ".", "directory whose agents are looked at")
	return c
}

// complete checks the directories and makes them absolute.
func (g *agentPlaces) complete() error {
	for _, p := range []*string{&g.agents, &g.dir} {
		if err := directory(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *agentCommands) agentsCommand() *cobra.Command {
	c := commandGroup("agents", "List and check the agents that a run can have",
		"Agents are built in, or Markdown files: see docs and `troupe agents list`.", "  troupe agents list\n  troupe agents validate")
	c.AddCommand(a.agentsList(), a.agentsDescribe(), a.agentsValidate(), a.agentsPrompt())
	return c
}

// commandGroup is a command that only holds others.
func commandGroup(use, short, long, example string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: unknownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
}

// agentInfo is one agent that a run can have.
type agentInfo struct {
	Name        string   `json:"name"`
	From        string   `json:"from"` // "built in", or the file
	Description string   `json:"description"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"` // null: all of its parent's
	Disallowed  []string `json:"disallowed_tools,omitempty"`
	Delegates   []string `json:"delegates"` // null: any
	MaxTurns    int      `json:"max_turns,omitempty"`
	Commands    []string `json:"commands,omitempty"`
	PromptBytes int      `json:"prompt_bytes"`
	// Hidden names the other agent of the same name that takes precedence unless --agents names the directory.
	Hidden string `json:"hidden_by,omitempty"`

	def *agentfile.Definition // nil: built in
}

const builtIn = "built in"

// short returns a path as a person in the directory would write it.
func (g *agentPlaces) short(path string) string {
	if rel, err := filepath.Rel(g.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if home, err := os.UserHomeDir(); err == nil {
		if rel, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rel) {
			return filepath.Join("~", rel)
		}
	}
	return path
}

// roster holds all agents, and the problems of the files.
type roster struct {
	agents   []agentInfo
	notes    []agentfile.Note
	problems []*agentfile.Problem
}

// load reads all agent files of the places.
func (g *agentPlaces) load() ([]agentfile.Definition, []agentfile.Note, error) {
	if g.agents != "" {
		return agentfile.Find(g.dir, g.agents)
	}
	return agentfile.Find(g.dir)
}

// roster reads the agents of the places, in the order in which they count.
func (g *agentPlaces) roster() (roster, error) {
	var r roster
	if err := g.complete(); err != nil {
		return r, err
	}
	defs, notes, err := g.load()
	r.notes, r.problems = notes, agentfile.Problems(err)
	for _, b := range investigator.Agents() {
		r.agents = append(r.agents, agentInfo{Name: b.Name, From: builtIn, Description: b.Description, Tools: b.Tools, Delegates: b.Delegates,
			MaxTurns: b.MaxTurns, PromptBytes: len(b.System)})
	}
	for _, d := range defs {
		i := agentInfo{Name: d.Name, From: d.Path, Description: d.Description, Model: d.Model, Tools: refNames(d.Tools), Disallowed: refNames(d.DisallowedTools),
			Delegates: d.Delegates, MaxTurns: d.MaxTurns, PromptBytes: len(d.Prompt), def: &d}
		for _, c := range d.Commands {
			i.Commands = append(i.Commands, c.Name)
		}
		// Agents of --agents take precedence over built-in agents; built-in agents over all others.
		k := slices.IndexFunc(r.agents, func(b agentInfo) bool { return b.Name == d.Name && b.From == builtIn })
		switch {
		case k >= 0 && g.agents != "" && strings.HasPrefix(d.Path, g.agents+string(os.PathSeparator)):
			r.agents[k].Hidden = d.Path
		case k >= 0:
			i.Hidden = builtIn
		}
		r.agents = append(r.agents, i)
	}
	return r, nil
}

func refNames(refs []agentfile.ToolRef) []string {
	if refs == nil {
		return nil
	}
	list := make([]string, len(refs))
	for i, r := range refs {
		if list[i] = r.Name; r.Args != "" {
			list[i] += "(" + r.Args + ")"
		}
	}
	return list
}

// find is the agent of a name that counts.
func (r roster) find(name string) (agentInfo, error) {
	var known []string
	for _, i := range r.agents {
		if i.Name == name && i.Hidden == "" {
			return i, nil
		}
		known = append(known, i.Name)
	}
	for _, p := range r.problems {
		if filepath.Base(p.Path) == name+".md" {
			return agentInfo{}, usage("troupe agents validate shows all that is wrong", "%s", remark{p.Path, p.Line, p.Text()})
		}
	}
	hint := "troupe agents list shows them"
	if near := config.Near(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return agentInfo{}, usage(hint, "there is no agent %q", name)
}

func (a *agentCommands) agentsList() *cobra.Command {
	var g agentPlaces
	return g.add(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: none,
		Short:       "List the agents, built in and of files, with where they come from",
		Example:     "  troupe agents list\n  troupe agents list --agents ./team -o json | jq -r '.[].name'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(*cobra.Command, []string) error {
			r, err := g.roster()
			if err != nil {
				return err
			}
			if n := len(r.problems); n > 0 && !a.console.quiet {
				a.console.say(a.console.errors.Yellow(fmt.Sprintf("%s in agent files: troupe agents validate shows them", countOf(n, "problem"))))
			}
			if a.console.output != "table" {
				return a.console.printData(r.agents)
			}
			var rows [][]string
			for _, i := range r.agents {
				from := g.short(i.From)
				if i.Hidden != "" {
					from += " (hidden)"
				}
				rows = append(rows, []string{term.Line(i.Name), term.Line(cmp.Or(i.Model, "the run's")), term.Line(from), term.Line(i.Description)})
			}
			return a.console.table([]string{"NAME", "MODEL", "FROM", "DESCRIPTION"}, rows)
		},
	})
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (a *agentCommands) agentsDescribe() *cobra.Command {
	var g agentPlaces
	return g.add(&cobra.Command{
		Use: "describe NAME", Args: exactly("NAME"),
		Short:       "Show all that an agent's file says, and what its author should know",
		Example:     "  troupe agents describe historian\n  troupe agents describe reviewer --agents ./team -o json",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := g.roster()
			if err != nil {
				return err
			}
			i, err := r.find(args[0])
			if err != nil {
				return err
			}
			return a.describeAgent(r, i)
		},
	})
}

func (a *agentCommands) agentsPrompt() *cobra.Command {
	var g agentPlaces
	return g.add(&cobra.Command{
		Use: "prompt NAME", Args: exactly("NAME"),
		Short:       "Print the system prompt of an agent as a model gets it",
		Example:     "  troupe agents prompt auditor\n  troupe agents prompt auditor -o json | jq .tools",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := g.roster()
			if err != nil {
				return err
			}
			if _, err := r.find(args[0]); err != nil {
				return err
			}
			return a.prompt(g, args[0])
		},
	})
}

// promptDoc is what prompt prints as JSON.
type promptDoc struct {
	Name    string   `json:"name"`
	System  string   `json:"system"`
	Dynamic string   `json:"dynamic,omitempty"`
	Tools   []string `json:"tools"` // null: all of its parent's
}

// previewRun returns the entry that would open a run of an agent here, and the notes of the
// node; "" is the first agent.
func previewRun(sessions *opener, g agentPlaces, servers, name string) (supervisor.Opened, []string, error) {
	own, err := agentfile.Share(config.UserFile())
	if err != nil {
		return supervisor.Opened{}, nil, &failure{code: exitUsage, err: err, hint: "troupe config validate shows all that is wrong"}
	}
	o, accepted, err := node.Preview(node.Config{StateDir: sessions.storeIn, Env: sessions.console.getenv, Tools: own.Tools, Servers: userServers()}, client.RunRequest{RunID: client.NewID(), Prompt: "preview", Agent: name,
		Dir: g.dir, Agents: g.agents, MCPConfig: servers, Model: investigator.Name})
	return o, accepted.Notes, err
}

func (a *agentCommands) prompt(g agentPlaces, name string) error {
	o, _, err := previewRun(a.sessions, g, "", name)
	if err != nil {
		return err
	}
	for _, d := range o.Definitions {
		if d.Name != name {
			continue
		}
		doc := promptDoc{Name: d.Name, System: d.System, Dynamic: d.LoopOptions.Merge(o.LoopOptions).Dynamic, Tools: d.Tools}
		if a.console.output != "table" {
			return a.console.printData(doc)
		}
		text := doc.System
		if doc.Dynamic != "" {
			text += "\n\n" + doc.Dynamic
		}
		return a.console.print(text)
	}
	return usage("troupe agents list shows them", "there is no agent %q", name)
}
