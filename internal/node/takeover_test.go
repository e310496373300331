package node

import (
	"testing"

	"github.com/troupe-run/troupe/client"
)

// TestARunThatEndsWhileItsLogIsFoundStaysFinished: the list of runs was read before the
// run had a row, and the row that says its end was written after.
func TestARunThatEndsWhileItsLogIsFoundStaysFinished(t *testing.T) {
	t.Parallel()
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Model: writeScript(t, "agents:\n  assistant:\n    - text: done\n")})
	finishedAt(t, h, id)
	logs, err := h.post.Addresses(testContext(t), id)
	if err != nil {
		t.Fatal(err)
	}
	open, err := h.logOwner.UnfinishedOf(testContext(t), nil, logs)
	if err != nil || len(open) != 0 {
		t.Errorf("open: %+v, %v", open, err)
	}
	if info, _, err := h.runs.Get(testContext(t), id); err != nil || info.State != client.RunFinished {
		t.Errorf("the index says %+v, %v", info, err)
	}
}
