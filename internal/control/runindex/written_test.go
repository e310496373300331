package runindex

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// overState is the state of a run that is over.
func overState(run, text string) supervisor.State {
	return supervisor.State{Phase: supervisor.Over, Run: supervisor.Opened{Run: run}, Outcome: spec.Outcome{Reason: spec.Completed, Text: text}}
}

// TestRecentResultsAreBounded: the oldest results are forgotten, by their number and by their size.
func TestRecentResultsAreBounded(t *testing.T) {
	var r Index
	for i := range recentResultsMax + 10 {
		r.Ends.NoteState(fmt.Sprint("run", i), overState("", "short"))
	}
	if n := len(r.Ends.recent.results); n != recentResultsMax || len(r.Ends.recent.old) != n {
		t.Errorf("%d results, %d names", n, len(r.Ends.recent.old))
	}
	if _, ok := r.Ends.recent.find("run9"); ok {
		t.Error("the oldest is still there")
	}
	if result, ok := r.Ends.recent.find("run10"); !ok || result.Text != "short" {
		t.Errorf("%+v, %v", result, ok)
	}
	for i := range 8 {
		r.Ends.NoteState(fmt.Sprint("long", i), overState("", strings.Repeat("x", recentResultBytesMax/4)))
	}
	if n := len(r.Ends.recent.results); n != 3 || r.Ends.recent.bytes > recentResultBytesMax {
		t.Errorf("%d results of %d bytes", n, r.Ends.recent.bytes)
	}
	for _, run := range append([]string{}, r.Ends.recent.old...) {
		r.Ends.recent.forget(run)
	}
	r.Ends.NoteState("live", supervisor.State{Phase: supervisor.Live})
	r.Ends.NoteState("huge", overState("", strings.Repeat("x", recentResultBytesMax)))
	if len(r.Ends.recent.results)+len(r.Ends.recent.old)+r.Ends.recent.bytes != 0 {
		t.Errorf("%d results, %d names, %d bytes", len(r.Ends.recent.results), len(r.Ends.recent.old), r.Ends.recent.bytes)
	}
}

// TestEndOfARunIsTheSameBeforeAndAfterItsRowIsWritten: a client reads the end of a run from its result at first, and
// from the row later.
func TestEndOfARunIsTheSameBeforeAndAfterItsRowIsWritten(t *testing.T) {
	t.Parallel()
	r := openIndex(t)
	if _, err := r.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	result, before := overState("r", "done").Result(), client.RunInfo{RunID: "r", State: client.RunLive}
	r.Ends.recent.put("r", recentResult{result, time.Now().Add(-time.Minute)})
	recent, ended, ok := r.Ends.RecentResult("r")
	if FinishRow(&before, recent, ended); !ok || before.State != client.RunFinished || before.Ended == "" {
		t.Fatalf("%+v, %v", before, ok)
	}
	if _, err := r.Record(t.Context(), "r", Report{Result: &result}); err != nil {
		t.Fatal(err)
	}
	r.Ends.recent.forget("r")
	if row, _, err := r.Get(t.Context(), "r"); err != nil || row.Ended != before.Ended {
		t.Errorf("%s, then %s, %v", before.Ended, row.Ended, err)
	}
}

// TestWrittenRowsAreBounded: a row that was taken or has ended is forgotten.
func TestWrittenRowsAreBounded(t *testing.T) {
	var w writtenRows
	row := Row{RunInfo: client.RunInfo{State: client.RunLive}}
	for i := range 3 * writtenRowsMax {
		w.keep(fmt.Sprint(i%(2*writtenRowsMax)), row, uint64(i))
	}
	if len(w.rows) != writtenRowsMax || w.order.Len() != writtenRowsMax {
		t.Errorf("%d rows, %d in order", len(w.rows), w.order.Len())
	}
	w.keep("a", row, 7)
	if _, revision, ok := w.take("a"); !ok || revision != 7 {
		t.Error("the row is not there")
	}
	if _, _, ok := w.take("a"); ok {
		t.Error("it is there twice")
	}
	row.State = client.RunFinished
	w.keep("b", row, 8)
	if _, _, ok := w.take("b"); ok {
		t.Error("a row that has ended is kept")
	}
}

// TestRowsOfLiveRunsAreKeptHoweverOftenTheyAreWritten: each write takes a row and keeps it again, and one that is seldom
// written stays, too.
func TestRowsOfLiveRunsAreKeptHoweverOftenTheyAreWritten(t *testing.T) {
	var w writtenRows
	row := Row{RunInfo: client.RunInfo{State: client.RunLive}}
	w.keep("seldom", row, 1)
	missed := 0
	for i := range 4 * writtenRowsMax {
		run := fmt.Sprint(i % 10)
		if _, _, ok := w.take(run); !ok {
			missed++
		}
		w.keep(run, row, uint64(i))
	}
	if missed != 10 {
		t.Errorf("%d of %d writes need a read; want 10, the first of each run", missed, 4*writtenRowsMax)
	}
	if _, revision, ok := w.take("seldom"); !ok || revision != 1 {
		t.Error("the row that is seldom written is gone")
	}
}

// TestRowWrittenByAnother: a row that another node has written since is read again, and one that was
// removed does not come back by a change that leaves a missing row alone.
func TestRowWrittenByAnother(t *testing.T) {
	ours := openIndex(t)
	theirs := &Index{kv: ours.kv, ListQuiet: ListQuietDefault}
	if _, err := ours.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive, Title: "of us"}); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Change(t.Context(), "r", func(i *client.RunInfo) { i.Model = "of them" }); err != nil {
		t.Fatal(err)
	}
	if err := ours.Change(t.Context(), "r", func(i *client.RunInfo) { i.Node = "n" }); err != nil {
		t.Fatal(err)
	}
	info, _, err := ours.Get(t.Context(), "r")
	if err != nil || info.Title != "of us" || info.Model != "of them" || info.Node != "n" {
		t.Errorf("%+v, %v", info, err)
	}
	if err := theirs.Remove(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if err := ours.Repair(t.Context(), "r", RowSummary{Place: 9}); err != nil {
		t.Fatal(err)
	}
	if info, ok, err := ours.Get(t.Context(), "r"); ok || err != nil {
		t.Errorf("%+v, %v", info, err)
	}
	ours.Ends.recent.put("r", recentResult{})
	if err := ours.Remove(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if _, ok := ours.Ends.recent.find("r"); ok {
		t.Error("the result of a removed run is there")
	}
}

// TestAdd_DoesNotWriteARowThatExists: another node has added the row since this one has read the list.
func TestAdd_DoesNotWriteARowThatExists(t *testing.T) {
	t.Parallel()
	r := openIndex(t)
	if there, err := r.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunFinished}); err != nil || there.State != client.RunFinished {
		t.Fatalf("%+v, %v", there, err)
	}
	_, before, err := r.readRow(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	there, err := r.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive})
	if err != nil || there.State != client.RunFinished {
		t.Errorf("%+v, %v, want the row that exists", there, err)
	}
	if _, after, err := r.readRow(t.Context(), "r"); err != nil || after != before {
		t.Errorf("the row was written again: revision %d after %d, %v", after, before, err)
	}
}
