package statedir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// TestClaimLogStore: a directory remembers where its logs are, and refuses another place.
func TestClaimLogStore(t *testing.T) {
	old := t.TempDir() // of a release that knew JetStream only
	if err := os.Mkdir(filepath.Join(old, "jetstream"), 0o700); err != nil {
		t.Fatal(err)
	}
	unknown := t.TempDir()
	if err := os.WriteFile(filepath.Join(unknown, "log-store"), []byte("tape\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	local, streams, fresh := t.TempDir(), t.TempDir(), t.TempDir()
	for _, c := range []struct {
		dir, want, have string
		err             string
	}{
		{local, statedir.LogsInFiles, statedir.LogsInFiles, ""},
		{local, "", statedir.LogsInFiles, ""},
		{local, statedir.LogsInJetStream, "", "keeps its logs in local, not in jetstream: leave --log-store"},
		{streams, statedir.LogsInJetStream, statedir.LogsInJetStream, ""},
		{streams, "", statedir.LogsInJetStream, ""},
		{streams, statedir.LogsInFiles, "", "keeps its logs in jetstream, not in local"},
		{fresh, "", statedir.LogsInFiles, ""},
		{old, "", statedir.LogsInJetStream, ""},
		{old, statedir.LogsInFiles, "", "keeps its logs in jetstream, not in local"},
		{t.TempDir(), "tape", "", "no log store is called"},
		{unknown, "", "", "names no log store"},
	} {
		have, err := statedir.ClaimLogStore(c.dir, c.want)
		if have != c.have || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v; want %q, %q", c.want, have, err, c.have, c.err)
		}
		if err != nil && strings.Contains(c.err, "keeps") && !errors.Is(err, statedir.ErrLogStore) {
			t.Errorf("%v is not ErrLogStore", err)
		}
	}
	// An older program refuses a directory whose logs it would look for in vain.
	for dir, want := range map[string]string{local: "2\n", fresh: "2\n", streams: "1\n", old: "1\n"} {
		if err := statedir.WriteForm(dir); err != nil {
			t.Fatal(err)
		}
		if form, err := os.ReadFile(filepath.Join(dir, "form")); err != nil || string(form) != want {
			t.Errorf("form %q, want %q: %v", form, want, err)
		}
	}
}
