package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
)

// leafCommands are all commands that do something.
func leafCommands(c *cobra.Command) (list []*cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			list = append(list, leafCommands(sub)...)
		} else if sub.Name() != "help" && sub.Runnable() { // a topic of the help does nothing
			list = append(list, sub)
		}
	}
	return list
}

// singleFormat are commands whose output has one form.
var singleFormat = []string{
	"troupe man",       // it writes files
	"troupe mcp serve", // a protocol
	"troupe fmt",       // a filter: it writes what it reads
	"troupe top",       // a screen
	"troupe up",        // it says what it does until it is stopped
}

func TestEveryCommandHasExamplesAndJSON(t *testing.T) {
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0)
	root := a.newRoot()
	a.completion().Register(root)
	all := leafCommands(root)
	if len(all) < 30 {
		t.Errorf("only %d commands", len(all))
	}
	for _, c := range all {
		path := c.CommandPath()
		if c.Short == "" || !strings.HasPrefix(c.Example, "  ") {
			t.Errorf("%s: no help, or no example", path)
		}
		can := strings.Fields(c.Annotations[command.Formats])
		if !slices.Contains(singleFormat, path) && (!slices.Contains(can, "json") || !slices.Contains(can, "yaml")) {
			t.Errorf("%s: it writes %v, and no JSON", path, can)
		}
		if c.ValidArgs == nil && c.ValidArgsFunction == nil {
			t.Errorf("%s: its words are not completed", path)
		}
		for _, text := range []string{c.Example, c.Long} {
			for line := range strings.Lines(text) {
				if len([]rune(strings.TrimRight(line, "\n"))) > 160 {
					t.Errorf("%s: a line of its help has %d characters", path, len(line))
				}
			}
		}
		checkExamples(t, root, c)
	}
}

func TestEveryCommandIsInAGroupOfTheHelp(t *testing.T) {
	root := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}, 0).newRoot()
	for _, c := range root.Commands() {
		if c.Name() != "help" && c.Runnable() && !root.ContainsGroup(c.GroupID) { // a topic of the help is below the groups
			t.Errorf("%s is in no group", c.CommandPath())
		}
	}
	for _, g := range root.Groups() {
		if !strings.Contains(root.UsageString(), "\n"+g.Title+"\n") {
			t.Errorf("the help does not show the group %q", g.Title)
		}
	}
}

// A flag means the same for every command: none hides a global one.
func TestNoFlagHidesAGlobalOne(t *testing.T) {
	root := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}, 0).newRoot()
	for _, c := range leafCommands(root) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if root.PersistentFlags().Lookup(f.Name) != nil {
				t.Errorf("%s: its flag --%s hides the global one", c.CommandPath(), f.Name)
			}
		})
	}
}

// checkExamples checks that the examples of a command name commands and flags that there are.
func checkExamples(t *testing.T, root, c *cobra.Command) {
	t.Helper()
	named := false
	for line := range strings.Lines(c.Example) {
		line = strings.ReplaceAll(line, "nats --context troupe ", "nats ")
		for at := strings.Index(line, "troupe "); at >= 0; at = strings.Index(line, "troupe ") {
			line = line[at+len("troupe "):]
			words := strings.Fields(strings.ReplaceAll(line, "'", " "))
			if end := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, "|;)&>") }); end >= 0 {
				words = append(words[:end], strings.TrimRight(words[end], "|;)&>"))
			}
			found, _, err := root.Find(words)
			if err != nil || found == root {
				t.Errorf("%s: no command in the example %q (%v)", c.CommandPath(), line, err)
				continue
			}
			named = named || found == c
			for _, w := range words {
				name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
				long := strings.HasPrefix(w, "--") && found.Flags().Lookup(name) == nil && found.InheritedFlags().Lookup(name) == nil
				if long {
					t.Errorf("%s: there is no flag %s in %q", c.CommandPath(), w, line)
				}
			}
		}
	}
	if !named {
		t.Errorf("%s: its examples show other commands", c.CommandPath())
	}
}

