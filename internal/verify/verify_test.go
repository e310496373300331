package verify_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

func readFile(t *testing.T, path string) []mailbox.Message {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := runfile.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return f.Entries
}

// TestRecordedRunsKeepTheRules: no recorded run breaks a rule, and each that has ended has a certificate.
func TestRecordedRunsKeepTheRules(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../replay/testdata/runs/*/*.jsonl")
	if err != nil || len(paths) < 18 {
		t.Fatal(len(paths), err)
	}
	var chained, calls, settled int
	for _, path := range paths {
		r := verify.Logs(readFile(t, path))
		for _, f := range r.Findings {
			t.Errorf("%s: %s", path, f)
		}
		if r.Certificate.Reason == "" && !strings.Contains(path, "/parked_for_a_person") && !strings.Contains(path, "/shipping_lookup") && !strings.Contains(path, "/resume_never") {
			t.Errorf("%s: no certificate: %+v", path, r)
		}
		chained, calls, settled = chained+r.Chained, calls+r.Calls, settled+r.Settled
	}
	t.Logf("%d runs: %d hashes, %d attempts of calls and %d settlements checked", len(paths), chained, calls, settled)
	if chained == 0 || calls == 0 || settled == 0 {
		t.Error("something was not checked")
	}
}

// TestRecordedMailboxesKeepTheRules: the same for the logs that package actors has recorded.
func TestRecordedMailboxesKeepTheRules(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../actors/testdata/mailboxes/*/*.log")
	if err != nil || len(paths) == 0 {
		t.Fatal(len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var entries []mailbox.Message
		scan := bufio.NewScanner(bytes.NewReader(data))
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			var line struct {
				At   mailbox.Address `json:"at"`
				Data []byte          `json:"data"`
			}
			if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			entries = append(entries, mailbox.Message{To: line.At, Data: line.Data})
		}
		for _, f := range verify.Logs(entries).Findings {
			t.Errorf("%s: %s", path, f)
		}
	}
}
