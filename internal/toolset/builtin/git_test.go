//go:build unix

package builtin_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

func TestGitLogShowsCommitsNewestFirst(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": "1\n"})
	first := b.runGit("rev-parse", "HEAD")[:12]
	b.writeFiles(map[string]string{"b": "2\n"})
	second := b.commitAll("add b\ttab", "--author", "Bo\u00eb <b@c>")
	b.wantLines(b.callTool("git_log", `{}`), second+"\t2024-05-02\tBoë\tadd b\uFFFDtab", first+"\t2024-05-01\tAnn\tfirst", "[2 commits shown of 2]")
	b.wantLines(b.callTool("git_log", `{"limit":1}`), second+"\t2024-05-02\tBoë\tadd b\uFFFDtab", "[1 commits shown of 2]")
	b.wantLines(b.callTool("git_log", `{"path":"a"}`), first+"\t2024-05-01\tAnn\tfirst", "[1 commits shown of 1]")
	for day := 3; day < 6; day++ {
		b.writeFiles(map[string]string{"d/a": fmt.Sprint(day)})
		b.commitAll(fmt.Sprintf("day %d", day))
	}
	last := b.runGit("rev-parse", "HEAD")[:12]
	b.wantLines(b.callTool("git_log", `{"path":"d","limit":1}`), last+"\t2024-05-05\tAnn\tday 5", "[1 commits shown of 3]")
	b.dir += "/d"
	b.openTools(builtin.Config{})
	b.wantLines(b.callTool("git_log", `{"limit":1}`), last+"\t2024-05-05\tAnn\tday 5", "[1 commits shown of 3]")
}

func TestWithoutHistoryGitToolsSayWhy(t *testing.T) {
	for want, b := range map[string]*testBox{"[no commits]": newRepoBox(t, nil), "[not a git repository]": newBox(t, map[string]string{"a": "x"})} {
		for _, call := range [][2]string{{"git_log", `{}`}, {"git_show", `{"rev":"HEAD"}`}, {"git_blame", `{"path":"a"}`}, {"git_numstat", `{}`}} {
			b.wantLines(b.callTool(call[0], "%s", call[1]), want)
		}
	}
}

func TestWithoutGitTheToolsSaySoAndTheFilesAreSearched(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": "hit"})
	t.Setenv("PATH", t.TempDir())
	b.wantLines(b.callTool("git_log", `{}`), "[git is not installed]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "a:1:hit", "[1 matches in 1 files; 1 files searched]")
}

func TestShallowCloneIsReportedAndItsBorderIgnored(t *testing.T) {
	origin := newRepoBox(t, map[string]string{"a": "1\n", "b": "1\n"})
	origin.writeFiles(map[string]string{"a": "2\n"})
	last := origin.commitAll("change a")
	b := newBox(t, nil)
	b.runGit("clone", "-q", "--depth", "1", "file://"+origin.dir, b.dir)
	b.wantLines(b.callTool("git_log", `{}`), last+"\t2024-05-02\tAnn\tchange a", "[1 commits shown of 1; shallow clone]")
	b.wantLines(b.callTool("git_numstat", `{}`), "# files", "# authors", "1\tAnn", "# large commits", "[1 commits; shallow clone]")
}

func TestGitShowCountsFilesOrShowsAPatch(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a.txt": "1\n2\n", "old": "same\ncontent\nhere\n"})
	b.runGit("mv", "old", "new")
	b.writeFiles(map[string]string{"a.txt": "1\nx\ny\n", "bin": "\x00\x01"})
	hash := b.commitAll("second")
	full := b.runGit("rev-parse", "HEAD")
	head := []string{"commit " + full, "author Ann", "date 2024-05-02", "subject second"}
	b.wantLines(b.callTool("git_show", `{"rev":%q}`, hash), append(head, "2\t1\ta.txt", "-\t-\tbin", "0\t0\tnew", "[3 files, +2 -1]")...)
	got := b.callTool("git_show", `{"rev":"main","path":"a.txt"}`)
	if !strings.HasPrefix(got, strings.Join(head, "\n")+"\ndiff --git a/a.txt b/a.txt\n") || !strings.HasSuffix(got, "\n@@ -1,2 +1,3 @@\n 1\n-2\n+x\n+y\n") {
		t.Error(got)
	}
	b.wantLines(b.callTool("git_show", `{"rev":"nope"}`), "error: no commit nope")
	for _, rev := range []string{"--output=x", "-p", "a..b", "a b", "HEAD:a.txt", ":/first", "@{u}|x", ""} {
		if got := b.callTool("git_show", `{"rev":%q}`, rev); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%q: %s", rev, got)
		}
	}
}

