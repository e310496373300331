package agents

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model/anthropic"
)

// RemarksOf returns the notes about a file; path "" is all files.
func RemarksOf(list []agentfile.Note, path string) []console.Remark {
	remarks := []console.Remark{}
	for _, n := range list {
		if path == "" || n.Path == path {
			remarks = append(remarks, console.Remark{Path: n.Path, Line: n.Line, Text: n.Text})
		}
	}
	return remarks
}

// validation is what validate prints as JSON.
type validation struct {
	Valid    bool             `json:"valid"`
	Agents   int              `json:"agents"`
	Problems []console.Remark `json:"problems"`
	Notes    []console.Remark `json:"notes"`
}

func (cs *Commands) validateCommand() *cobra.Command {
	var g Sources
	return g.AddFlags(&cobra.Command{
		Use:   "validate [FILE|DIR]...",
		Short: "Check agent files and print every error with its line",
		Long: `Check agent files: those that are named, or else all that a run here would find.
Every problem is shown with its file and line and what was probably meant. The exit
code is 2 if there is any; notes alone are no problem. A tool's name that is like none of
troupe's is a note: it may be a tool of another program that reads the file.`,
		Example:     "  troupe agents validate\n  troupe agents validate .claude/agents/reviewer.md -o json | jq '.problems'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := g.Complete(); err != nil {
				return err
			}
			for _, path := range args {
				if _, err := os.Stat(path); err != nil {
					return exit.UsageError("name existing files and directories", "%w", err)
				}
			}
			return cs.validateAgents(g, args)
		},
	})
}

func (cs *Commands) validateAgents(g Sources, places []string) error {
	defs, notes, err := agentfile.Load(places...)
	if len(places) == 0 {
		defs, notes, err = g.loadFiles()
	}
	misspelled, notes := splitMisspelled(notes)
	c := validation{Agents: len(defs), Problems: []console.Remark{}, Notes: RemarksOf(notes, "")}
	for _, p := range agentfile.SplitProblems(err) {
		c.Problems = append(c.Problems, console.Remark{Path: p.Path, Line: p.Line, Text: p.Text()})
	}
	c.Problems = append(c.Problems, RemarksOf(misspelled, "")...)
	all, err := g.ReadRoster()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, i := range all.Agents {
		known[i.Name] = true
	}
	for _, d := range defs {
		known[d.Name] = true
	}
	own, err := agentfile.LoadShared(config.UserFile())
	if err != nil { // without its addresses, no agent of A2A can be called
		c.Notes = append(c.Notes, console.Remark{Path: config.UserFile(), Text: "it cannot be read: troupe config validate says why"})
	}
	for _, a := range own.A2AAgents {
		known[a2aclient.NamePrefix+a.Name] = true
	}
	for _, d := range defs {
		problems, notes := checkReferences(d, known)
		c.Problems, c.Notes = append(c.Problems, problems...), append(c.Notes, notes...)
	}
	c.Notes = append(c.Notes, noteCutOffTools(defs, all)...)
	c.Notes = append(c.Notes, cs.noteRights(g, defs, len(places) > 0)...)
	c.Valid = len(c.Problems) == 0
	if cs.Console.Output != "table" {
		err = cs.Console.PrintData(c)
	} else {
		err = cs.Console.PrintLines(cs.validationLines(c))
	}
	if err != nil || c.Valid {
		return err
	}
	return exit.WithCode(exit.Usage)
}

// splitMisspelled takes the notes about misspelled tools out: a run goes on without such a tool, and the author of the
// file meant it to be there.
func splitMisspelled(notes []agentfile.Note) (misspelled, others []agentfile.Note) {
	for _, n := range notes {
		if n.Misspelled {
			misspelled = append(misspelled, n)
		} else {
			others = append(others, n)
		}
	}
	return misspelled, others
}

func (cs *Commands) validationLines(c validation) []string {
	var lines []string
	for _, p := range c.Problems {
		lines = append(lines, cs.Console.Style.Red("error:")+" "+term.CleanLine(p.String()))
	}
	for _, n := range c.Notes {
		lines = append(lines, cs.Console.Style.Yellow("note:")+" "+term.CleanLine(n.String()))
	}
	return append(lines, fmt.Sprintf("%s, %s, %s", console.CountOf(c.Agents, "agent"), console.CountOf(len(c.Problems), "problem"), console.CountOf(len(c.Notes), "note")))
}

// checkReferences checks what depends on other agents, or on other packages.
func checkReferences(d agentfile.Definition, known map[string]bool) (problems, notes []console.Remark) {
	for i, name := range slices.Concat(d.Delegates, d.Handoffs) {
		if known[name] || agentfile.IsForeignAgent(name) && !a2aclient.IsName(name) {
			continue
		}
		text := fmt.Sprintf("it may call %q, and there is no such agent", name)
		if a2aclient.IsName(name) {
			text = fmt.Sprintf("it may call %q, and no a2a_agents of %s names it", name, config.UserFile())
		}
		if i >= len(d.Delegates) {
			text = fmt.Sprintf("it may hand off to %q, and there is no such agent", name)
		}
		if near := config.NearestName(name, sortedNames(known)); near != "" {
			text += "; did you mean " + near + "?"
		}
		notes = append(notes, console.Remark{Path: d.Path, Line: d.KeyLine("x-troupe", "tools", "permission"), Text: text})
	}
	for i, m := range append([]string{d.Model}, d.Fallback...) {
		if _, ok := provider.ResolveRoute(m, anthropic.Provider); m == "" || ok {
			continue
		}
		text, key := fmt.Sprintf("model %q is neither PROVIDER/MODEL nor haiku, sonnet or opus; the run's model is used", m), "model"
		if i > 0 {
			text, key = fmt.Sprintf("x-troupe.fallback: %q is neither PROVIDER/MODEL nor haiku, sonnet or opus; it is left out", m), "x-troupe"
		}
		notes = append(notes, console.Remark{Path: d.Path, Line: d.KeyLine(key), Text: text})
	}
	if d.Policy != "" {
		if _, err := policy.ParseAgent(d.Path, d.Name, []byte(d.Policy)); err != nil {
			problems = append(problems, console.Remark{Path: d.Path, Line: d.KeyLine("x-troupe"), Text: fmt.Sprintf("x-troupe.policy: %v", err)})
		}
	}
	return problems, notes
}

func sortedNames(set map[string]bool) []string {
	var list []string
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
