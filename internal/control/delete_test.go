package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// The log of a run whose supervisor was given up never says that the run is over: only its
// row does. Such a run can be deleted; a run that is live according to its row cannot.
//
//behaviour:shows G7
func TestRunWithAGivenUpSupervisorCanBeDeleted(t *testing.T) {
	post := memory.New(memory.Config{})
	at := mailbox.At("r", mailbox.Super)
	body, err := mailbox.Marshal(supervisor.Opened{Run: "r", Goal: "do it", Root: "lead", Definitions: []supervisor.Definition{{Name: "lead"}}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "q", Kind: supervisor.Opened{}.Kind(), Body: body}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mailbox.Put(t.Context(), post, at, data); err != nil {
		t.Fatal(err)
	}
	c := newParts(&Config{Post: post})
	if _, err := c.remover.awaitClosedLogs(t.Context(), "r", client.RunLive); !refuse.HasCode(err, client.CodeConflict) {
		t.Errorf("a live run: %v", err)
	}
	ends, err := c.remover.awaitClosedLogs(t.Context(), "r", client.RunFinished)
	if err != nil || ends[at] == nil {
		t.Fatalf("a run that was given up: %v", err)
	}
	if err := purgeToTombstone(t.Context(), c.cfg.Post, at, ends[at]); err != nil {
		t.Fatal(err)
	}
	if gone, err := runlog.IsDeleted(t.Context(), post, "r"); err != nil || !gone {
		t.Errorf("after the delete: buried %t, %v", gone, err)
	}
}

// A message that comes after the end of a log goes with the rest, and so does what nobody can read.
func TestDeleteRemovesWhatCameAfterTheEndOfALog(t *testing.T) {
	post := memory.New(memory.Config{})
	c := newParts(&Config{Post: post})
	at := mailbox.At("r", "root")
	testlog.PutFact(t, post, at, "", agent.Submitted{}, false)
	end, err := activation.Tombstone(at)
	if err == nil {
		_, err = mailbox.Put(t.Context(), post, at, end)
	}
	if err != nil {
		t.Fatal(err)
	}
	testlog.PutFact(t, post, at, mailbox.At("r", mailbox.Super), agent.Canceled{}, false)
	testlog.PutFact(t, post, at, "", agent.Submitted{}, true)
	for _, what := range []string{"the log", "the deleted log"} {
		ends, err := readLogStatuses(t.Context(), c.cfg.Post, "r")
		if err == nil {
			err = purgeToTombstone(t.Context(), c.cfg.Post, at, ends[at])
		}
		if err != nil {
			t.Fatal(err)
		}
		if counts, err := post.Entries(t.Context(), "r"); err != nil || len(counts) != 1 || counts[at] != 1 {
			t.Errorf("%s: %v entries are left, %v", what, counts, err)
		}
		if _, gone, err := runlog.ReadFirstEntry(t.Context(), post, at); err != nil || !gone {
			t.Errorf("%s: it begins with its tombstone: %t, %v", what, gone, err)
		}
		testlog.PutFact(t, post, at, mailbox.At("r", mailbox.Super), agent.Canceled{}, false)
	}
}

// A node of an older release cannot read the state of a run of a newer one. It must assume
// that the run is live, and not that it was never opened or is over.
func TestAttackDeleteOfALiveRunOfANewerReleaseIsRefused(t *testing.T) {
	super, root := mailbox.At("r", mailbox.Super), mailbox.At("r", "root")
	for name, fill := range map[string]func(mailbox.Store){
		"its first entry is newer": func(post mailbox.Store) {
			testlog.PutFact(t, post, super, "", supervisor.Opened{Run: "r"}, true)
		},
		"a message follows": func(post mailbox.Store) { // which ends a run that was never opened
			testlog.PutFact(t, post, super, "", supervisor.Opened{Run: "r"}, true)
			testlog.PutFact(t, post, super, root, agent.Reserve{}, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			post := memory.New(memory.Config{})
			fill(post)
			node, err := actors.Start(t.Context(), actors.Config{Post: post, Model: noModel, Holds: holdsNothing})
			if err != nil {
				t.Fatal(err)
			}
			defer node.Stop()
			c := newParts(&Config{Post: post, Node: node})
			for _, row := range []client.RunState{client.RunLive, client.RunQueued, client.RunParked, ""} {
				if _, err := c.remover.awaitClosedLogs(t.Context(), "r", row); !refuse.IsNewer(err) {
					t.Errorf("a run that is %q by its row: %v", row, err)
				}
			}
			if ends, err := c.remover.awaitClosedLogs(t.Context(), "r", client.RunFinished); err != nil || ends[super] == nil {
				t.Errorf("a run that has ended by its row: %v", err)
			}
		})
	}
}

func noModel(string) (model.Client, string, error) { return nil, "", errors.New("no model here") }

func holdsNothing(mailbox.Address) (uint64, bool) { return 0, false }

// countingStore counts how often a run is read.
type countingStore struct {
	mailbox.Store
	reads *int
}

func (c countingStore) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	*c.reads++
	return c.Store.ReadRun(ctx, run, each)
}

// A look at whether a run has closed its logs reads all of them, so looks become rare.
func TestDeletePollsWithABackoff(t *testing.T) {
	const patience, looksMax = 600 * time.Millisecond, 8
	c, looks := workingRun(t), 0
	testlog.PutFact(t, c.cfg.Post, mailbox.At("r", mailbox.Super), "", agent.Canceled{}, false) // it is over, and not closed
	c.cfg.Post = countingStore{c.cfg.Post, &looks}
	ctx, end := context.WithTimeout(t.Context(), patience)
	defer end()
	if _, err := c.remover.awaitClosedLogs(ctx, "r", client.RunLive); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if looks > looksMax {
		t.Errorf("%d looks in %v, want %d at most", looks, patience, looksMax)
	}
}