func TestALongPatchIsClipped(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": strings.Repeat("line of text\n", 20_000)})
	got := b.callTool("git_show", `{"rev":"HEAD","path":"a"}`)
	if !strings.HasSuffix(got, " bytes]") || !strings.Contains(got, "\n[patch clipped: 280") || len(got) > 50<<10 {
		t.Errorf("%d bytes, ends in %s", len(got), got[len(got)-60:])
	}
}

func TestGitBlameNamesWhoChangedEachLine(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": "one\ntwo\nthree\n"})
	first := b.runGit("rev-parse", "HEAD")[:12]
	b.writeFiles(map[string]string{"a": "one\nTWO\nthree\n"})
	second := b.commitAll("louder", "--author", "Bo <b@c>")
	b.wantLines(b.callTool("git_blame", `{"path":"a"}`), first+"\tAnn\t2024-05-01\t1\tone", second+"\tBo\t2024-05-02\t2\tTWO", first+"\tAnn\t2024-05-01\t3\tthree", "[lines 1-3 of 3]")
	b.wantLines(b.callTool("git_blame", `{"path":"a","from":2,"to":99}`), second+"\tBo\t2024-05-02\t2\tTWO", first+"\tAnn\t2024-05-01\t3\tthree", "[lines 2-3 of 3]")
	b.wantLines(b.callTool("git_blame", `{"path":"new"}`), "error: new is not a file of the last commit")
}

