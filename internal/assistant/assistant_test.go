package assistant

import (
	"strings"
	"testing"
)

// The two profiles share the rules of work and differ in when to ask.
func TestPromptProfilesDifferInWhenToAsk(t *testing.T) {
	with, without := Prompt(true), Prompt(false)
	if !strings.HasPrefix(with, role) || !strings.HasPrefix(without, role) {
		t.Error("a profile lacks the rules of work")
	}
	if !strings.Contains(with, "can answer at once") || strings.Contains(without, "can answer at once") {
		t.Error("the interactive profile is not the one with a person")
	}
	if !strings.Contains(without, "Nobody watches") {
		t.Error("the unattended profile does not say that nobody watches")
	}
}
