package control

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// TestAttackOwnerOpensARunUnderTheIDOfAnother: two owners open a run under one id at once. The one whose entry comes second
// is refused, and the row of the run stays that of the first: lists and questions go by it.
func TestAttackOwnerOpensARunUnderTheIDOfAnother(t *testing.T) {
	t.Parallel()
	post := memory.New(memory.Config{})
	node, err := actors.Start(t.Context(), actors.Config{Post: post, Model: noModel, Holds: holdsNothing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	opened := func(owner string) supervisor.Opened {
		return supervisor.Opened{Run: "same", Goal: "of " + owner, Root: "a", Definitions: []supervisor.Definition{{Name: "a"}}, Owner: owner}
	}
	c := newParts(&Config{Post: post, Node: node, Runs: runindex.Open(bucketsOf(t, startEmbedded(t))), Build: func(r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
		// alice's request comes to the end after that of bob has seen that there is no such run
		return opened(r.Owner), client.RunAccepted{RunID: r.RunID}, node.Open(context.Background(), opened("alice"))
	}})
	_, err = c.opener.openRun(context.WithValue(t.Context(), ownerKey{}, "bob"), client.RunRequest{RunID: "same", Prompt: "of bob", Owner: "bob"})
	if !refuse.HasCode(err, client.CodeForbidden) {
		t.Errorf("bob has opened a run that is alice's: %v", err)
	}
	if row, ok, err := c.cfg.Runs.Get(t.Context(), "same"); err != nil || ok && row.Owner != "alice" {
		t.Errorf("the row is %+v, %v", row, err)
	}
}

// TestAttackOwnerWritesIntoTheLogOfAnother: of two owners who open a run under one id on one node at once, the second is
// refused before its request is in the log, where the first would read it.
func TestAttackOwnerWritesIntoTheLogOfAnother(t *testing.T) {
	t.Parallel()
	post := memory.New(memory.Config{})
	node, err := actors.Start(t.Context(), actors.Config{Post: post, Model: noModel, Holds: holdsNothing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Stop)
	c := newParts(&Config{Post: post, Node: node, Runs: runindex.Open(bucketsOf(t, startEmbedded(t))), Build: func(r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
		o := supervisor.Opened{Run: r.RunID, Goal: "of " + r.Owner, Root: "a", Definitions: []supervisor.Definition{{Name: "a"}}, Owner: r.Owner}
		return o, client.RunAccepted{RunID: r.RunID}, nil
	}})
	for round := range 20 {
		run, refused := fmt.Sprintf("same%d", round), make(chan error, 2)
		for _, owner := range []string{"alice", "bob"} {
			go func() {
				_, err := c.opener.openRun(context.WithValue(t.Context(), ownerKey{}, owner), client.RunRequest{RunID: run, Prompt: "of " + owner, Owner: owner})
				refused <- err
			}()
		}
		if first, second := <-refused, <-refused; (first == nil) == (second == nil) {
			t.Errorf("%s: %v and %v; want one refused", run, first, second)
		}
		goals := 0
		err := post.Read(t.Context(), mailbox.At(run, mailbox.Super), 0, 0, func(m mailbox.Message) error {
			for _, owner := range []string{"alice", "bob"} {
				goals += bytes.Count(m.Data, []byte("of "+owner))
			}
			return nil
		})
		if err != nil || goals != 1 {
			t.Errorf("%s: the log has %d goals, %v", run, goals, err)
		}
	}
}

// TestAttackOwnerCancelsInTheNameOfAnother: the sender of a cancel is the owner whose credential sent it.
func TestAttackOwnerCancelsInTheNameOfAnother(t *testing.T) {
	t.Parallel()
	post := memory.New(memory.Config{})
	testlog.PutFact(t, post, mailbox.At("r", mailbox.Super), "", supervisor.Opened{Run: "r", Owner: "alice"}, false)
	c := newParts(&Config{Post: post, Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))})
	forged := &client.CancelRequest{RunID: "r", By: "bob"}
	if err := c.owners.checkOwner(context.WithValue(t.Context(), ownerKey{}, "alice"), forged); err != nil || forged.By != "alice" {
		t.Errorf("the cancel of alice is by %q, %v", forged.By, err)
	}
	for by, want := range map[string]string{"": "", "eve": "eve", "the node": "client the node", "e\x1b[31mv\u202ee": "e[31mve"} {
		if got := namedBy(by); got != want {
			t.Errorf("%q is by %q, want %q", by, got, want)
		}
	}
}

// TestAttackLongReasonsFillTheIndex: a reason of 250 KB, which all lists would carry, is refused.
func TestAttackLongReasonsFillTheIndex(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("<", 250_000)
	if _, err := c.canceler.cancelRun(t.Context(), client.CancelRequest{RunID: "r", Request: "c1", Why: long}); !refuse.HasCode(err, client.CodeBad) {
		t.Errorf("a reason of %d bytes: %v", len(long), err)
	}
}
