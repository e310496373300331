package supervisor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/supervisor"
)

// parseBacklog is `backlog from=AGENT call=CALL do=claim task=t1`, with the title of a new task on the first line, and its text below,
// or the result, or why. `backlog request=ID by=ann` is a person's, with drop=t1 or a new task.
func parseBacklog(t *testing.T, d *datadriven.TestData) supervisor.Fact {
	t.Helper()
	title, text, _ := strings.Cut(d.Input, "\n")
	if d.HasArg("request") {
		return supervisor.BacklogSet{Request: argValue(t, d, "request"), By: argValue(t, d, "by"), Drop: argValue(t, d, "drop"), Title: title, Text: text}
	}
	f := agent.Backlog{Call: argValue(t, d, "call"), Do: argValue(t, d, "do"), Task: argValue(t, d, "task"), Text: d.Input}
	if f.Do == "post" {
		f.Title, f.Text = title, text
	}
	return f
}

// printBacklog lists the tasks at the time of the newest entry.
func printBacklog(s supervisor.State) string {
	var b strings.Builder
	for _, v := range supervisor.BacklogOf(s, 0) {
		fmt.Fprintf(&b, "%s %s %q", v.Task, v.State, v.Title)
		for _, word := range []string{string(v.PostedBy), v.By, string(v.Agent), v.Name, v.Result} {
			if word != "" {
				fmt.Fprintf(&b, " %s", word)
			}
		}
		if v.UntilMS > 0 {
			fmt.Fprintf(&b, " until=%d", v.UntilMS)
		}
		b.WriteString("\n")
	}
	return b.String()
}
