package supervisor

import (
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
)

// An agent in another pool than that of its run has no notes there: they are where the directory is.
func TestMemoryStaysWithTheDirectory(t *testing.T) {
	t.Parallel()
	o := Opened{Run: "r", Workspace: "/work", NodePool: "home"}
	def := Definition{Name: "a", Memory: "project"}
	for pool, want := range map[string]string{"home": "project", "gpu": ""} {
		if task := o.newTask(Member{ID: spec.Root, Name: "a", NodePool: pool}, def, "go"); task.Memory != want {
			t.Errorf("in pool %s: %q", pool, task.Memory)
		}
	}
}
