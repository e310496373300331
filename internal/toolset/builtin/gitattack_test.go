//go:build unix

package builtin_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

// canary stands in a repository or file that belongs to a person and lies outside of the directory.
const canary = "canary-of-a-person"

// victimRepo is a repository of a person, and the hash of its one commit.
func victimRepo(t *testing.T) (*testBox, string) {
	v := newRepoBox(t, map[string]string{"secret": canary + "\n"})
	v.commitAll(canary)
	return v, v.runGit("rev-parse", "HEAD")
}

// askGitTools calls each tool that starts git and fails the test if an answer has the canary.
func (b *testBox) askGitTools(hash string) {
	b.t.Helper()
	calls := [][2]string{{"git_log", `{}`}, {"git_show", `{"rev":"HEAD"}`}, {"git_show", `{"rev":"HEAD","path":"secret"}`}, {"git_blame", `{"path":"secret"}`}, {"git_blame", `{"path":"a"}`},
		{"git_numstat", `{}`}, {"glob", `{"pattern":"**"}`}}
	if hash != "HEAD" {
		calls = append(calls, [2]string{"git_show", `{"rev":"` + hash + `"}`}, [2]string{"git_show", `{"rev":"` + hash + `","path":"secret"}`})
	}
	for _, call := range calls {
		if got := b.callTool(call[0], "%s", call[1]); strings.Contains(got, canary) || strings.Contains(got, "secret\n") {
			b.t.Errorf("%v told of another place: %s", call, got)
		}
	}
}

func (b *testBox) putFile(name, text string) {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *testBox) linkFile(to, name string) {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.RemoveAll(file); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Symlink(to, file); err != nil {
		b.t.Fatal(err)
	}
}

// flagAll tries every case in the sandbox, too.
var flagAll = flag.Bool("builtin.all", false, "try all cases of attacks on git also in the sandbox, not one of three")

// isSampled reports whether case n of a test is tried in this part. Most of the time of a case is the
// start of sandboxes, so the sandbox has one of three cases, and the checks alone have all.
func isSampled(t *testing.T, n int) bool {
	return *flagAll || n%3 == 0 || !strings.Contains(t.Name(), "/sandbox")
}

// withAndWithoutSandbox runs a test with the sandbox and without it: each line of defense is to hold alone.
func withAndWithoutSandbox(t *testing.T, test func(t *testing.T)) {
	t.Run("sandbox", test)
	t.Run("checks alone", func(t *testing.T) {
		defer builtin.WithoutSandbox()()
		test(t)
	})
}

func TestAttackForeignGitDirectoryIsNotRead(t *testing.T) {
	withAndWithoutSandbox(t, func(t *testing.T) {
		v, hash := victimRepo(t)
		other := filepath.Join(v.dir, ".git")
		for name, plant := range map[string]func(b *testBox){
			"git file": func(b *testBox) { b.putFile(".git", "gitdir: "+other+"\n") },
			"git link": func(b *testBox) { b.linkFile(other, ".git") },
			"objects link": func(b *testBox) {
				b.runGit("init", "-q")
				b.linkFile(other+"/objects", ".git/objects")
				b.putFile(".git/HEAD", hash+"\n")
			},
			"fanout link": func(b *testBox) {
				b.runGit("init", "-q")
				b.linkFile(other+"/objects/"+hash[:2], ".git/objects/"+hash[:2])
				b.putFile(".git/HEAD", hash+"\n")
			},
			"object link": func(b *testBox) {
				b.runGit("init", "-q")
				if err := os.MkdirAll(b.dir+"/.git/objects/"+hash[:2], 0o755); err != nil {
					t.Fatal(err)
				}
				b.linkFile(other+"/objects/"+hash[:2]+"/"+hash[2:], ".git/objects/"+hash[:2]+"/"+hash[2:])
				b.putFile(".git/HEAD", hash+"\n")
			},
			"refs link":  func(b *testBox) { b.runGit("init", "-q"); b.linkFile(other+"/refs", ".git/refs") },
			"index link": func(b *testBox) { b.runGit("init", "-q"); b.linkFile(other+"/index", ".git/index") },
			"alternates": func(b *testBox) {
				b.runGit("init", "-q")
				b.putFile(".git/objects/info/alternates", other+"/objects\n")
				b.putFile(".git/HEAD", hash+"\n")
			},
			"common directory": func(b *testBox) { b.runGit("init", "-q"); b.putFile(".git/commondir", other+"\n") },
			"own worktree with a common directory elsewhere": func(b *testBox) {
				b.putFile(".git", "gitdir: fake\n")
				b.putFile("fake/gitdir", b.dir+"/.git\n")
				b.putFile("fake/commondir", other+"\n")
				b.putFile("fake/HEAD", hash+"\n")
			},
			"settings":          func(b *testBox) { b.runGit("init", "-q"); b.runGit("config", "core.worktree", v.dir) },
			"included settings": func(b *testBox) { b.runGit("init", "-q"); b.runGit("config", "include.path", other+"/config") },
		} {
			t.Run(name, func(t *testing.T) {
				b := newBox(t, map[string]string{"a": "x\n"})
				plant(b)
				b.askGitTools(hash)
			})
		}
	})
}

