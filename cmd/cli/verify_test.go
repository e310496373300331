package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// recordedRun reads a recorded run of an earlier version.
func recordedRun(t *testing.T, name string) runfile.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "internal", "replay", "testdata", "runs", "0.1.0", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := runfile.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// writeRun writes a run file, whose hash fits what it holds.
func (s testHome) writeRun(name string, f runfile.File) string {
	s.t.Helper()
	path := filepath.Join(s.home, name+".jsonl")
	var out bytes.Buffer
	if err := runfile.Write(&out, f); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// TestARunWithoutItsLastEntries: of a run that its file calls finished, or parked, the last entries of the log of the run were
// removed, and the file was sealed again. Neither command passes that.
func TestARunWithoutItsLastEntries(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	for name, c := range map[string]struct {
		lost int
		want [2]string // of replay and verify
	}{
		"completes_within_budget": {2, [2]string{"the run is not over", "lacks the end of root"}},
		"parked_for_a_person":     {1, [2]string{"no question is open", "no question is open"}},
	} {
		f := recordedRun(t, name)
		whole, cut := s.writeRun(name, f), s.writeRun(name+"-cut", withoutLast(f, c.lost))
		for i, command := range [][]string{{"replay", "--assert"}, {"verify"}} {
			if out, code := s.outputOf(append(command, whole)...); code != 0 {
				t.Errorf("%q %s: exit %d: %s", command, name, code, out)
			}
			if out, code := s.outputOf(append(command, cut)...); code != 1 || !strings.Contains(out, c.want[i]) {
				t.Errorf("%q %s without its last %d entries: exit %d: %s", command, name, c.lost, code, out)
			}
		}
	}
}

// TestARunWhoseLogWasNotClosed: a process may end after a run is over and before it closed its log. Both commands pass that.
func TestARunWhoseLogWasNotClosed(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	path := s.writeRun("open", withoutLast(recordedRun(t, "completes_within_budget"), 1))
	if out, code := s.outputOf("replay", "--assert", path); code != 0 || !strings.Contains(out, "the run ended: completed (its process ended before it closed the log)") {
		t.Errorf("replay: exit %d: %s", code, out)
	}
	if out, code := s.outputOf("verify", path); code != 0 || !strings.Contains(out, "root ended as completed") || strings.Contains(out, "is closed") {
		t.Errorf("verify: exit %d: %s", code, out)
	}
}

// withoutLast returns the file without the last entries of the log of the run.
func withoutLast(f runfile.File, lost int) runfile.File {
	f.Entries = slices.Clone(f.Entries)
	for i := len(f.Entries) - 1; i >= 0 && lost > 0; i-- {
		if f.Entries[i].To.Agent() == mailbox.Super {
			f.Entries, lost = slices.Delete(f.Entries, i, i+1), lost-1
		}
	}
	return f
}

// TestAChangedByteOfARunFileIsNamed: both commands refuse a file of which a byte was changed, and name the line and the entry.
func TestAChangedByteOfARunFileIsNamed(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	path := s.writeRun("changed", recordedRun(t, "completes_within_budget"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	i := bytes.Index(lines[4], []byte(`"data":"`)) + 60 // the fourth entry
	if lines[4][i]++; lines[4][i] == '{' || lines[4][i] == '[' || lines[4][i] == ':' {
		lines[4][i] -= 2
	}
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"replay", "verify"} {
		if text, code := s.errorOf(command, path); code != 2 || !strings.Contains(text, "line") || !strings.Contains(text, "eval.root") || !strings.Contains(text, "the file was changed") {
			t.Errorf("%s: exit %d: %s", command, code, text)
		}
	}
}

// TestVerifyShowsWhyARunStopped: the certificate that the command prints names the rule, its figures and the entries.
func TestVerifyShowsWhyARunStopped(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	for name, want := range map[string][]string{
		"token_budget":        {"the run stopped as token_budget:", "the limit of the run was 5000 tokens; settled were 4024 tokens", "(entry 80 of eval.root)"},
		"timeout_hard":        {"the run stopped as timeout, by: limit of working time", "the hard limit was due (entry 7 of eval.root)"},
		"parked_for_a_person": {"it waits for a person (needs_human)", "root waits for the answer to question 1-0.1 about call 1-0"},
	} {
		out, code := s.outputOf("verify", s.writeRun(name, recordedRun(t, name)))
		for _, text := range want {
			if code != 0 || !strings.Contains(out, text) {
				t.Errorf("%s: exit %d, no %q: %s", name, code, text, out)
			}
		}
	}
}

// TestVerifyPrintsTheSums: the sums of the budget and the limit in force are in the output, as text and as data.
func TestVerifyPrintsTheSums(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	path := s.writeRun("budgeted", recordedRun(t, "token_budget"))
	out, code := s.outputOf("verify", path)
	if want := "settled: 4363 tokens, 28 calls; limit: 5000 tokens\n"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit %d: %s", code, out)
	}
	out, code = s.outputOf("verify", path, "-o", "json")
	var report struct {
		Sums struct {
			Limit, Settled struct {
				Tokens int64 `json:"tokens"`
				Calls  int64 `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || report.Sums.Settled.Tokens != 4363 || report.Sums.Limit.Tokens != 5000 {
		t.Errorf("exit %d, %v: %+v", code, err, report)
	}
}
