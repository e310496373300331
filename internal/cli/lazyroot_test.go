package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/reference"
)

// A root that is made for one command has that command as the root with all has it, and no other. A word that names no
// command, or one that needs the others, makes them all.
func TestRootForOneCommandHasItAsTheWholeRoot(t *testing.T) {
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0)
	whole := a.newRoot()
	withOthers := []string{"help", "man", "connection", "environment"}
	for _, c := range whole.Commands() {
		one := a.newRootFor(c.Name())
		if slices.Contains(withOthers, c.Name()) {
			if got, want := namesOf(one), namesOf(whole); !slices.Equal(got, want) {
				t.Errorf("%s: its root has %v, want %v", c.Name(), got, want)
			}
			continue
		}
		if got, want := namesOf(one), []string{c.Name(), "help"}; !slices.Equal(got, want) && !slices.Equal(got, []string{"help", c.Name()}) {
			t.Errorf("%s: its root has %v, want %v", c.Name(), got, want)
			continue
		}
		found, _, err := one.Find([]string{c.Name()})
		if err != nil {
			t.Errorf("%s: %v", c.Name(), err)
			continue
		}
		if got, want := describeCommand(one, found), describeCommand(whole, c); got != want {
			t.Errorf("%s: its root describes it as\n%s\nwant\n%s", c.Name(), got, want)
		}
	}
	for _, name := range []string{"", "-q", "--help", "rnu", "help", cobra.ShellCompRequestCmd, "man"} {
		if got, want := namesOf(a.newRootFor(name)), namesOf(whole); !slices.Equal(got, want) {
			t.Errorf("%q: its root has %v, want %v", name, got, want)
		}
	}
}

func namesOf(root *cobra.Command) (list []string) {
	for _, c := range root.Commands() {
		list = append(list, c.Name())
	}
	return list
}

// describeCommand is what the help and the reference say about a command and those below it.
func describeCommand(root, c *cobra.Command) string {
	text := c.Long + "\n" + c.UsageString() + "\n" + c.GroupID + strings.Join(c.Aliases, " ")
	all := reference.Markdown(root)
	for part := range strings.SplitSeq(all, "\n## ") {
		if name, _, _ := strings.Cut(part, "\n"); name == c.CommandPath() || strings.HasPrefix(name, c.CommandPath()+" ") {
			text += "\n## " + part
		}
	}
	return text
}
