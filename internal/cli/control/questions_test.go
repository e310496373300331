package control

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/term"
)

// A row of 80 columns has no room for a question: the whole of it stands below the row, with its lines.
func TestAQuestionIsReadableOnATerminal(t *testing.T) {
	list := []client.Question{{RunID: "01k9z3abcdefghjkmnpqrstvwx", Agent: "root-1-0", Query: "12-0.0", Reason: "approval", Goal: "Ship it",
		Question: "May this run?\n$ git push --force-with-lease origin feature/a-rather-long-branch-name && make deploy", Approvals: 2}}
	lines := questionsPage(&console.Page{Width: 80}, list)
	for _, line := range lines {
		if term.Width(line) > 80 {
			t.Errorf("a line has %d columns: %s", term.Width(line), line)
		}
	}
	text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	for _, want := range []string{"12-0.0 approval no end set (0 of 2 approved) May this run? $ git push", "branch-name && make deploy task: Ship it"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if lines := questionsPage(&console.Page{Width: console.Unbounded}, list); len(lines) != 2 || !strings.HasSuffix(lines[1], "make deploy  Ship it") {
		t.Errorf("a pipe gets %q", lines)
	}
}
