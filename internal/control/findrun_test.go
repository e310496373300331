package control

import (
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// An id is taken by a run with a row. The id of a run that was deleted, or is being deleted, is refused as such, for a new
// run, for what is sent ahead of one, and for a dry run.
func TestIDsThatAreTaken(t *testing.T) {
	t.Parallel()
	logs, index := memory.New(memory.Config{}), runindex.Open(bucketsOf(t, startEmbedded(t)))
	c := newParts(&Config{Post: logs, Runs: index})
	ids := map[string]string{}
	for _, name := range []string{"free", "listed", "removing", "deleted"} {
		ids[name] = client.NewID()
	}
	for _, name := range []string{"listed", "removing"} {
		if _, err := index.Add(t.Context(), client.RunInfo{RunID: ids[name], State: client.RunLive}); err != nil {
			t.Fatal(err)
		}
	}
	if err := index.MarkRemoving(t.Context(), ids["removing"]); err != nil {
		t.Fatal(err)
	}
	super := mailbox.At(ids["deleted"], mailbox.Super)
	tombstone, err := activation.Tombstone(super)
	if err == nil {
		_, err = mailbox.Put(t.Context(), logs, super, tombstone)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ taken, gone bool }{"free": {}, "listed": {taken: true}, "removing": {gone: true}, "deleted": {gone: true}} {
		_, taken, err := c.lookup.findTaken(t.Context(), ids[name])
		if taken != want.taken || refuse.IsGone(err) != want.gone || err != nil && !want.gone {
			t.Errorf("%s: taken %t, %v", name, taken, err)
		}
		ahead := c.admission.checkUnopened(t.Context(), ids[name])
		if refuse.IsGone(ahead) != want.gone || refuse.HasCode(ahead, client.CodeConflict) != want.taken {
			t.Errorf("%s: what is sent ahead: %v", name, ahead)
		}
		if want.taken || want.gone {
			_, dry := c.opener.openRun(t.Context(), client.RunRequest{RunID: ids[name], Prompt: "hello", DryRun: true})
			if refuse.IsGone(dry) != want.gone || refuse.HasCode(dry, client.CodeConflict) != want.taken {
				t.Errorf("%s: a dry run: %v", name, dry)
			}
		}
	}
}
