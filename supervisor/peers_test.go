package supervisor_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// An agent that was canceled alone sends nothing any more, and no agent sends
// more than fits: the supervisor does not rely on what the sender has checked.
func TestSupervisorRefusesInvalidMessages(t *testing.T) {
	var s supervisor.State
	step := func(from spec.ID, f supervisor.Fact) (messages int, told string) {
		var fx []supervisor.Effect
		var out supervisor.Output
		s, out = supervisor.Step(s, supervisor.Input{From: from, Fact: f})
		fx = out.Effects
		for _, e := range fx {
			if tell, ok := e.(supervisor.Tell); ok {
				switch f := tell.Fact.(type) {
				case agent.Messaged:
					messages++
				case agent.Returned:
					told = f.Text
				}
			}
		}
		return messages, told
	}
	step("", supervisor.Opened{Run: "r", Goal: "do it", Root: "lead",
		Tools:       []model.ToolSpec{{Name: "delegate", Schema: `{"type":"object"}`}, agent.SendSpec()},
		Definitions: []supervisor.Definition{{Name: "lead"}}})
	step(spec.Root, agent.Delegate{Call: "1-0", Child: "root-1-0", Goal: "x"})
	for _, c := range []struct {
		from spec.ID
		text string
		want string
	}{
		{spec.Root, strings.Repeat("x", agent.MessageBytesMax+1), "not sent: a message may have"},
		{"root-1-0", "hello", "sent to root (lead)"},
		{"", "", ""}, // the child is canceled
		{"root-1-0", "hello again", "not sent: this agent was stopped"},
	} {
		if c.from == "" {
			step("", agent.Canceled{Of: "root-1-0"})
			continue
		}
		to := "parent"
		if c.from == spec.Root {
			to = "root-1-0"
		}
		n, told := step(c.from, agent.Send{Call: "1-1", To: to, Text: c.text})
		if !strings.HasPrefix(told, c.want) || (n == 1) != strings.HasPrefix(c.want, "sent") {
			t.Errorf("%s: %d sent, and it is told %q, not %q", c.from, n, told, c.want)
		}
	}
}
