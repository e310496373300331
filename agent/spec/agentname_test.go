package spec_test

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

func TestNamesOfAgents(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "code-reviewer_2": true, "-": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
		"": false, "A": false, "a b": false, "a.b": false, "ä": false, "a\n": false, "a/b": false} {
		if got := spec.IsAgentName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
