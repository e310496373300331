// Package memory holds the commands on what agents remember beyond a run.
package memory

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Commands list, show and delete notes.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// Memory makes the command memory.
func (cs *Commands) Memory() *cobra.Command {
	c := command.Group("memory", "List, show and delete what agents remember beyond a run",
		`An agent whose file has "memory: user" or "memory: project" keeps notes that later runs of it
read. They are files in the state directory of this machine; docs/memory.md explains them.`,
		"  troupe memory list\n  troupe memory show build-steps --agent tester\n  troupe memory delete --all --agent tester")
	c.AddCommand(cs.list(), cs.show(), cs.remove())
	return c
}

// filter selects notes.
type filter struct{ agent, scope, dir string }

func (f *filter) addFlags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&f.agent, "agent", "", "only the notes of this agent")
	c.Flags().StringVar(&f.scope, "scope", "", "only the notes of the user, or those of projects: user or project")
	c.Flags().StringVar(&f.dir, "dir", "",
		"only the notes of the project in this directory, which need not exist any more")
	return c
}

// resolve checks the flags, and makes the directory one as runs record it.
func (f *filter) resolve() error {
	if f.scope != "" && f.scope != agentmemory.User && f.scope != agentmemory.Project {
		return exit.UsageError("write --scope user or --scope project", "--scope is user or project, not %.80q", f.scope)
	}
	if f.dir == "" {
		return nil
	}
	if f.scope == agentmemory.User {
		return exit.UsageError("leave one of them out", "--dir is about projects, and --scope user is not")
	}
	abs, err := filepath.Abs(f.dir)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	f.scope, f.dir = agentmemory.Project, abs
	return nil
}

func (f filter) fits(s agentmemory.Store) bool {
	return (f.agent == "" || f.agent == s.Agent) && (f.scope == "" || f.scope == s.Scope) && (f.dir == "" || f.dir == s.Dir)
}

