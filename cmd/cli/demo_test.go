package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// demoTestPace is long enough that the kill meets model calls and no tool.
const demoTestPace = "--pace=1500ms"

// TestDemoSurvivesAKill kills the demo between its tool calls. Another process finishes the run: each order was
// shipped once, by two processes, and the cost of the model calls that the kill cut off is part of the sum.
func TestDemoSurvivesAKill(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	first, header := killedDemo(t, s, 3)
	for _, words := range []string{fmt.Sprintf("kill me: pid %d.", first.Process.Pid), fmt.Sprintf("kill -9 %d; troupe demo --continue\n", first.Process.Pid), "$0.50"} {
		if !strings.Contains(header, words) {
			t.Errorf("no %q in %s", words, header)
		}
	}

	second := s.command("demo", "--continue", demoTestPace, "-o", "json")
	var report strings.Builder
	second.Stderr = &report
	text, err := second.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &report)
	}
	var r event.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if r.Text != "All nine orders are shipped." || !r.CostKnown || r.CostUSD <= 0 || r.CostUSD > r.Budget.LimitUSD || r.Budget.Unknown <= 0 || r.Budget.Reserved != 0 {
		t.Errorf("result: %s", text)
	}
	for _, words := range []string{"9 of 9 orders shipped, each once: 3 by process " + fmt.Sprint(first.Process.Pid), "6 by process " + fmt.Sprint(second.Process.Pid), "of $0.50", "look    troupe tree last --store-dir " + filepath.Join(s.home, "state", "troupe-demo", "state") + "\n"} {
		if !strings.Contains(report.String(), words) {
			t.Errorf("no %q in %s", words, &report)
		}
	}
	checkLedger(t, filepath.Join(s.home, "state", "troupe-demo"), r.Run)
}

// killedDemo starts a demo, kills it once it has shipped some orders, and returns its command and what it said.
func killedDemo(t *testing.T, s testHome, orders int) (*exec.Cmd, string) {
	t.Helper()
	first := s.command("demo", demoTestPace, "-o", "stream-json")
	var header strings.Builder
	first.Stderr = &header
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Process.Kill() }) // it may have ended
	events := bufio.NewScanner(out)
	events.Buffer(nil, 1<<20)
	for shipped := 0; shipped < orders && events.Scan(); {
		var e client.Event
		if err := json.Unmarshal(events.Bytes(), &e); err != nil {
			t.Fatalf("%v: %s", err, events.Bytes())
		}
		if e.Kind == event.KindToolFinished {
			shipped++
		}
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	return first, header.String()
}

// The command that `troupe list` names for a killed demo finishes it, too: with the tool and the model of the demo.
func TestResumeOfADemo(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	killedDemo(t, s, 6)
	state := filepath.Join(s.home, "state", "troupe-demo", "state")
	list := s.command("list", "-q", "-o", "json", "--store-dir", state)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var runs []client.RunInfo
	if err := json.Unmarshal(out, &runs); err != nil || len(runs) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	list = s.command("list", "--store-dir", state)
	text, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	again := "run --resume " + runs[0].RunID + " --store-dir " + state
	if !strings.Contains(string(text), "troupe "+again+" continues it") {
		t.Errorf("no %q in %s", again, text)
	}
	resume := s.command(append(strings.Fields(again), "-o", "json")...)
	var report strings.Builder
	resume.Stderr = &report
	if out, err = resume.Output(); err != nil {
		t.Fatalf("%v: %s", err, &report)
	}
	for _, words := range []string{"9 of 9 orders shipped, each once: 6 by process", "; troupe " + again + "\n"} {
		if !strings.Contains(report.String(), words) {
			t.Errorf("no %q in %s", words, &report)
		}
	}
	if !strings.Contains(string(out), "All nine orders are shipped.") {
		t.Errorf("result: %s", out)
	}
	checkLedger(t, filepath.Join(s.home, "state", "troupe-demo"), runs[0].RunID)
}

// checkLedger reads the ledger file as a shell would: nine lines, each order once.
func checkLedger(t *testing.T, dir, run string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "ledger-"+run+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(data)) {
		order, _, _ := strings.Cut(line, " shipped by")
		seen[order]++
	}
	if len(seen) != 9 || strings.Count(string(data), "\n") != 9 {
		t.Errorf("ledger: %s", data)
	}
}

// A demo that was killed before it had asked for its run cannot be continued.
func TestDemoThatHasNotBegunIsNotContinued(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	dir := filepath.Join(s.home, "state", "troupe-demo")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte(client.NewID()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, code := s.errorOf("demo", "--continue")
	if code != exitUsage || !strings.Contains(text, "the newest one ended before its run began") || !strings.Contains(text, "troupe demo starts one") {
		t.Errorf("exit %d: %s", code, text)
	}
}

// A demo that cannot be continued says what to do, and so do wrong flags.
func TestDemoRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, nil)
	for words, args := range map[string][]string{
		"there is no demo to continue":         {"demo", "--continue"},
		"--pace must not be negative":          {"demo", "--pace=-1s"},
		"troupe demo starts a node of its own": {"demo", "-s", "nats://127.0.0.1:1"},
	} {
		if text, code := s.errorOf(args...); code != exitUsage || !strings.Contains(text, words) || !strings.Contains(text, "hint: ") {
			t.Errorf("%v: exit %d: %s", args, code, text)
		}
	}
}
