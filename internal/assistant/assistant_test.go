package assistant

import (
	"strings"
	"testing"
)

// The profiles share the rules of work and differ in when to ask.
func TestPromptProfilesDifferInWhenToAsk(t *testing.T) {
	for w, says := range map[Watcher]string{AtTerminal: "can answer at once", Later: "Nobody watches", Nobody: "Nobody can be asked"} {
		text := Prompt(w)
		if !strings.HasPrefix(text, role) {
			t.Errorf("profile %d lacks the rules of work", w)
		}
		for _, other := range []string{"can answer at once", "Nobody watches", "Nobody can be asked"} {
			if strings.Contains(text, other) != (other == says) {
				t.Errorf("profile %d has %q: %v", w, other, !strings.Contains(text, says))
			}
		}
	}
}
