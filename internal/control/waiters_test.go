package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// waitingControl is a control service without verbs, whose callers in this process can wait.
func waitingControl(t *testing.T) *Control {
	t.Helper()
	c := newControl(Config{Runs: OpenRuns(bucketsOf(t, startEmbedded(t))), Redact: func(data []byte) []byte { return data }})
	t.Cleanup(c.work.Close)
	return c
}

// TestACallerIsWokenByTheResultOfItsRun: each of several callers of a run gets the result that the actors report,
// and a change of another run wakes none of them.
func TestACallerIsWokenByTheResultOfItsRun(t *testing.T) {
	c := waitingControl(t)
	results := make(chan string, 2)
	for range 2 {
		w := c.cfg.Runs.NewWaiter("ours")
		go func() {
			state, result, err := c.AwaitRun(t.Context(), w, false)
			w.Close()
			if err != nil || result == nil {
				t.Errorf("%s, %v, %v", state, result, err)
				results <- ""
				return
			}
			results <- string(state) + " " + result.Text
		}()
	}
	c.cfg.Runs.NoteResult("other", event.Result{Text: "not ours"})
	c.cfg.Runs.NoteState("ours", overState("ours", "done"))
	for range 2 {
		if got := <-results; got != "finished done" {
			t.Error(got)
		}
	}
	w := c.cfg.Runs.NewWaiter("ours")
	if w.Close(); len(c.cfg.Runs.waiters.waiting) != 0 {
		t.Errorf("%d runs still have waiters", len(c.cfg.Runs.waiters.waiting))
	}
}

// TestTheWaitOfACallerEndsWithItsContextAndWithTheNode: it never hangs.
func TestTheWaitOfACallerEndsWithItsContextAndWithTheNode(t *testing.T) {
	c := waitingControl(t)
	w := c.cfg.Runs.NewWaiter("ours")
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.AwaitRun(ctx, w, false); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.work.Close()
	if _, _, err := c.AwaitRun(t.Context(), w, false); !refuse.HasCode(err, client.CodeUnavailable) {
		t.Error(err)
	}
	if _, err := c.OpenRun(t.Context(), &client.RunRequest{RunID: "ours", Prompt: "x"}); !refuse.HasCode(err, client.CodeUnavailable) {
		t.Error(err)
	}
}

// TestARowThatIsNotWrittenYetIsListed: an added row is in lists and found by its id before the index has it, and
// also after it was written.
func TestARowThatIsNotWrittenYetIsListed(t *testing.T) {
	r := OpenRuns(bucketsOf(t, startEmbedded(t)))
	r.OwnAlone()
	r.noteOpened(client.RunInfo{RunID: "ours", State: client.RunLive, Title: "a task"})
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
	if done, err := r.Record(t.Context(), "ours", Report{}, false); err != nil || done.Missing {
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
	var shared, alone Runs
	earlier := client.NewID()
	alone.OwnAlone()
	alone.own.since = time.Now().Add(-time.Second) // as if the node had begun before the next ids are made
	fresh, opened := client.NewID(), client.NewID()
	alone.noteOpened(client.RunInfo{RunID: opened})
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

// TestARunWaitsWhileOthersAreOpened: it is not opened if its request ends meanwhile. Where other nodes open runs on the
// same logs, nothing waits.
func TestARunWaitsWhileOthersAreOpened(t *testing.T) {
	c := newControl(Config{}).parts
	for range cap(c.opener.opening) {
		c.opener.opening <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.opener.appendOpened(ctx, supervisor.Opened{Run: "ours"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if c := newControl(Config{Cluster: &Cluster{}}).parts; c.opener.opening != nil {
		t.Error("other nodes open runs, too")
	}
}

// TestTheRowOfAShortRunKeepsItsEnd: the run has ended before its request adds the row.
func TestTheRowOfAShortRunKeepsItsEnd(t *testing.T) {
	r := OpenRuns(bucketsOf(t, startEmbedded(t)))
	r.OwnAlone()
	if _, err := r.Record(t.Context(), "ours", Report{Node: "n", Result: &event.Result{Reason: "completed"}}, true); err != nil {
		t.Fatal(err)
	}
	if r.noteOpened(client.RunInfo{RunID: "ours", State: client.RunLive, Title: "a task"}) {
		t.Error("the row is there already")
	}
	if info, ok, err := r.Get(t.Context(), "ours"); err != nil || !ok || info.State != client.RunFinished {
		t.Errorf("%+v, %v, %v", info, ok, err)
	}
}

// TestTheRowOfADeletedRunDoesNotComeBack: the run is deleted while its first row is written.
func TestTheRowOfADeletedRunDoesNotComeBack(t *testing.T) {
	r := OpenRuns(bucketsOf(t, startEmbedded(t)))
	r.OwnAlone()
	r.noteOpened(client.RunInfo{RunID: "ours", State: client.RunLive})
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