// entry is a note and where it is, as data.
type entry struct {
	Scope       string `json:"scope"`
	Agent       string `json:"agent"`
	Dir         string `json:"dir,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Content     string `json:"content,omitempty"`
	Bytes       int    `json:"bytes"`
	Version     string `json:"version,omitempty"`
	Run         string `json:"run_id,omitempty"`
	Written     string `json:"written,omitempty"`
	// Error says why the note cannot be read.
	Error string `json:"error,omitempty"`

	store agentmemory.Store
}

// place names a note for a person.
func (e entry) place() string {
	text := e.Name + " of the agent " + e.Agent + ", " + e.Scope
	if e.Dir != "" {
		text += " " + e.Dir
	}
	return term.CleanLine(text)
}

// read returns the notes that a filter selects. What cannot be read at all is reported on stderr.
func (cs *Commands) read(f filter) (list []entry, err error) {
	if err := f.resolve(); err != nil {
		return nil, err
	}
	list = []entry{}
	stores, problems := agentmemory.Stores(statedir.StateDir(cs.Sessions.StateDir))
	for _, s := range stores {
		if !f.fits(s) {
			continue
		}
		notes, broken, err := s.Notes()
		if err != nil {
			problems = append(problems, err)
		}
		for _, n := range notes {
			list = append(list, entry{Scope: s.Scope, Agent: s.Agent, Dir: s.Dir, Name: n.Name, Description: n.Description, Content: n.Content, Bytes: len(n.Content),
				Version: n.Version(), Run: n.Run, Written: n.Written.Format(time.RFC3339), store: s})
		}
		for _, b := range broken {
			list = append(list, entry{Scope: s.Scope, Agent: s.Agent, Dir: s.Dir, Name: b.Name, Error: b.Err.Error(), store: s})
		}
	}
	for _, p := range problems {
		cs.Console.Say(cs.Console.ErrStyle.Yellow("note: ") + term.CleanLine(p.Error()))
	}
	return list, nil
}

func (cs *Commands) list() *cobra.Command {
	var f filter
	return f.addFlags(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: command.NoArguments,
		Short:       "List the notes of all agents, of the user and of projects",
		Example:     "  troupe memory list --dir .\n  troupe memory list --scope user -o json | jq -r '.[].name'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(*cobra.Command, []string) error {
			list, err := cs.read(f)
			if err != nil {
				return err
			}
			if cs.Console.Output != "table" {
				for i := range list {
					list[i].Content = "" // show has it
				}
				return cs.Console.PrintData(list)
			}
			rows := make([][]string, len(list))
			for i, e := range list {
				about, age := e.Description, console.Age(e.Written)
				if e.Error != "" {
					about, age = "cannot be read: "+e.Error, "-"
				}
				rows[i] = []string{term.CleanLine(e.Agent), e.Name, e.Scope, fmt.Sprint(e.Bytes), age, term.CleanLine(shortDir(e.Dir)), term.CleanLine(about)}
			}
			return cs.Console.PrintTable([]string{"AGENT", "NAME", "SCOPE", "BYTES", "AGE", "DIRECTORY", "DESCRIPTION"}, rows)
		},
	})
}

// shortDir returns a directory as a person writes it.
func shortDir(dir string) string {
	if dir == "" {
		return "-"
	}
	return console.ShortPath(dir, "")
}

func (cs *Commands) show() *cobra.Command {
	var f filter
	return f.addFlags(&cobra.Command{
		Use: "show NAME", Args: command.Exactly("NAME"),
		Short:       "Show a note, with the run that wrote it",
		Example:     "  troupe memory show build-steps\n  troupe memory show build-steps --agent tester --dir . -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := cs.find(f, args[0])
			if err != nil {
				return err
			}
			if e.Error != "" {
				return &exit.Failure{Code: exit.Usage, Err: fmt.Errorf("the note %s cannot be read: %s", e.place(), e.Error), Hint: "troupe memory delete removes it"}
			}
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(e)
			}
			p := cs.Console.NewPage()
			p.AddPairs([2]string{"name", e.Name}, [2]string{"agent", e.Agent}, [2]string{"scope", e.Scope}, [2]string{"directory", e.Dir},
				[2]string{"description", e.Description}, [2]string{"written", e.Written}, [2]string{"run", e.Run}, [2]string{"version", e.Version})
			return cs.Console.PrintLines(append(append(p.Lines, ""), strings.Split(term.CleanText(e.Content), "\n")...))
		},
	})
}

// find returns the one note of a name that a filter selects.
func (cs *Commands) find(f filter, name string) (entry, error) {
	list, err := cs.read(f)
	if err != nil {
		return entry{}, err
	}
	var found []entry
	for _, e := range list {
		if e.Name == name {
			found = append(found, e)
		}
	}
	switch {
	case len(found) == 0:
		return entry{}, exit.UsageError("troupe memory list shows the notes", "there is no note %.80q", name)
	case len(found) > 1:
		places := make([]string, len(found))
		for i, e := range found {
			places[i] = e.place()
		}
		return entry{}, exit.UsageError("name one with --agent, --scope or --dir", "there are %d notes %q: %s", len(found), name, strings.Join(places, "; "))
	}
	return found[0], nil
}

func (cs *Commands) remove() *cobra.Command {
	var f filter
	var yes, all bool
	c := f.addFlags(&cobra.Command{
		Use: "delete [NAME]", Aliases: []string{"rm"}, Args: cobra.MaximumNArgs(1),
		Short: "Delete a note, or all notes that the flags select",
		Long: `Delete a note for good, or with --all all notes that --agent, --scope and --dir select. On a
terminal the command asks for confirmation unless --yes is given; elsewhere --yes is required.
The logs of runs that wrote or read the note still have its text: see troupe delete.`,
		Example:     "  troupe memory delete build-steps --yes\n  troupe memory delete --all --dir . --yes",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			if (len(args) == 1) == all {
				return exit.UsageError("troupe memory delete NAME", "delete takes either the NAME of a note or --all")
			}
			list, err := cs.selectNotes(f, args)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("delete %s", console.CountOf(len(list), "note"))
			if len(list) == 1 {
				what = "delete the note " + list[0].place()
			}
			if err := cs.Console.Confirm(yes, what, ": it cannot be undone.", "nothing was deleted"); err != nil {
				return err
			}
			return cs.deleteNotes(list)
		},
	})
	c.Flags().BoolVar(&all, "all", false, "all notes that the other flags select")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// selectNotes returns the note of a name, or without a name all that a filter selects.
func (cs *Commands) selectNotes(f filter, names []string) ([]entry, error) {
	if len(names) == 0 {
		return cs.read(f)
	}
	e, err := cs.find(f, names[0])
	return []entry{e}, err
}

func (cs *Commands) deleteNotes(list []entry) error {
	deleted := []entry{}
	var errs []error
	for _, e := range list {
		found, err := e.store.Delete(e.Name)
		if err != nil {
			errs = append(errs, err)
		}
		if found {
			deleted = append(deleted, entry{Scope: e.Scope, Agent: e.Agent, Dir: e.Dir, Name: e.Name, Bytes: e.Bytes})
		}
	}
	return errors.Join(append([]error{cs.printDeleted(deleted)}, errs...)...)
}

func (cs *Commands) printDeleted(deleted []entry) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(deleted)
	}
	lines := make([]string, 0, len(deleted)+1)
	for _, e := range deleted {
		lines = append(lines, "deleted "+e.place())
	}
	return cs.Console.Print(strings.Join(append(lines, console.CountOf(len(deleted), "note")+" deleted"), "\n"))
}
