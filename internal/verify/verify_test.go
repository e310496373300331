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

// claimOf returns what the first line of a file tells of its run.
func claimOf(t *testing.T, f runfile.File) verify.Claim {
	t.Helper()
	var result struct {
		Reason string `json:"stop_reason"`
	}
	if err := json.Unmarshal(f.Header.Result, &result); len(f.Header.Result) > 0 && err != nil {
		t.Fatal(err)
	}
	return verify.Claim{State: f.Header.State, Reason: result.Reason}
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
		r := verify.Run(file.Entries, claimOf(t, file))
		for _, f := range r.Findings {
			t.Errorf("%s: %s", path, f)
		}
		if r.Certificate.Reason == "" && !strings.Contains(path, "/parked_for_a_person") && !strings.Contains(path,
			"/shipping_lookup") && !strings.Contains(path, "/resume_never") {
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

// TestCertificates: the certificate of a stop names the rule and the facts, with the entries that show them. One of a
// run that waits names the question.
func TestCertificates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  string
		facts []string
	}{
		"completes_within_budget": {"its own proposal, which no rule vetoed", []string{"the supervisor answered stop_allowed (entry 9 of eval.root)"}},
		"vetoed_for_good": {`the rule "evidence" of the policy, version 1`,
			[]string{"proposed to stop 8 times before", `stop_vetoed for good by the rule "evidence" of the policy, version 1 (entry 22 of eval.root): "Name the evidence."`}},
		"token_budget": {"token_budget", []string{"granted only a closing turn for token_budget (entry 80 of eval.root)",
			"the limit of the run was 5000 tokens; settled were 4024 tokens, and held for attempts under way 0 tokens (up " +
				"to entry 25 of eval.super)",
			"asks for up to 718 tokens, 518 of the prompt and 200 of the reply, and after it a closing turn must fit: up to " +
				"818 more (entry 25 of eval.super)"}},
		"timeout_hard": {"limit of working time",
			[]string{"100 ms until the closing turn and 300 ms until the end (entry 1 of eval.root", "root worked 303 ms",
				"the hard limit was due (entry 7 of eval.root)"}},
		"canceled_at_the_boundary": {"cancel",
			[]string{"a cancel is entry 5 of eval.super", "root read the cancel in its entry 6"}},
		"guardrail_trips": {`hook "secrets"`,
			[]string{`decided trip at output (entry 6 of eval.root): "a secret"`}},
		"model_fallback_exhausted": {"answer of the model",
			[]string{`the model failed (entry 9 of eval.root): "unknown: on fire"`}},
		"parked_for_a_person": {"a person decides",
			[]string{`question 1-0.1 about call 1-0 since its entry 5 (entry 5 of eval.super): "Which colour? (red | blue)"`}},
		"resume_never_repeats_an_effect": {"a person decides",
			[]string{`about call 1-0 since its entry 8 (entry 8 of eval.super): "send_mail`}},
	} {
		got := verify.Logs(readFile(t, "../replay/testdata/runs/0.1.0/"+name+".jsonl")).Certificate
		text := strings.Join(got.Facts, "\n")
		for _, fact := range c.facts {
			if !strings.Contains(text, fact) {
				t.Errorf("%s: the certificate has no %q:\n%s", name, fact, text)
			}
		}
		if got.Rule != c.rule || (got.Waits != "") != (got.Reason == "") {
			t.Errorf("%s: stopped as %q by %q, waits for %q", name, got.Reason, got.Rule, got.Waits)
		}
	}
}