func TestGitNumstatFindsHotFilesAuthorsAndLargeCommits(t *testing.T) {
	b := newRepoBox(t, map[string]string{"hot": "1\n", "cold": "1\n", "gone": "1\n"})
	first := b.runGit("rev-parse", "HEAD")[:12]
	b.writeFiles(map[string]string{"hot": "2\n3\n"})
	if err := os.Remove(filepath.Join(b.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	second := b.commitAll("heat", "--author", "Bo <b@c>")
	b.runGit("checkout", "-q", "-b", "side", "HEAD~1")
	b.writeFiles(map[string]string{"side": "s\n"})
	side := b.commitAll("side")
	b.runGit("checkout", "-q", "main")
	b.runGit("merge", "-q", "--no-edit", "side")
	b.wantLines(b.callTool("git_numstat", `{}`), "# files", "2\t3\t1\t2\thot", "1\t1\t0\t1\tcold", "1\t1\t0\t1\tside", "# authors", "2\tAnn", "1\tBo", "# large commits",
		second+"\t2024-05-02\tBo\t2\t2\t2\theat", first+"\t2024-05-01\tAnn\t3\t0\t3\tfirst", side+"\t2024-05-03\tAnn\t1\t0\t1\tside", "[3 commits]")
	if all, inTwoParts := b.callTool("git_numstat", `{}`), b.callTool("git_numstat", `{"limit":3}`); inTwoParts != all {
		t.Errorf("3 commits read in two parts: %s, want %s", inTwoParts, all)
	}
	b.wantLines(b.callTool("git_numstat", `{"limit":1}`), "# files", "1\t1\t0\t1\tside", "# authors", "1\tAnn", "# large commits", side+"\t2024-05-03\tAnn\t1\t0\t1\tside", "[1 commits]")
}

func TestInAPartOfARepositoryOnlyThatPartIsSeen(t *testing.T) {
	b := newRepoBox(t, map[string]string{"part/a": "hit\n", "other": "hit\n"})
	b.writeFiles(map[string]string{"other": "hit hit\n"})
	b.commitAll("other only")
	b.dir += "/part"
	b.openTools(builtin.Config{})
	first := b.runGit("rev-parse", "HEAD~1")[:12]
	b.wantLines(b.callTool("git_log", `{}`), first+"\t2024-05-01\tAnn\tfirst", "[1 commits shown of 1]")
	b.wantLines(b.callTool("git_numstat", `{}`), "# files", "1\t1\t0\t1\ta", "# authors", "1\tAnn", "# large commits", first+"\t2024-05-01\tAnn\t1\t0\t1\tfirst", "[1 commits]")
	b.wantLines(b.callTool("git_blame", `{"path":"a"}`), first+"\tAnn\t2024-05-01\t1\thit", "[lines 1-1 of 1]")
	b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "a:1:hit", "[1 matches in 1 files; 1 files searched]")
	if got := b.callTool("git_show", `{"rev":"HEAD"}`); !strings.HasSuffix(got, "subject other only\n[0 files, +0 -0]") {
		t.Error(got)
	}
}

func TestSubmodulesAreNotEnteredAlsoBrokenOnes(t *testing.T) {
	inner := newRepoBox(t, map[string]string{"x": "hit\n"})
	b := newRepoBox(t, map[string]string{"a": "hit\n"})
	b.runGit("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.dir, "sub")
	b.commitAll("add sub")
	check := func() {
		t.Helper()
		b.wantLines(b.callTool("grep", `{"pattern":"hit"}`), "a:1:hit", "[1 matches in 1 files; 2 files searched]")
		if got := b.callTool("git_show", `{"rev":"HEAD"}`); !strings.Contains(got, "3\t0\t.gitmodules\n") {
			t.Error(got)
		}
		if got := b.callTool("git_numstat", `{}`); !strings.HasSuffix(got, "[2 commits]") {
			t.Error(got)
		}
	}
	check()
	b.writeFiles(map[string]string{"sub/.git": "gitdir: /nowhere/at/all\n"})
	check()
}

// TestARepositoryCannotRunPrograms sets every option known to run a program
// when somebody merely looks at a repository.
func TestARepositoryCannotRunPrograms(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a.txt": "hit\n", ".gitattributes": "* diff=evil filter=evil\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(b.dir, ".git", "evil.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >>"+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(b.dir, ".git", "hooks", "post-index-change")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(script, hook); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`[core]
	fsmonitor = %[1]s
	pager = %[1]s
	sshCommand = %[1]s
	editor = %[1]s
	askPass = %[1]s
	alternateRefsCommand = %[1]s
[diff]
	external = %[1]s
[diff "evil"]
	command = %[1]s
	textconv = %[1]s
[filter "evil"]
	clean = %[1]s
	smudge = %[1]s
	process = %[1]s
[log]
	showSignature = true
[gpg]
	program = %[1]s
[pager]
	log = %[1]s
	show = %[1]s
	blame = %[1]s
[alias]
	log = !%[1]s
[credential]
	helper = %[1]s
`, script)
	f, err := os.OpenFile(filepath.Join(b.dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(config); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b.writeFiles(map[string]string{"a.txt": "hit changed\n"})
	for _, call := range [][2]string{{"git_log", `{}`}, {"git_log", `{"path":"a.txt"}`}, {"git_show", `{"rev":"HEAD"}`}, {"git_show", `{"rev":"HEAD","path":"a.txt"}`},
		{"git_blame", `{"path":"a.txt"}`}, {"git_numstat", `{}`}, {"grep", `{"pattern":"hit"}`}, {"glob", `{"pattern":"**"}`}} {
		if got := b.callTool(call[0], "%s", call[1]); strings.HasPrefix(got, "error") {
			t.Errorf("%v: %s", call, got)
		}
	}
	if data, err := os.ReadFile(ran); err == nil {
		t.Errorf("the repository ran:\n%s", data)
	}
}

// A repository may lack objects and say where to fetch them, by a command; git
// that does not know GIT_NO_LAZY_FETCH does so when they are read.
func TestARepositoryThatLacksObjectsFetchesNone(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a.txt": "one\n"})
	blob := b.runGit("rev-parse", "HEAD:a.txt")
	mark := filepath.Join(t.TempDir(), "ran")
	for _, c := range [][2]string{{"core.repositoryformatversion", "1"}, {"extensions.partialClone", "origin"}, {"remote.origin.promisor", "true"},
		{"remote.origin.url", "ext::touch " + mark}, {"protocol.ext.allow", "always"}} {
		b.runGit("config", c[0], c[1])
	}
	if err := os.Remove(filepath.Join(b.dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "git"), []byte("#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec "+real+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", old+string(filepath.ListSeparator)+os.Getenv("PATH"))
	b.callTool("git_show", `{"rev":"HEAD","path":"a.txt"}`)
	b.callTool("git_blame", `{"path":"a.txt"}`)
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command of the repository ran")
	}
}

func TestEnvironmentCannotRedirectGit(t *testing.T) {
	other := newRepoBox(t, map[string]string{"secret": "x\n"})
	other.commitAll("of the other")
	b := newRepoBox(t, map[string]string{"a": "x\n"})
	t.Setenv("GIT_DIR", other.dir+"/.git")
	t.Setenv("GIT_WORK_TREE", other.dir)
	if got := b.callTool("git_log", `{}`); strings.Contains(got, "other") || !strings.Contains(got, "first") {
		t.Error(got)
	}
}
