package follow

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
)

func downWatch(t *testing.T, timeout, patience time.Duration) (*logWatch, time.Time) {
	t.Helper()
	j, now := newLogWatch(patience, timeout), time.Now()

	text := j.applyReport(logReport{node: "a", info: &client.LogHealth{Why: "the disk of /x is full", Remedy: "free some"}}, now)
	if !strings.Contains(text, "the disk of /x is full") || !strings.Contains(text, "free some") {
		t.Errorf("it is told as %q", text)
	}
	return j, now
}

// TestRunThatCannotWriteEndsAtItsTimeLimit: nothing in a log that cannot be written ends
// a run, so the command keeps the limit.
func TestRunThatCannotWriteEndsAtItsTimeLimit(t *testing.T) {
	j, now := downWatch(t, 3*time.Second, time.Hour)
	if err := j.overdue("r", now.Add(30*time.Second)); err != nil {
		t.Errorf("it has its grace: %v", err)
	}
	err := j.overdue("r", now.Add(64*time.Second))
	if f := exit.Explain(err); f.Code != exit.NoNode || !errors.Is(err, errUnwritable) || !strings.Contains(f.Err.Error(), "the disk of /x is full") {
		t.Errorf("it ends with %d: %v", f.Code, f.Err)
	}
}

// A run that waited for a person for hours has used up no working time: the first outage of its log does not end it.
func TestOutageAfterALongWaitHasItsWholePatience(t *testing.T) {
	nowhere, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nowhere.Close() })
	synctest.Test(t, func(t *testing.T) {
		f := New(&console.Console{Out: nowhere, Err: nowhere, Getenv: func(string) string { return "" }}, "r", &interrupt.Signals{}, time.Minute, time.Hour)
		f.Accept(nil)
		<-time.After(5 * time.Hour)
		f.logs.applyReport(logReport{node: "a", info: &client.LogHealth{Why: "the disk is full"}}, time.Now())
		<-time.After(30 * time.Second)
		if err := f.Overdue(); err != nil {
			t.Errorf("it has a minute: %v", err)
		}
		<-time.After(30 * time.Second)
		if err := f.Overdue(); !errors.Is(err, errUnwritable) {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// TestPatienceWithAJournalIsBounded: and it begins anew when the journal was well.
func TestPatienceWithAJournalIsBounded(t *testing.T) {
	j, now := downWatch(t, 0, 10*time.Second)
	if err := j.overdue("r", now.Add(9*time.Second)); err != nil {
		t.Errorf("too early: %v", err)
	}
	if err := j.overdue("r", now.Add(10*time.Second)); err == nil {
		t.Error("it waits for ever")
	}
	if text := j.applyReport(logReport{node: "a", info: nil}, now.Add(11*time.Second)); !strings.Contains(text, "after 11s") {
		t.Errorf("the end is told as %q", text)
	}
	if err := j.overdue("r", now.Add(time.Hour)); err != nil {
		t.Errorf("it can write again: %v", err)
	}
}

// TestAnotherNodesJournalEndsNoRun: a run whose entries come has no part in what
// another node cannot write; and what that node says is ended only by its own word.
func TestAnotherNodesJournalEndsNoRun(t *testing.T) {
	j, now := downWatch(t, 0, 10*time.Second)
	j.applyReport(logReport{node: "b", info: nil}, now.Add(time.Second))
	if j.down == nil {
		t.Error("another node's word ended it")
	}
	if text := j.recordEvent(rootEvent("b"), now.Add(5*time.Second)); text != "" {
		t.Errorf("the run did not wait, and its user reads %q", text)
	}
	if err := j.overdue("r", now.Add(time.Hour)); err != nil {
		t.Errorf("the run goes on: %v", err)
	}
}

// TestEventBeforeTheReportOfItsNode: the node of the run writes again, and the run publishes an
// event before the node reports it: the user reads once that the run continues.
func TestEventBeforeTheReportOfItsNode(t *testing.T) {
	j, now := downWatch(t, 0, time.Minute)
	if text := j.recordEvent(rootEvent("a"), now.Add(time.Second)); text != "" || j.down == nil {
		t.Errorf("an event of before the fault ends it: %q", text)
	}
	if text := j.recordEvent(rootEvent("a"), now.Add(6*time.Second)); !strings.Contains(text, "after 6s: the run continues") {
		t.Errorf("the end is told as %q", text)
	}
	if text := j.applyReport(logReport{node: "a", info: nil}, now.Add(7*time.Second)); text != "" {
		t.Errorf("it is told again: %q", text)
	}
}

// rootEvent is something that the root of a run says on a node.
func rootEvent(node string) (e client.Event) {
	e.Agent, e.Node = "root", node
	return e
}
