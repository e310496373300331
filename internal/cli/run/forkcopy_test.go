package run

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// copyWhole copies a directory for the run "id".
func copyWhole(ctx context.Context, from, to string, hidden ...string) ([]string, error) {
	c, err := copyTree(ctx, from, to, "id", hidden)
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		return nil, err
	}
	return slices.Concat(c.notes, c.warnings), nil
}

// TestCopySharesNoWrite: no write to a copy reaches the original, by no sort of link, and what cannot be copied is named.
func TestCopySharesNoWrite(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	if real, err := filepath.EvalSymlinks(place); err == nil {
		place = real
	}
	from, to := filepath.Join(place, "from"), filepath.Join(place, "to")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(from, "sub", "empty"), 0o700))
	must(os.WriteFile(filepath.Join(from, "run.sh"), []byte("echo"), 0o755))
	must(os.WriteFile(filepath.Join(from, "sub", "a.txt"), []byte("original"), 0o600))
	must(os.Link(filepath.Join(from, "sub", "a.txt"), filepath.Join(from, "hard.txt")))
	must(os.Symlink(filepath.Join(from, "sub", "a.txt"), filepath.Join(from, "absolute")))
	must(os.Symlink("sub/a.txt", filepath.Join(from, "relative")))
	must(os.Symlink(from+"-other", filepath.Join(from, "elsewhere")))
	listener, err := net.Listen("unix", filepath.Join(from, "socket"))
	must(err)
	defer func() { _ = listener.Close() }()

	must(os.Symlink(from+"/../from/sub/a.txt", filepath.Join(from, "around")))
	must(os.Symlink("../from/sub/a.txt", filepath.Join(from, "back")))
	must(os.Symlink("../from/sub/new.txt", filepath.Join(from, "dangling")))
	must(os.Symlink(place, filepath.Join(place, "alias")))
	must(os.Symlink(filepath.Join(place, "alias", "from", "sub", "a.txt"), filepath.Join(from, "alias")))

	notes, err := copyWhole(t.Context(), from, to)
	if err != nil || len(notes) != 2 || !strings.HasPrefix(notes[0], "not copied: socket ") || !strings.HasPrefix(notes[1], "the link elsewhere leads out") {
		t.Fatalf("%q %v", notes, err)
	}
	for _, name := range []string{"hard.txt", "absolute", "relative", "sub/a.txt", "around", "back", "alias"} {
		must(os.WriteFile(filepath.Join(to, name), []byte("fork"), 0o600))
		if data, err := os.ReadFile(filepath.Join(from, "sub", "a.txt")); err != nil || string(data) != "original" {
			t.Errorf("a write to %s has reached the original: %q %v", name, data, err)
		}
	}
	must(os.WriteFile(filepath.Join(to, "dangling"), []byte("fork"), 0o600))
	if _, err := os.Lstat(filepath.Join(from, "sub", "new.txt")); err == nil {
		t.Error("a write to a link without a file has reached the original")
	}
	if link, err := os.Readlink(filepath.Join(to, "elsewhere")); err != nil || link != from+"-other" {
		t.Errorf("a link that leads elsewhere is %q, %v", link, err)
	}
	info, err := os.Stat(filepath.Join(to, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode of a file is %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(to, "sub", "empty")); err != nil {
		t.Error(err)
	}
}

