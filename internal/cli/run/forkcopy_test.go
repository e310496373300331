package run

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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

	left, err := copyTree(from, to)
	if err != nil || len(left) != 1 || !strings.HasPrefix(left[0], "socket ") {
		t.Fatalf("%q %v", left, err)
	}
	for _, name := range []string{"hard.txt", "absolute", "relative", "sub/a.txt"} {
		must(os.WriteFile(filepath.Join(to, name), []byte("fork"), 0o600))
		if data, err := os.ReadFile(filepath.Join(from, "sub", "a.txt")); err != nil || string(data) != "original" {
			t.Errorf("a write to %s has reached the original: %q %v", name, data, err)
		}
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
	for _, dir := range []string{from, worktree, filepath.Join(place, "exists")} {
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
		"the directory of the run cannot": {filepath.Join(place, "gone"), filepath.Join(place, "b")},
		"no such file or directory":       {from, filepath.Join(place, "no", "such")},
	} {
		if _, err := copyTree(paths[0], paths[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	entries, err := os.ReadDir(place)
	if err != nil || len(entries) != 3 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}
