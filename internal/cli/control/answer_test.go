package control

import (
	"strings"
	"testing"
)

// A misspelled decision would be the result of the call, if it were taken for a text.
func TestAMisspelledDecisionIsNoText(t *testing.T) {
	t.Parallel()
	for text, almost := range map[string]string{
		"aprove": "approve", "approved": "approve", "Approve": "approve", "DENY": "deny", "dney": "deny", "denied": "", "skp": "skip", "skipp": "skip",
		"ship": "", "slip": "", "use the second one": "", "yes": "", "the red one": "", "approve it later": "", "": "",
	} {
		err := checkAnswerText(text)
		if (err != nil) != (almost != "") || err != nil && !strings.Contains(err.Error(), "almost the answer "+almost) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
