package control

import (
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// A row that the control service ends has ended now, whenever the run began and whether or not its
// row says when: prune goes by it.
func TestARowThatTheGatewayEndsHasEndedNow(t *testing.T) {
	begun := time.Now().Add(-40 * 24 * time.Hour).UTC().Truncate(time.Second)
	post := memory.New(memory.Config{Now: begun.UnixMilli})
	testlog.PutFact(t, post, mailbox.At("lost", mailbox.Super), "", supervisor.Opened{Run: "lost", Goal: "do it"}, false)
	c := newParts(&Config{Post: post, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))})
	lost, ok, err := c.lookup.findUnlisted(t.Context(), "lost")
	if err != nil || !ok {
		t.Fatalf("the run without a row: %t, %v", ok, err)
	}
	listed := client.RunInfo{RunID: "listed", State: client.RunLive, Started: begun.Format(time.RFC3339)}
	if _, err := c.cfg.Runs.Add(t.Context(), listed); err != nil {
		t.Fatal(err)
	}
	for _, row := range []client.RunInfo{listed, lost, {RunID: "unknown", State: client.RunLive}} {
		if err := c.canceler.endRow(t.Context(), row, "its log is gone"); err != nil {
			t.Fatal(err)
		}
		got, _, err := c.cfg.Runs.Get(t.Context(), row.RunID)
		end, ok := runindex.EndOf(got.RunInfo)
		if ago := time.Since(end); err != nil || !ok || ago < -time.Second || ago > time.Minute {
			t.Errorf("%s ended %v (%t, %v): %+v", row.RunID, end, ok, err, got)
		}
		if row.RunID != "unknown" && got.Started != listed.Started {
			t.Errorf("%s began %s, want %s", row.RunID, got.Started, listed.Started)
		}
	}
}

// TestOwnersSeeRunsWhoseRowsWereLost: the row of a run that the index does not have, or has without its owner, gets the
// owner of its log.
func TestOwnersSeeRunsWhoseRowsWereLost(t *testing.T) {
	post := memory.New(memory.Config{})
	testlog.PutFact(t, post, mailbox.At("lost", mailbox.Super), "", supervisor.Opened{Run: "lost", Goal: "do it", Owner: "alice"}, false)
	c := newParts(&Config{Post: post, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))})
	found, ok, err := c.lookup.findUnlisted(t.Context(), "lost")
	if err != nil || !ok || found.RunID != "lost" || found.Owner != "alice" || found.Title != "do it" {
		t.Errorf("%+v, %t, %v; want the run of alice", found, ok, err)
	}
	state := supervisor.State{Phase: supervisor.Live, Run: supervisor.Opened{Run: "lost", Goal: "do it", Owner: "alice"}}
	for run, row := range map[string]client.RunInfo{"titled": {Title: "do it"}, "bare": {}} {
		row.RunID, row.State = run, client.RunLive
		if _, err := c.cfg.Runs.Add(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if _, err := c.cfg.Runs.Record(t.Context(), run, runindex.Report{State: state, Place: 1}); err != nil {
			t.Fatal(err)
		}
		if got, _, err := c.cfg.Runs.Get(t.Context(), run); err != nil || got.Owner != "alice" || got.Title != "do it" {
			t.Errorf("%s: %+v, %v; want the owner of its log", run, got, err)
		}
	}
}
