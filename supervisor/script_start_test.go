package supervisor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// usualStart is what `opened` shows in most scripts. The tools are those of the
// directive; what is kept for the closing turn follows from them and is in the
// first line of every later output.
const usualStart = `live live=1 spent=0 held=0 kept=%d
  tell root submitted root depth=0 agent=lead tools=(%s) "Compare A and B."
  arm first_message/root at=1m0s
`

// startLog begins a new log, plays `opened`, and prints nothing. It fails where the
// output that it hides is not the usual one: such a beginning must be shown.
func (p *scriptPlayer) startLog(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	begin := *d
	begin.Cmd = "opened"
	got, tools := p.playLine(t, &begin), ""
	for _, line := range strings.Split(d.Input, "\n") {
		if list, ok := strings.CutPrefix(line, "tools "); ok {
			tools = list
		}
	}
	if want := fmt.Sprintf(usualStart, p.state.Pool.Kept.Tokens, tools); got != want {
		t.Fatalf("%s: start hides only the usual beginning:\n%s\nthis one is:\n%s\nUse the directive opened, which shows it.", d.Pos, want, got)
	}
	return ""
}
