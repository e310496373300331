package runimport

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// FuzzRestoredEntry: whatever an entry of a file holds, the file is refused with a reason, or it is a state of the run: then
// its entries are imported in the order of each log.
func FuzzRestoredEntry(f *testing.F) {
	paths, err := filepath.Glob("../../replay/testdata/runs/0.1.0/*.jsonl")
	if err != nil || len(paths) == 0 {
		f.Fatal(err, len(paths))
	}
	var files []runfile.File
	for _, path := range paths {
		in, err := os.Open(path)
		if err != nil {
			f.Fatal(err)
		}
		file, err := runfile.Read(in)
		if err := errors.Join(err, in.Close()); err != nil {
			f.Fatalf("%s: %v", path, err)
		}
		file.Header.Dump = true
		files = append(files, file)
		for i, m := range file.Entries {
			if i%16 == 0 {
				f.Add(uint8(len(files)-1), uint16(i), m.At, m.Data)
			}
		}
	}
	c := &runFileCheck{&Config{Redact: bytes.Clone, CheckRestored: func(supervisor.Opened, client.RunRequest) error { return nil },
		CheckRestoredChange: func(supervisor.Opened, client.RunRequest, RecordedChange) error { return nil }}}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, stamp int64, data []byte) {
		file := files[int(which)%len(files)]
		file.Entries = append([]mailbox.Message(nil), file.Entries...)
		changed := &file.Entries[int(at)%len(file.Entries)]
		changed.At, changed.Data = max(stamp, 0), data
		checked, err := c.checkRestore(file, client.RestoreRequest{RunID: file.Header.Run, OriginalStopped: true, AcceptApprovals: true}, time.Now())
		if err != nil {
			var refused *client.Error
			if !errors.As(err, &refused) || refused.Text == "" || refused.Hint == "" {
				t.Fatalf("refused without a reason or a remedy: %v", err)
			}
			return
		}
		if len(checked.entries) != len(file.Entries) {
			t.Fatalf("%d of %d entries are imported", len(checked.entries), len(file.Entries))
		}
		seen := map[mailbox.Address]int{}
		for _, m := range file.Entries {
			if string(checked.logs[m.To][seen[m.To]].Data) != string(m.Data) {
				t.Fatalf("the entries of %s are in another order", m.To)
			}
			seen[m.To]++
		}
	})
}
