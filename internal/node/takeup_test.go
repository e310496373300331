package node

import (
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control"
)

// TestARunThatEndsWhileItsLogIsFoundStaysFinished: the list of runs was read before the
// run had a row, and the row that says its end was written after.
func TestARunThatEndsWhileItsLogIsFoundStaysFinished(t *testing.T) {
	t.Parallel()
	h := start(t, t.TempDir())
	c := connect(t, h)
	id := begin(t, c, client.RunRequest{Model: script(t, "agents:\n  coordinator:\n    - text: done\n")})
	finishedAt(t, h, id)
	logs, err := h.post.Addresses(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	open, err := h.logOwner.UnfinishedOf(within(t), nil, logs)
	if err != nil || len(open) != 0 {
		t.Errorf("open: %+v, %v", open, err)
	}
	if info, _, err := h.runs.Get(within(t), id); err != nil || info.State != control.Finished {
		t.Errorf("the index says %+v, %v", info, err)
	}
}
