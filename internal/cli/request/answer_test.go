package request

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// A misspelled decision would be the result of the call, if it were taken for a text: at a command, at a terminal and in a
// restore.
func TestAMisspelledDecisionIsNoText(t *testing.T) {
	t.Parallel()
	for text, almost := range map[string]string{
		"aprove": "approve", "approved": "approve", "approve.": "approve", "dney": "deny", "skp": "skip", "skipp": "skip",
		"Approve": "", "DENY": "", "denied": "", "ship": "", "slip": "", "use the second one": "", "yes": "", "the red one": "", "approve it later": "", "": "",
	} {
		_, ofLine := ParseDecision(client.Question{Query: "q"}, text)
		for door, err := range map[string]error{"command": CheckAnswerText(ParseAnswer("r", "root", "q", text)), "terminal": ofLine} {
			if (err != nil) != (almost != "") || err != nil && !strings.Contains(err.Error(), "almost the answer "+almost) {
				t.Errorf("%s %q: %v", door, text, err)
			}
		}
	}
}

// A line at a question about a call is a decision, or a text that "t" announces. Any other line answers nothing.
func TestALineThatIsNoDecisionAnswersNothingAboutACall(t *testing.T) {
	t.Parallel()
	approval := client.Question{Query: "q", Call: "1-0", Digest: "d", Rule: "shell(make)"}
	outcome := client.Question{Query: "q", Call: "1-0", Reason: string(spec.ResumeUnsafe)}
	for _, c := range []struct {
		line     string
		decision spec.Decision // "": none
		text     string
	}{
		{"y", spec.Approve, ""}, {"approve", spec.Approve, ""}, {"n", spec.Deny, ""}, {"n, use staging", spec.Deny, "use staging"}, {"skip", spec.Skip, ""},
		{"t it is out", spec.TextOnly, "it is out"}, {"t ok", "", ""}, {"t ?", "", ""}, {"t", "", ""}, {"?", "", ""}, {"ok", "", ""}, {"ls -l", "", ""}, {"y please", "", ""}, {"a b", "", ""},
	} {
		for _, q := range []client.Question{approval, outcome} {
			r, err := ParseDecision(q, c.line)
			if (err == nil) != (c.decision != "") || err == nil && (r.Decision != c.decision || r.Text != c.text || r.Digest != q.Digest) {
				t.Errorf("%q at %+v: %+v, %v", c.line, q, r, err)
			}
		}
	}
	if r, err := ParseDecision(approval, "a"); err != nil || r.Always != "run" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := ParseDecision(client.Question{Query: "q", Call: "1-0", Reason: string(spec.NeedsHuman)}, "ok"); err != nil || r.Decision != spec.TextOnly {
		t.Errorf("the answer to what an agent asks: %+v, %v", r, err)
	}
}
