package verify_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
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
	return readRunFile(t, path).Entries
}

// toldBy returns what the first line of a file tells of its run.
func toldBy(t *testing.T, f runfile.File) verify.Told {
	t.Helper()
	var result struct {
		Reason string `json:"stop_reason"`
	}
	if err := json.Unmarshal(f.Header.Result, &result); len(f.Header.Result) > 0 && err != nil {
		t.Fatal(err)
	}
	return verify.Told{State: f.Header.State, Reason: result.Reason}
}

func readRunFile(t *testing.T, path string) runfile.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := runfile.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return f
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
		file := readRunFile(t, path)
		r := verify.Run(file.Entries, toldBy(t, file))
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

// TestLogsOfALiveRunKeepTheRules: the logs of a run at work are read one after the other, each at a later moment. That
// breaks no rule, whichever log is read first.
func TestLogsOfALiveRunKeepTheRules(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../replay/testdata/runs/*/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal(len(paths), err)
	}
	random := rand.New(rand.NewPCG(18, 0))
	for _, path := range paths {
		entries := readFile(t, path) // in the order in which they were stored
		for range 60 {
			moments := map[mailbox.Address]int{}
			for _, m := range entries {
				moments[m.To] = 0
			}
			moment := 0
			for at := range moments { // in a random order
				moment += random.IntN(len(entries) - moment) // the last entry closes the log of the run
				moments[at] = moment
			}
			var read []mailbox.Message
			for i, m := range entries {
				if i < moments[m.To] || i == 0 { // a run whose log is empty is not known
					read = append(read, m)
				}
			}
			for _, f := range verify.Logs(read).Findings {
				t.Errorf("%s, read at %v: %s", path, moments, f)
			}
		}
	}
}

// TestRulesAreDocumented: the page that users read names every rule.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range verify.Rules() {
		if !bytes.Contains(page, []byte("`"+string(rule)+"`")) {
			t.Errorf("docs/replay.md does not name %s", rule)
		}
	}
}
