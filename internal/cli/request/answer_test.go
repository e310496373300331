package request

import (
	"strings"
	"testing"

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
		for door, r := range map[string]client.AnswerRequest{"command": ParseAnswer("r", "root", "q", text), "terminal": ParseDecision(client.Question{Query: "q", Digest: "d"}, text)} {
			err := CheckAnswerText(r)
			if (err != nil) != (almost != "") || err != nil && !strings.Contains(err.Error(), "almost the answer "+almost) {
				t.Errorf("%s %q: %v", door, text, err)
			}
		}
	}
}
