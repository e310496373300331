package killable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/troupe-run/troupe/internal/node/killable"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// TestKilledNodeWritesNothing: after its last entry a node changes no log, by whichever method of the store.
func TestKilledNodeWritesNothing(t *testing.T) {
	t.Parallel()
	store, count := memory.New(memory.Config{}), &killable.Count{}
	count.Begin("run")
	count.Plan([]int{1})
	logs := killable.Wrap(store, count)
	imported := []mailbox.Message{{To: "run.other", At: 1, Data: []byte("x")}}
	if err := logs.Import(t.Context(), nil, imported); err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Put(t.Context(), logs, "run.root", []byte("last")); !errors.Is(err, mailbox.ErrClosed) {
		t.Fatalf("the last entry: %v", err)
	}
	for name, write := range map[string]func() error{
		"append": func() error { _, err := mailbox.Put(t.Context(), logs, "run.root", []byte("more")); return err },
		"import": func() error {
			return logs.Import(t.Context(), nil, []mailbox.Message{{To: "run.third", At: 1, Data: []byte("x")}})
		},
		"purge": func() error { return logs.Purge(t.Context(), "run.root", 1<<40) },
	} {
		if err := write(); !errors.Is(err, mailbox.ErrClosed) {
			t.Errorf("%s of a killed node: %v", name, err)
		}
	}
	entries := 0
	err := store.ReadRun(context.Background(), "run", func(mailbox.Message) error { entries++; return nil })
	if err != nil || entries != 2 {
		t.Errorf("%d entries, %v", entries, err)
	}
}
