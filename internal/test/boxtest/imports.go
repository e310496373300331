package boxtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/troupe-run/troupe/mailbox"
)

// testImport: imported entries keep their bytes and stamps for all readers, and a log with another newest entry takes
// none.
func testImport(t *testing.T, s mailbox.Store) {
	ctx := context60(t)
	c, stop := collectTail(t, s)
	defer stop()
	old := []mailbox.Message{
		{To: "run.root", At: 1_000, Data: []byte("one")}, {To: "run.super", At: 1_001, Data: []byte("first")},
		{To: "run.root", At: 1_002, Data: []byte("two")}, {To: "run.super", At: 1_003, Data: []byte("second")},
	}
	if err := s.Import(ctx, nil, old); err != nil {
		t.Fatal(err)
	}
	checkImported(t, readEntries(t, s, "run.root", 0, 0), []int64{1_000, 1_002}, []string{"one", "two"})
	if err := s.Import(ctx, nil, old[:1]); !errors.Is(err, mailbox.ErrLogChanged) {
		t.Errorf("a log that is not empty took an entry: %v", err)
	}
	root := readEntries(t, s, "run.root", 0, 0)
	newest := map[mailbox.Address]uint64{"run.root": root[1].Place, "run.other": 7}
	if err := s.Import(ctx, newest, []mailbox.Message{{To: "run.root", At: 1_004, Data: []byte("three")}}); err != nil {
		t.Errorf("an import does not go on behind its newest entry: %v", err)
	}
	if err := s.Import(ctx, newest, []mailbox.Message{{To: "run.other", At: 1_005, Data: []byte("x")}}); !errors.Is(err, mailbox.ErrLogChanged) {
		t.Errorf("an empty log has a newest entry: %v", err)
	}
	putEntry(t, s, "run.root", "new")
	c.awaitCount(t, 6)
	all := readEntries(t, s, "run.root", 0, 0)
	checkImported(t, all[:3], []int64{1_000, 1_002, 1_004}, []string{"one", "two", "three"})
	if m := all[3]; m.Imported || m.At <= 1_004 || string(m.Data) != "new" {
		t.Errorf("an entry that was appended is %+v", m)
	}
	tailed := c.messagesOf("run.root")
	checkImported(t, tailed[:3], []int64{1_000, 1_002, 1_004}, []string{"one", "two", "three"})
	err := s.Heads(ctx, func(h mailbox.Head) error {
		if h.To == "run.super" && (!h.Imported || h.At != 1_003 || h.Entries != 2) {
			t.Errorf("the newest entry of an imported log is %+v", h)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = s.ReadRun(ctx, "run", func(m mailbox.Message) error {
		if m.Imported != (string(m.Data) != "new") {
			t.Errorf("of a run: %+v", m)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func checkImported(t *testing.T, all []mailbox.Message, stamps []int64, texts []string) {
	t.Helper()
	if !slices.Equal(entryTexts(all), texts) {
		t.Errorf("entries are %q, want %q", entryTexts(all), texts)
		return
	}
	for i, m := range all {
		if !m.Imported || m.At != stamps[i] {
			t.Errorf("entry %d is %+v, want the stamp %d", i, m, stamps[i])
		}
	}
}
