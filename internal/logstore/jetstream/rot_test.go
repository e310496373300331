package jetstream_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/mailbox"
)

// TestARottenEntryIsNeverReadAsAnother: one bit of an entry turns over while the
// server is down. What is read afterwards is what was written, without that entry
// or what follows it, and every read comes to an end: a reader that waited for it
// would wait for ever, and what a run says of its log rests on the hashes.
func TestARottenEntryIsNeverReadAsAnother(t *testing.T) {
	const entries = 20
	for _, rotten := range []int{0, entries / 2, entries - 1} {
		t.Run(fmt.Sprint(rotten), func(t *testing.T) {
			dir := t.TempDir()
			var written []string
			open1 := func(do func(*embedded.Server)) {
				e, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true})
				if err != nil {
					t.Fatal(err)
				}
				do(e)
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			open1(func(e *embedded.Server) {
				p := openPost(t, dialServer(t, e), quickConfig())
				for n := range entries {
					written = append(written, fmt.Sprintf("entry number %02d.", n)) // none begins another: what follows in the file may be any byte
					putEntry(t, p, "run.a", written[n])
				}
			})
			flipBit(t, dir, written[rotten])
			open1(func(e *embedded.Server) {
				p := openPost(t, dialServer(t, e), quickConfig())
				read := storedEntries(t, p, "run.a")
				if slices.Contains(read, written[rotten]) || len(read) >= entries {
					t.Fatalf("the bit was not seen: %q", read)
				}
				for i, was := 0, 0; i < len(read); i, was = i+1, was+1 {
					for was < entries && written[was] != read[i] {
						was++
					}
					if was == entries {
						t.Errorf("%q was never written there", read[i])
					}
				}
				whole := 0
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if err := p.ReadRun(ctx, "run", func(mailbox.Message) error { whole++; return nil }); err != nil || whole != len(read) {
					t.Errorf("the run has %d entries, the log %d: %v", whole, len(read), err)
				}
				putEntry(t, p, "run.a", "after it")
			})
		})
	}
}

// flipBit turns one bit over in the entry that holds some text.
func flipBit(t *testing.T, dir, text string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".blk") {
			return err
		}
		data, err := os.ReadFile(path)
		if at := bytes.Index(data, []byte(text)); err == nil && at >= 0 {
			found = true
			data[at+3] ^= 4
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	})
	if err != nil || !found {
		t.Fatalf("%q was not found: %v", text, err)
	}
}

// The heads of all other logs are found though the newest entry of a stream has
// rotted away, and so are those of a log that has lost its newest entry.
func TestARottenEntryHidesNoOtherLog(t *testing.T) {
	dir := t.TempDir()
	session := func(do func(*embedded.Server)) {
		e, err := embedded.Start(embedded.Config{StateDir: dir, DontListen: true})
		if err != nil {
			t.Fatal(err)
		}
		do(e)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	session(func(e *embedded.Server) {
		p := openPost(t, dialServer(t, e), quickConfig())
		for _, agent := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			putEntry(t, p, mailbox.At("run", agent), "first of "+agent)
		}
		putEntry(t, p, "run.a", "the newest of all")
	})
	flipBit(t, dir, "the newest of all")
	session(func(e *embedded.Server) {
		p := openPost(t, dialServer(t, e), quickConfig())
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		found := map[mailbox.Address]string{}
		if err := p.Heads(ctx, func(h mailbox.Head) error { found[h.To] = string(h.Data); return nil }); err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"b", "c", "d", "e", "f", "g", "h"} {
			if at := mailbox.At("run", agent); found[at] != "first of "+agent {
				t.Errorf("the head of %s is %q", at, found[at])
			}
		}
	})
}