// TestAttackSettingsOfARepositoryReadNoFile: git tells the first line of a file it cannot parse, or uses what is in it.
func TestAttackSettingsOfARepositoryReadNoFile(t *testing.T) {
	withAndWithoutSandbox(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(canary+" <a@b>\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		b := newRepoBox(t, map[string]string{"a": "x\n"})
		for n, key := range []string{"blame.ignoreRevsFile", "diff.orderFile", "mailmap.file", "core.attributesFile", "core.excludesFile", "include.path", "gpg.ssh.allowedSignersFile",
			"core.hooksPath", "commit.template", "fetch.fsck.skipList", "fsck.skipList"} {
			if !isSampled(t, n) {
				continue
			}
			b.putFile(".git/config", "[core]\n\trepositoryformatversion = 0\n"+gitSetting(key, file))
			b.askGitTools("HEAD")
			if got := b.callTool("git_blame", `{"path":"a"}`); !strings.Contains(got, "Ann\t2024-05-01\t1\tx\n[lines 1-1 of 1]") {
				t.Errorf("%s: %s", key, got)
			}
		}
		b = newRepoBox(t, map[string]string{"a": "x\n"})
		b.linkFile(file, ".mailmap")
		b.linkFile(file, ".gitattributes")
		b.linkFile(file, ".git/info/grafts")
		b.linkFile(file, ".git/shallow")
		b.linkFile(file, ".git/packed-refs")
		b.askGitTools("HEAD")
	})
}

// gitSetting is a line of git's settings and the head of its section.
func gitSetting(key, value string) string {
	at := strings.LastIndex(key, ".")
	section, sub, ok := strings.Cut(key[:at], ".")
	if ok {
		section += ` "` + sub + `"`
	}
	return "[" + section + "]\n\t" + key[at+1:] + " = " + value + "\n"
}

// TestAttackErrorsOfGitAreNotPassedOn: what git says of a broken repository may be text of the one who broke it.
func TestAttackErrorsOfGitAreNotPassedOn(t *testing.T) {
	withAndWithoutSandbox(t, func(t *testing.T) {
		b := newRepoBox(t, map[string]string{"a": "x\n"})
		b.putFile(".git/config", "["+canary+"\n")
		b.putFile(".git/index", canary)
		b.putFile(".git/refs/heads/"+canary, canary)
		b.askGitTools("HEAD")
		b.putFile(".git/HEAD", "ref: refs/heads/"+canary+"\n")
		b.askGitTools("HEAD")
		b.putFile(".git/HEAD", canary+"\n")
		b.askGitTools("HEAD")
	})
}

// TestAttackGitDirectoryIsNoPipe: the file .git names a pipe that nobody writes to.
func TestAttackGitDirectoryIsNoPipe(t *testing.T) {
	withAndWithoutSandbox(t, func(t *testing.T) {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o644); err != nil {
			t.Fatal(err)
		}
		b := newBox(t, map[string]string{"a": "x\n"})
		b.putFile(".git", "gitdir: "+pipe+"\n")
		begun := time.Now()
		b.askGitTools("HEAD")
		if took := time.Since(begun); took > 30*time.Second {
			t.Error(took)
		}
	})
}

// TestAttackGitWaitsForNoPipe: a file of git that never ends or never comes ends the call all the same.
func TestAttackGitWaitsForNoPipe(t *testing.T) {
	for _, name := range []string{".git/HEAD", ".git/index", ".git/packed-refs", ".git/objects/info/alternates", ".git/objects/pack/pack-1.pack", ".git/commondir"} {
		b := newRepoBox(t, map[string]string{"a": "x\n"})
		file := filepath.Join(b.dir, name)
		_ = os.Remove(file) // it need not be there
		if err := syscall.Mkfifo(file, 0o644); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		b.askGitTools("HEAD")
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}

func TestGitToolsReadALinkedWorktreeAndASubmodule(t *testing.T) {
	withAndWithoutSandbox(t, func(t *testing.T) {
		inner := newRepoBox(t, map[string]string{"x": "inner\n"})
		b := newRepoBox(t, map[string]string{"a": "outer\n"})
		b.runGit("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner.dir, "sub")
		b.commitAll("add sub")
		tree := newBox(t, nil)
		b.runGit("worktree", "add", "-q", tree.dir+"/w")
		b.runGit("pack-refs", "--all")
		for at, want := range map[string]string{tree.dir + "/w": "add sub", b.dir + "/sub": "first", b.dir: "add sub"} {
			in := &testBox{t: t, dir: at}
			in.openTools(builtin.Config{})
			if got := in.callTool("git_log", `{}`); !strings.Contains(got, want+"\n") || strings.Contains(got, "error") {
				t.Errorf("%s: %s", at, got)
			}
			if got := in.callTool("glob", `{"pattern":"**"}`); !strings.Contains(got, " files, ") || strings.Contains(got, ".git/") {
				t.Errorf("%s: %s", at, got)
			}
		}
	})
}

// TestAttackWritesReachNoGitDirectory: not by another spelling of its name, and not that of a submodule elsewhere.
func TestAttackWritesReachNoGitDirectory(t *testing.T) {
	b := newRepoBox(t, map[string]string{"a": "x\n"})
	b.runGit("init", "-q", "--bare", "store")
	b.openTools(builtin.Config{Writable: []string{"**"}})
	for _, name := range []string{".git/hooks/x", ".GIT/hooks/x", ".Git", ".git./hooks/x", ".git /x", ".git::$INDEX_ALLOCATION/x", "git~1/x", "GIT~2/x", ".g\u200cit/x", "sub/.git", "sub/.git/config",
		"store/hooks/x", "store/new", "store/info/x"} {
		if got := b.callTool("write_file", `{"path":%q,"content":"x"}`, name); !strings.HasPrefix(got, "error") {
			t.Errorf("%q: %s", name, got)
		}
	}
	if got := b.callTool("edit_file", `{"path":"store/config","old":"bare = true","new":"x"}`); !strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	if got := b.callTool("write_file", `{"path":"storeroom/.github/x","content":"x"}`); strings.HasPrefix(got, "error") {
		t.Error(got)
	}
}
