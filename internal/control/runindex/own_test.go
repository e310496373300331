package runindex

import (
	"strconv"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
)

// openIndex opens the index of a server of this test alone.
func openIndex(t *testing.T) *Index {
	t.Helper()
	nc := bustest.Connect(t, bustest.StartServer(t), bus.RoleNode)
	b, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return Open(b)
}

// TestARowThatIsNotWrittenYetIsListed: an added row is in lists and found by its id before the index has it, and
// also after it was written.
func TestARowThatIsNotWrittenYetIsListed(t *testing.T) {
	r := openIndex(t)
	r.OwnAlone()
	r.NoteOpened(client.RunInfo{RunID: "ours", State: client.RunLive, Title: "a task"})
	check := func(when string) {
		t.Helper()
		list, err := r.List(t.Context())
		if err != nil || len(list) != 1 || list[0].Title != "a task" {
			t.Errorf("%s: %+v, %v", when, list, err)
		}
		if info, ok, err := r.Get(t.Context(), "ours"); err != nil || !ok || info.Title != "a task" {
			t.Errorf("%s: %+v, %v, %v", when, info, ok, err)
		}
	}
	check("before the write")
	if done, err := r.Record(t.Context(), "ours", Report{}); err != nil || done.Missing {
		t.Errorf("%+v, %v", done, err)
	}
	if _, ok := r.own.findUnwritten("ours"); ok {
		t.Error("the row still counts as unwritten")
	}
	check("after the write")
	if err := r.Remove(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOnlyARunThatIsCertainlyNewIsNotLookedUp: not one with a row, an id of an earlier time or an id of another form, and
// none at all where other nodes write rows.
func TestOnlyARunThatIsCertainlyNewIsNotLookedUp(t *testing.T) {
	var shared, alone Index
	earlier := client.NewID()
	alone.OwnAlone()
	alone.own.since = time.Now().Add(-time.Second) // as if the node had begun before the next ids are made
	fresh, opened := client.NewID(), client.NewID()
	alone.NoteOpened(client.RunInfo{RunID: opened})
	if shared.own.hasNoRow(fresh) {
		t.Error("other nodes may have written its row")
	}
	if !alone.own.hasNoRow(fresh) || alone.own.hasNoRow(opened) || alone.own.hasNoRow("nightly") {
		t.Error(alone.own.hasNoRow(fresh), alone.own.hasNoRow(opened), alone.own.hasNoRow("nightly"))
	}
	alone.own.since = time.Now().Add(time.Second)
	if alone.own.hasNoRow(earlier) {
		t.Error("an id of an earlier time may have a row")
	}
	for range seenMax + 1 {
		alone.own.note("another")
		alone.own.note(client.NewID())
	}
	if n := len(alone.own.seen); n > seenMax {
		t.Errorf("%d runs are remembered", n)
	}
}

// TestTheRowOfAShortRunKeepsItsEnd: the run has ended before its request adds the row.
func TestTheRowOfAShortRunKeepsItsEnd(t *testing.T) {
	r := openIndex(t)
	r.OwnAlone()
	if _, err := r.RecordOrAdd(t.Context(), "ours", Report{Node: "n", Result: &event.Result{Reason: "completed"}}); err != nil {
		t.Fatal(err)
	}
	if r.NoteOpened(client.RunInfo{RunID: "ours", State: client.RunLive, Title: "a task"}) {
		t.Error("the row is there already")
	}
	if info, ok, err := r.Get(t.Context(), "ours"); err != nil || !ok || info.State != client.RunFinished {
		t.Errorf("%+v, %v, %v", info, ok, err)
	}
}

// TestTheRowOfAnOpenedRunNamesItsAgentAndItsOrigin: both are of the first entry of the run, and no report repeats them.
func TestTheRowOfAnOpenedRunNamesItsAgentAndItsOrigin(t *testing.T) {
	r := openIndex(t)
	opened := client.RunInfo{RunID: "ours", State: client.RunLive, Title: "a task", Agent: "clerk", Fork: "theirs@2"}
	if err := r.AddOpened(t.Context(), opened); err != nil {
		t.Fatal(err)
	}
	if info, ok, err := r.Get(t.Context(), "ours"); err != nil || !ok || info.Agent != "clerk" || info.Fork != "theirs@2" {
		t.Errorf("%+v, %v, %v", info, ok, err)
	}
}

// TestNoteOpened_KnowsNoRowOfARunThatWasForgotten: the index forgets which runs have a row between the write of a row, by a
// short run that has ended, and the note of the request that opened the run. The finished row must not be hidden by a live one.
func TestNoteOpened_KnowsNoRowOfARunThatWasForgotten(t *testing.T) {
	var r Index
	r.OwnAlone()
	short, named := client.NewID(), "nightly"
	r.own.note(short)
	r.own.note(named)
	for i := range seenMax {
		r.own.note(strconv.Itoa(i))
	}
	if r.own.isSeen(short) {
		t.Fatal("nothing was forgotten")
	}
	for _, run := range []string{short, named} {
		if r.NoteOpened(client.RunInfo{RunID: run, State: client.RunLive}) {
			t.Errorf("%s may have a row already", run)
		}
	}
	r.own.since = time.Now().Add(-time.Second) // as if the ids were made a second later
	if !r.NoteOpened(client.RunInfo{RunID: client.NewID(), State: client.RunLive}) {
		t.Error("a run whose id was made since has no row")
	}
}

// TestTheRowOfADeletedRunDoesNotComeBack: the run is deleted while its first row is written.
func TestTheRowOfADeletedRunDoesNotComeBack(t *testing.T) {
	r := openIndex(t)
	r.OwnAlone()
	r.NoteOpened(client.RunInfo{RunID: "ours", State: client.RunLive})
	err := r.changeRow(t.Context(), "ours", func(*Row) bool {
		if err := r.Remove(t.Context(), "ours"); err != nil {
			t.Error(err)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestAClosedWaiterIsForgotten: no caller waits for the run any more.
func TestAClosedWaiterIsForgotten(t *testing.T) {
	var r Index
	w, other := r.Ends.NewWaiter("ours"), r.Ends.NewWaiter("ours")
	w.Close()
	if other.Close(); len(r.Ends.waiters.waiting) != 0 {
		t.Errorf("%d runs still have waiters", len(r.Ends.waiters.waiting))
	}
}
