package runfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// TestEachChildIsTakenOutOfItsRun: of each recorded run, each agent below the root becomes a run of its own: its logs keep the rules, and this version decides the same from
// them.
//
//behaviour:shows F5
func TestEachChildIsTakenOutOfItsRun(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../replay/testdata/runs/*/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatal(err)
	}
	taken := 0
	for _, path := range paths {
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := runfile.Read(in)
		if err := errors.Join(err, in.Close()); err != nil {
			t.Fatal(err)
		}
		for _, id := range agentsBelowRoot(f.Entries) {
			cuts := [][]mailbox.Message{f.Entries}
			for turn := range 5 { // and as the agent was at its turns
				if cut, err := runfile.CutFork(f.Entries, id, fmt.Sprint(turn)); err == nil {
					cuts = append(cuts, cut)
				}
			}
			for n, cut := range cuts {
				checkTaken(t, fmt.Sprintf("%s: %s, cut %d", path, id, n), cut, spec.ID(id))
				taken++
			}
		}
	}
	if taken < 18 {
		t.Errorf("%d agents are taken: the test shows little", taken)
	}
}

func judgeTaken(entries []mailbox.Message) error {
	if report := verify.Logs(entries); len(report.Findings) > 0 {
		return errors.New(report.Findings[0].String())
	}
	r := replay.Logs(entries, replay.Options{})
	if r.Unchecked > 0 {
		return fmt.Errorf("%d messages without a cause", r.Unchecked)
	}
	return errors.Join(r.Err(), r.ReadErr)
}

// agentsBelowRoot returns the agents below the root.
func agentsBelowRoot(entries []mailbox.Message) (ids []string) {
	for _, m := range entries {
		if id := m.To.Agent(); id != mailbox.Super && id != "root" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// checkTaken fails unless an agent becomes a run of its own, with the budget that the whole run has left.
func checkTaken(t *testing.T, what string, cut []mailbox.Message, id spec.ID) {
	t.Helper()
	entries, err := runfile.TakeAgent(cut, id, "other", 1<<41)
	if err == nil {
		err = judgeTaken(entries)
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, m := range entries {
		if m.To.Run() != "other" || !strings.HasPrefix(m.To.Agent(), "root") && m.To.Agent() != mailbox.Super {
			t.Errorf("%s: an entry of %s", what, m.To)
		}
	}
	whole, own := replay.Logs(cut, replay.Options{}), replay.Logs(entries, replay.Options{})
	if a, b := whole.Super.Pool, own.Super.Pool; own.Super.Phase != supervisor.Over && (a.Limit != b.Limit || a.Spent != b.Spent) {
		t.Errorf("%s: the whole run has used %+v of %+v, the agent's %+v of %+v", what, a.Spent, a.Limit, b.Spent, b.Limit)
	}
	if a, b := whole.Agents[id], own.Agents[spec.Root]; a.Phase != b.Phase || a.Turn != b.Turn || len(a.History) != len(b.History) || a.Usage != b.Usage {
		t.Errorf("%s: it was %s in turn %d, and is %s in turn %d", what, a.Phase, a.Turn, b.Phase, b.Turn)
	}
}
