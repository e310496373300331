package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// verifiedRuns counts the runs whose logs were judged by internal/verify, which shares nothing with the loop, and
// replayed by internal/replay.
type verifiedRuns struct {
	runs, ended, entries, findings, differences int
	keep                                        string // a directory for the run files; "": they are not kept
}

// judge verifies and replays the logs of a run. result is what the node told about its end; nil: nothing.
func (v *verifiedRuns) judge(run string, entries []mailbox.Message, result *event.Result) (problems []string, err error) {
	v.runs++
	v.entries += len(entries)
	report := verify.Logs(entries)
	for _, f := range report.Findings {
		v.findings++
		problems = append(problems, fmt.Sprintf("verify: run %s: %s", run, f))
	}
	replayed := replay.Logs(entries, replay.Options{})
	if replayed.Ended {
		v.ended++
	}
	var told []byte
	if result != nil {
		if told, err = json.Marshal(result); err != nil {
			return problems, err
		}
	}
	difference := replayed.Err()
	if d := replayed.CompareResult(told); difference == nil && d != nil {
		difference = d
	}
	if difference != nil {
		v.differences++
		problems = append(problems, fmt.Sprintf("replay: run %s: %v", run, difference))
	}
	if result != nil && report.Certificate.Reason != string(result.Reason) {
		problems = append(problems, fmt.Sprintf("verify: run %s was told as %s, and its certificate is of %q", run, result.Reason, report.Certificate.Reason))
	}
	return problems, v.keepRun(run, entries)
}

func (v *verifiedRuns) String() string {
	return fmt.Sprintf("verify and replay: %d runs, %d of them ended, %d entries: %d broken rules, %d differences", v.runs, v.ended, v.entries, v.findings, v.differences)
}

// keepRun writes the run file of a run.
func (v *verifiedRuns) keepRun(run string, entries []mailbox.Message) error {
	if v.keep == "" {
		return nil
	}
	if err := os.MkdirAll(v.keep, 0o755); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(v.keep, run+".jsonl"))
	if err != nil {
		return err
	}
	return errors.Join(runfile.Write(out, runfile.File{Header: runfile.Header{Run: run, WrittenBy: "chaos"}, Entries: entries}), out.Close())
}

// keptRuns is where a scenario keeps the run files; "": it does not.
func (o options) keptRuns(dir string) string {
	if !o.keep {
		return ""
	}
	return filepath.Join(dir, "runs")
}

// judgeStored verifies and replays the logs of a run that no process runs.
func (v *verifiedRuns) judgeStored(s testDir) (problems []string, err error) {
	var entries []mailbox.Message
	err = s.withLogs(func(logs mailbox.Store) error {
		return logs.ReadRun(context.Background(), s.run, func(m mailbox.Message) error {
			entries = append(entries, m)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return v.judge(s.run, entries, nil)
}

// verifyLogs verifies and replays the logs of a run of the cluster.
func (t *clusterJudge) verifyLogs(f *replayedRun, r *finishedRun) {
	if t.o.poison {
		return // the scenario itself writes entries that no actor wrote
	}
	var entries []mailbox.Message
	for _, at := range sortedKeys(f.logs) {
		entries = append(entries, f.logs[at]...)
	}
	problems, err := t.verified.judge(r.id, entries, r.result)
	if err != nil {
		t.found.addOf(r.id, "run %s: %v", r.id, err)
	}
	for _, p := range problems {
		t.found.addOf(r.id, "%s", p)
	}
}
