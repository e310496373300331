package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/reference"
	"github.com/troupe-run/troupe/internal/test/golden"
)

// docs/commands.md is what the commands say; -update writes it anew.
func TestCommandReference(t *testing.T) {
	root := newApp(&console.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: func(string) string { return "" }}, 0).newRoot()
	page := reference.Markdown(root)
	golden.Compare(t, "../../docs/commands.md", page)
	for _, want := range []string{"## troupe run\n", "## troupe help connection\n", "`--max-budget-usd"} {
		if !strings.Contains(strings.ReplaceAll(page, "## troupe connection\n", "## troupe help connection\n"), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	pages := reference.ManPages(root)
	if run := pages["troupe-run.1"]; !strings.HasPrefix(run, ".TH ") || !strings.Contains(run, ".SH SYNOPSIS") || !strings.Contains(run, `\-\-max\-turns`) {
		t.Errorf("troupe-run.1: %.300s", run)
	}
	if strings.Contains(pages["troupe-run.1"], "\n.git") {
		t.Error("a line of an example is read as a request")
	}
}
