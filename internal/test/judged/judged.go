// Package judged judges the logs that a test has made: they must replay to the same end, and
// keep the rules of the logs.
package judged

import (
	"context"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// Dir judges the runs of a state directory whose node has ended.
func Dir(t testing.TB, stateDir string, runs int) {
	t.Helper()
	logs, err := local.Open(context.Background(), local.Config{Dir: statedir.LogsDir(stateDir)})
	if err != nil {
		t.Fatal(err)
	}
	Store(t, logs, runs)
	if err := logs.Close(); err != nil {
		t.Error(err)
	}
}

// Store judges the runs of a store, which must have that many.
func Store(t testing.TB, logs mailbox.Store, runs int) {
	t.Helper()
	found := map[string][]mailbox.Message{}
	err := logs.Heads(context.Background(), func(h mailbox.Head) error {
		if h.To.Agent() == mailbox.Super {
			found[h.To.Run()] = nil
		}
		return nil
	})
	for run := range found {
		if err == nil {
			err = logs.ReadRun(context.Background(), run, func(m mailbox.Message) error {
				found[run] = append(found[run], m)
				return nil
			})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != runs {
		t.Errorf("there are logs of %d runs, want %d", len(found), runs)
	}
	for run, entries := range found {
		Logs(t, run, entries)
	}
}

// Logs judges the logs of a run. What the replay comes to is the end that the logs must show.
func Logs(t testing.TB, run string, entries []mailbox.Message) {
	t.Helper()
	again := replay.Logs(entries, replay.Options{})
	if again.ReadErr != nil || again.Err() != nil || again.Unchecked > 0 {
		t.Errorf("replay: run %s: %v, %v, %d messages without their cause", run, again.ReadErr, again.Err(), again.Unchecked)
	}
	claim := verify.Claim{}
	switch {
	case again.Ended:
		claim = verify.Claim{State: "finished", Reason: string(again.Result.Reason)}
	case again.Super.Parked > 0:
		claim.State = "parked"
	}
	report := verify.Run(entries, claim)
	for _, f := range report.Findings {
		t.Errorf("verify: run %s: %s", run, f)
	}
	if report.Damaged || again.Ended && report.Certificate.Rule == "" {
		t.Errorf("verify: run %s: damaged %v, stopped by %q", run, report.Damaged, report.Certificate.Rule)
	}
}
