package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/cli/console"
)

// helpOf returns the help of a command.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	a := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0)
	root := a.newRoot()
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetArgs(append(args, "--help"))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHelpListsFlagsOfRunsInGroups: each flag of the commands that begin runs is in one group, and none is listed twice.
func TestHelpListsFlagsOfRunsInGroups(t *testing.T) {
	for _, name := range []string{"run", "start", "chat"} {
		help := helpOf(t, name)
		for _, group := range []string{"\nTask:\n", "\nPermissions:\n", "\nLimits of the run:\n", "\nLimits of an agent:\n", "\nGlobal Flags:\n"} {
			if strings.Count(help, group) != 1 {
				t.Errorf("%s: no group %q in\n%s", name, group, help)
			}
		}
		if strings.Contains(help, "\nFlags:\n") || strings.Count(help, "--max-turns int") != 1 {
			t.Errorf("%s: flags are listed twice\n%s", name, help)
		}
		_, other, _ := strings.Cut(help, "\nOther flags:\n")
		other, _, _ = strings.Cut(other, "\n\n")
		if strings.Count(other, "--") != 1 || !strings.Contains(other, "--help") {
			t.Errorf("%s: flags without a group:\n%s", name, other)
		}
	}
}

// TestHelpFitsATerminal: descriptions of flags are wrapped.
func TestHelpFitsATerminal(t *testing.T) {
	for _, name := range []string{"run", "list", "restore", "up"} {
		_, flags, _ := strings.Cut(helpOf(t, name), "lags:\n")
		for line := range strings.Lines(flags) {
			if len(strings.TrimRight(line, "\n")) > helpWidth {
				t.Errorf("%s: a line of its help is wider than %d: %s", name, helpWidth, line)
			}
		}
	}
}

// A text that is wider than the terminal is filled anew, between the lines that are indented.
func TestTextsOfTheHelpFitTheTerminal(t *testing.T) {
	t.Parallel()
	text := "One two three four\nfive six.\n\n  troupe list -o json\nSeven eight nine ten"
	if got, want := fillParagraphs(text, 15), "One two three\nfour five six.\n\n  troupe list -o json\nSeven eight\nnine ten"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fillParagraphs(text, 40); got != text {
		t.Errorf("a text that fits is %q", got)
	}
}