// TestCopiesThatAreRefused: a directory that cannot be copied without sharing writes is refused, and nothing is left.
func TestCopiesThatAreRefused(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	from, worktree := filepath.Join(place, "from"), filepath.Join(place, "worktree")
	for _, dir := range []string{from, worktree, filepath.Join(place, "exists"), filepath.Join(place, "half"+partialMark+"other")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(worktree, ".git"), []byte("gitdir: /elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, paths := range map[string][2]string{
		"is a worktree of git":            {worktree, filepath.Join(place, "a")},
		"is in the directory of the run":  {from, filepath.Join(from, "below")},
		"exists":                          {from, filepath.Join(place, "exists")},
		"has not been completed":          {from, filepath.Join(place, "half")},
		"the directory of the run cannot": {filepath.Join(place, "gone"), filepath.Join(place, "b")},
		"no such file or directory":       {from, filepath.Join(place, "no", "such")},
	} {
		if _, err := copyWhole(t.Context(), paths[0], paths[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	entries, err := os.ReadDir(place)
	if err != nil || len(entries) != 4 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestCopyHasNothingThatAgentsNeverSee: the state of nodes and the user's settings are left out, whatever path leads to
// them, and are named.
func TestCopyHasNothingThatAgentsNeverSee(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	from, to := filepath.Join(place, "from"), filepath.Join(place, "to")
	for _, name := range []string{"state/node.json", "config/troupe/config.yaml", "config/other/keep", "old/owner.lock", "old/node.json"} {
		writeFile(t, filepath.Join(from, name), "secret")
	}
	if err := os.Symlink(filepath.Join(from, "state"), filepath.Join(place, "link")); err != nil {
		t.Fatal(err)
	}
	notes, err := copyWhole(t.Context(), from, to, filepath.Join(place, "link"), filepath.Join(from, "config", "troupe"), filepath.Join(from, "none"))
	if err != nil || len(notes) != 3 {
		t.Fatalf("%q %v", notes, err)
	}
	for i, name := range []string{"config/troupe", "old", "state"} {
		if _, err := os.Lstat(filepath.Join(to, name)); err == nil || !strings.Contains(notes[i], name+" decides") {
			t.Errorf("%s is in the copy, or is not named: %q", name, notes[i])
		}
	}
	if _, err := os.Stat(filepath.Join(to, "config", "other", "keep")); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"state", "old"} {
		if _, err := copyWhole(t.Context(), filepath.Join(from, dir), filepath.Join(place, "state-fork"), filepath.Join(from, "state")); err == nil || !strings.Contains(err.Error(), "decides what a node executes") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// interruptedContext is canceled when it has been asked some times.
type interruptedContext struct {
	context.Context
	left int
}

func (c *interruptedContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterruptedCopyLeavesNothing: an interrupt at any place ends the copy, and removes it.
func TestInterruptedCopyLeavesNothing(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	from, to := filepath.Join(place, "from"), filepath.Join(place, "to")
	for _, name := range []string{"a", "b/c", "b/d"} {
		writeFile(t, filepath.Join(from, name), "x")
	}
	for asked := 0; ; asked++ {
		_, err := copyWhole(&interruptedContext{t.Context(), asked}, from, to)
		if err == nil {
			if asked < 8 {
				t.Errorf("a copy looks for an interrupt %d times only", asked)
			}
			return
		}
		entries, failed := os.ReadDir(place)
		if !errors.Is(err, context.Canceled) || failed != nil || len(entries) != 1 {
			t.Fatalf("%d: %v, left behind: %v %v", asked, err, entries, failed)
		}
	}
}

// TestUnreadableFilesAreLeftOut: a file and a directory that cannot be read are named, and the rest is copied.
func TestUnreadableFilesAreLeftOut(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	from, to := filepath.Join(place, "from"), filepath.Join(place, "to")
	for _, name := range []string{"closed/a", "file", "kept"} {
		writeFile(t, filepath.Join(from, name), "x")
	}
	for _, name := range []string{"closed", "file"} {
		if err := os.Chmod(filepath.Join(from, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _ = os.Chmod(filepath.Join(from, "closed"), 0o700) }()
	_, canRead := os.ReadFile(filepath.Join(from, "file")) // the superuser can
	notes, err := copyWhole(t.Context(), from, to)
	if err != nil || (canRead == nil) != (len(notes) == 0) || len(notes) > 0 && (len(notes) != 2 || !strings.Contains(notes[0], "closed cannot be read") || !strings.Contains(notes[1], "file cannot be read")) {
		t.Errorf("%q %v", notes, err)
	}
	if _, err := os.Stat(filepath.Join(to, "kept")); err != nil {
		t.Error(err)
	}
}

// TestGitInACopyWritesNowhereElse: what leads git to a repository or a worktree elsewhere is left out.
func TestGitInACopyWritesNowhereElse(t *testing.T) {
	t.Parallel()
	place := t.TempDir()
	from, to := filepath.Join(place, "from"), filepath.Join(place, "to")
	for name, content := range map[string]string{
		".git/config": "[core]\n\tbare = false\n\tworktree = " + from + "\n", ".git/HEAD": "ref: refs/heads/main\n",
		".git/modules/near/config": "[core]\n\tworktree = ../../../near\n", "near/.git": "gitdir: ../.git/modules/near\n",
		"far/.git": "gitdir: " + filepath.Join(place, "repository") + "\n", "out/.git": "gitdir: ../../repository\n", "config": "worktree = /x\n",
	} {
		writeFile(t, filepath.Join(from, name), content)
	}
	writeFile(t, filepath.Join(place, "repository", "HEAD"), "x")
	writeFile(t, filepath.Join(from, "link", "a"), "x")
	if err := os.Symlink("../../repository", filepath.Join(from, "link", ".git")); err != nil {
		t.Fatal(err)
	}
	notes, err := copyWhole(t.Context(), from, to)
	if err != nil || len(notes) != 4 {
		t.Errorf("%q %v", notes, err)
	}
	for name, isCopied := range map[string]bool{".git/config": false, ".git/HEAD": true, ".git/modules/near/config": true, "near/.git": true, "far/.git": false, "out/.git": false, "link/.git": false, "config": true} {
		if _, err := os.Lstat(filepath.Join(to, name)); (err == nil) != isCopied {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBegunCallsAreNamed: of the calls in the logs, those that have begun and have no result.
func TestBegunCallsAreNamed(t *testing.T) {
	t.Parallel()
	var entries []mailbox.Message
	for _, fact := range []interface{ Kind() string }{agent.Started{Call: "1-0"}, agent.Started{Call: "1-1"}, agent.Started{Call: "1-1", Attempt: 2}, agent.Returned{Call: "1-0"}} {
		body, err := mailbox.Marshal(fact)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{Kind: fact.Kind(), Body: body}}})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, mailbox.Message{To: mailbox.At("run", "root"), Data: data})
	}
	if calls := begunCalls(entries); len(calls) != 1 || calls[0] != "call 1-1 of root" {
		t.Errorf("%q", calls)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
