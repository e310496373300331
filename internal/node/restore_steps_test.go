package node

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// restorable starts a node for run files that wait for a person, and returns the request that answers the question.
func restorable(t *testing.T, n int) (h *Node, c *client.Client, files []runfile.File, r client.RestoreRequest) {
	t.Helper()
	agents := writeAskerAgent(t)
	files = parkedFiles(t, agents, n)
	h = startNode(t, t.TempDir(), func(c *Config) {
		c.Roots, c.Environ = []string{agents}, []string{"SHOP_TOKEN=t0psecret-of-the-shop"}
	})
	return h, connectClient(t, h), files, client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents},
		Answers: []client.AnswerRequest{{Query: "1-0.1", Decision: "text", Text: "A"}}}
}

// TestRestoreGoesOnFromEachEntry: wherever a restore is broken off, the same restore finishes it.
//
//behaviour:shows F5
func TestRestoreGoesOnFromEachEntry(t *testing.T) {
	t.Parallel()
	h, c, files, r := restorable(t, 11)
	for k, f := range files {
		entries := slices.Clone(f.Entries)
		slices.SortStableFunc(entries, func(a, b mailbox.Message) int { return a.Stamp().Compare(b.Stamp()) })
		if k >= len(entries) {
			t.Logf("%d entries, broken off after each", len(entries))
			break
		}
		if err := h.post.Import(testContext(t), nil, entries[:k+1]); err != nil {
			t.Fatal(err)
		}
		if done, err := sendRestore(t, c, f, r); err != nil || done.Existed {
			t.Fatalf("broken off after %d of %d entries: %+v %v", k+1, len(entries), done, err)
		}
		if info := waitFinished(t, c, f.Header.Run, spec.Completed); !strings.HasPrefix(info.Result.Text, "bought: a person answered: A") {
			t.Errorf("broken off after %d entries: %+v", k+1, info.Result)
		}
	}
}

// TestRestoreWithoutItsRow: a restore that was broken off before it listed the run is finished by the same restore.
//
//behaviour:shows F5
func TestRestoreWithoutItsRow(t *testing.T) {
	t.Parallel()
	h, c, files, r := restorable(t, 1)
	f := files[0]
	if err := h.post.Import(testContext(t), nil, f.Entries); err != nil {
		t.Fatal(err)
	}
	super := logsOf(f.Entries, mailbox.Super)
	if _, err := mailbox.Put(testContext(t), h.post, super[0].To, super[0].Data); err != nil {
		t.Fatal(err)
	}
	answer := r.Answers[0]
	r.Answers = nil
	if done, err := sendRestore(t, c, f, r); err != nil || !done.Existed {
		t.Fatalf("%+v %v", done, err)
	}
	answer.RunID = f.Header.Run
	if err := c.Answer(testContext(t), answer); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, f.Header.Run, spec.Completed)
}

// TestRestoreTwiceAtOnce: two restores of one file at the same time restore one run.
//
//behaviour:shows F5
func TestRestoreTwiceAtOnce(t *testing.T) {
	t.Parallel()
	_, c, files, r := restorable(t, 1)
	var group sync.WaitGroup
	replies, errs := make([]client.Restored, 4), make([]error, 4)
	for i := range replies {
		group.Go(func() { replies[i], errs[i] = sendRestore(t, c, files[0], r) })
	}
	group.Wait()
	fresh := 0
	for _, done := range replies {
		if !done.Existed {
			fresh++
		}
	}
	if err := errors.Join(errs...); err != nil || fresh != 1 {
		t.Errorf("%d restores were the first: %v", fresh, err)
	}
	waitFinished(t, c, files[0].Header.Run, spec.Completed)
}

// TestRefusedRestoreLeavesNoUpload: the file of a restore that is refused does not stay in the store.
//
//behaviour:shows F5
func TestRefusedRestoreLeavesNoUpload(t *testing.T) {
	t.Parallel()
	h, c, files, r := restorable(t, 1)
	r.OriginalStopped = false
	if _, err := sendRestore(t, c, files[0], r); codeOf(err) != client.CodeConflict {
		t.Fatal(err)
	}
	js, err := jetstream.New(h.logConn)
	if err != nil {
		t.Fatal(err)
	}
	stores := js.ObjectStoreNames(testContext(t))
	for name := range stores.Name() {
		store, err := js.ObjectStore(testContext(t), name)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := store.List(testContext(t)); !errors.Is(err, jetstream.ErrNoObjectsFound) {
			t.Errorf("%s has %d objects: %v", name, len(list), err)
		}
	}
	if err := stores.Error(); err != nil {
		t.Error(err)
	}
}

// TestAttackRestoredSecret: a secret of the node does not come into its store by a run file.
//
//behaviour:shows F5
func TestAttackRestoredSecret(t *testing.T) {
	t.Parallel()
	_, c, files, r := restorable(t, 1)
	secret := []byte("t0psecret-of-the-shop")
	f := files[0]
	f.Blobs = map[string][]byte{mailbox.BlobRef(secret): secret}
	if _, err := sendRestore(t, c, f, r); codeOf(err) != client.CodeBad || !strings.Contains(err.Error(), "secret of this node") {
		t.Errorf("a blob with a secret: %v", err)
	}
}
