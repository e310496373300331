package runspec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// TestToolsOfAnotherClassAreReportedFirst: a node that has many other tools still reports the difference that waits for a
// person.
func TestToolsOfAnotherClassAreReportedFirst(t *testing.T) {
	t.Parallel()
	task := spec.Task{Hashes: map[string]string{spec.PromptVersion: "p", "tool/zz": "read:1", "tool/same": "read:1", "tool/gone": "read:1"}}
	tools := map[string]string{"tool/zz": "exec:1", "tool/same": "read:1"}
	for i := range 2 * agent.FoundMax {
		tools[fmt.Sprintf("tool/new%03d", i)] = "read:2"
	}
	keys := differentTools(task, tools)
	if len(keys) != 2*agent.FoundMax+2 || keys[0] != "tool/zz" || keys[1] != "tool/gone" || !slices.IsSorted(keys[1:]) {
		t.Errorf("%d keys: %v; want tool/zz, which has another class, first", len(keys), keys[:4])
	}
}
