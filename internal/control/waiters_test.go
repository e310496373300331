package control

import (
	"context"
	"errors"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// waitingControl is a control service without verbs, whose callers in this process can wait.
func waitingControl(t *testing.T) *Control {
	t.Helper()
	c := newControl(Config{Runs: runindex.Open(bucketsOf(t, startEmbedded(t))), Redact: func(data []byte) []byte { return data }})
	t.Cleanup(c.work.Close)
	return c
}

// TestACallerIsWokenByTheResultOfItsRun: each of several callers of a run gets the result that the actors report,
// and a change of another run wakes none of them.
func TestACallerIsWokenByTheResultOfItsRun(t *testing.T) {
	c := waitingControl(t)
	results := make(chan string, 2)
	for range 2 {
		w := c.cfg.Runs.Ends.NewWaiter("ours")
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
	c.cfg.Runs.Ends.NoteResult("other", event.Result{Text: "not ours"})
	c.cfg.Runs.Ends.NoteState("ours", supervisor.State{Phase: supervisor.Over, Run: supervisor.Opened{Run: "ours"}, Outcome: spec.Outcome{Reason: spec.Completed, Text: "done"}})
	for range 2 {
		if got := <-results; got != "finished done" {
			t.Error(got)
		}
	}
}

// TestTheWaitOfACallerEndsWithItsContextAndWithTheNode: it never hangs.
func TestTheWaitOfACallerEndsWithItsContextAndWithTheNode(t *testing.T) {
	c := waitingControl(t)
	w := c.cfg.Runs.Ends.NewWaiter("ours")
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