// An example fits a terminal of 80 columns, as the topics of the help do.
func TestExamplesFitATerminal(t *testing.T) {
	t.Parallel()
	root := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0).newRoot()
	texts := map[string]string{}
	for _, c := range leafCommands(root) {
		texts[c.CommandPath()] = c.Example
	}
	for _, c := range root.Commands() {
		if c.Name() == "connection" || c.Name() == "environment" {
			texts["troupe help "+c.Name()] = c.Long
		}
	}
	if texts["troupe help environment"] == "" {
		t.Fatal("there is no topic about the environment")
	}
	for _, c := range root.Commands() {
		if n := len("  ") + max(len(c.Name()), 13) + len(" ") + len(c.Short); n > helpColumns {
			t.Errorf("%s: %d columns in the list of commands: %s", c.Name(), n, c.Short)
		}
	}
	for path, text := range texts {
		for line := range strings.Lines(text) {
			if n := len(strings.TrimSuffix(line, "\n")); n > helpColumns {
				t.Errorf("%s: %d columns: %s", path, n, line)
			}
		}
	}
}

// docs/cli.md lists all commands in the groups of the help.
func TestTheTableOfGroupsIsWhole(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	root := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0).newRoot()
	for _, g := range root.Groups() {
		title := strings.TrimSuffix(g.Title, ":")
		_, row, found := strings.Cut(string(page), "\n| "+title+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if !found {
			t.Errorf("there is no row %q", title)
		}
		var want []string
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && c.Name() != "help" && !c.Hidden {
				want = append(want, "`"+c.Name()+"`")
			}
		}
		got := strings.Fields(strings.TrimSuffix(row, "|"))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the table has %v, the help %v", title, got, want)
		}
	}
}

// TestEveryCommandWithARunFindsItByPrefix: testdata/runprefix.txt tries each command that takes a run with the
// beginning of several ids.
func TestEveryCommandWithARunFindsItByPrefix(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../../cmd/cli/testdata/runprefix.txt")
	if err != nil {
		t.Fatal(err)
	}
	root := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0).newRoot()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		takesRun := slices.ContainsFunc(strings.Fields(c.Use), func(word string) bool { return strings.HasPrefix(strings.Trim(word, "[]"), "RUN") })
		if needsMore := []string{"troupe top", "troupe lanes"}; takesRun && !slices.Contains(needsMore, c.CommandPath()) && !strings.Contains(string(script), "\nexits 2 "+c.CommandPath()+" alpha") {
			t.Errorf("%s is not tried", c.CommandPath())
		}
	}
	visit(root)
}

// Programs call these commands by these names, with these flags of run: none is renamed or dropped without another name.
func TestCommandsThatProgramsCallAreThere(t *testing.T) {
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0)
	root := a.newRoot()
	a.completion().Register(root)
	for _, name := range strings.Fields(`run start attach follow result list describe tree events transcript timeline budget top cancel steer answer questions lanes
		agents/list agents/describe agents/validate agents/prompt nodes/list nodes/drain nodes/resume models/list models/ping tools/list
		mcp/list mcp/test mcp/serve policy/show policy/set policy/test up eval replay fixture verify export dump restore delete prune doctor
		config/view config/validate config/schema completion version fmt`) {
		words := strings.Split(name, "/")
		if c, rest, err := root.Find(words); err != nil || len(rest) > 0 || c.Name() != words[len(words)-1] {
			t.Errorf("there is no command %q: %v", strings.Join(words, " "), err)
		}
	}
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`agent agents dir model max-turns max-tokens max-budget-usd max-tool-calls max-depth max-children max-agents timeout
		temperature effort allowed-tools disallowed-tools permission-mode yes json-schema attach conversation run-id resume fork record replay detach
		at every output output-format json`) {
		if run.Flag(name) == nil {
			t.Errorf("run has no flag --%s", name)
		}
	}
}
