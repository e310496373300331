package agent_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
)

// usualStart is what `submitted` and `granted` show in most scripts. Only the
// number of calls that a reply may make differs: an agent without tools has none.
const usualStart = `reserving turn=0
  reserve 1 turn=1 output=4096 calls=%d
  arm soft at=15m0s
  arm hard at=20m0s
  * agent.started
  * message.user
thinking turn=0
  call-model 1 turn=1 messages=1 output=4096
  * turn.started
  * model.started
`

// startTask begins a new log, plays `submitted` and `granted` up to the first model
// call, and prints nothing. It fails where the output that it hides is not the
// usual one: such a beginning must be shown.
func (p *scriptPlayer) startTask(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	p.notes, p.verifies = true, d.HasArg("verify-log")
	begin := *d
	begin.Cmd = "submitted"
	got := p.playLine(t, &begin) + p.playLine(t, &datadriven.TestData{Pos: d.Pos, Cmd: "granted"})
	p.notes = false
	calls := 0
	if d.HasArg("tools") {
		calls = 64
	}
	if want := fmt.Sprintf(usualStart, calls); noteKinds(got) != want {
		t.Fatalf("%s: start hides only the usual beginning:\n%s\nthis one is:\n%s\nUse the directives submitted and granted, which show it.", d.Pos, want, got)
	}
	return ""
}

// noteKinds reduces the notes in the output of a step to their kinds.
func noteKinds(out string) string {
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "*" {
			lines[i] = "  * " + words[2]
		}
	}
	return strings.Join(lines, "\n")
}

// noteNode notes the node that a message to the supervisor names.
func (p *scriptPlayer) noteNode(fx agent.Effect) {
	switch e := fx.(type) {
	case agent.Reserve:
		p.node = cmp.Or(e.Node, p.node)
	case agent.ReportLog:
		p.node = e.Node
	}
}
