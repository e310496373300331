package runspec

import (
	"strings"
	"testing"
)

// Notes are on one machine: an agent has none in a run that may continue on another, nor without what its scope needs.
func TestRunsWithoutMemory(t *testing.T) {
	t.Parallel()
	alone, shared := New(Config{}), New(Config{Pools: &NodePools{}})
	taken := New(Config{OwnTools: []string{"memory_write"}})
	for _, c := range []struct {
		b                     *Builder
		scope, workspace, why string
	}{
		{alone, "user", "", ""}, {alone, "project", "/work", ""}, {shared, "user", "/work", ""}, {shared, "project", "/work", ""},
		{alone, "project", "", "the run has no directory"}, {shared, "user", "", "may continue on another"},
		{alone, "planet", "/work", "neither user nor project"}, {taken, "user", "/work", "a function of the program"},
	} {
		if why := whyNoMemory(&c.b.cfg, c.scope, c.workspace); !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s in %q: %q, not %q", c.scope, c.workspace, why, c.why)
		}
	}
}
