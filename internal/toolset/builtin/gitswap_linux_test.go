package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

// exchangeNames gives each of two names what the other one had.
func (b *testBox) exchangeNames(one, other string) {
	b.t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
		b.t.Error(err)
	}
}

// TestAttackSwappedGitDirectoryIsNotRead: the git directory, or a part of it, is swapped for a link to that of a person, or
// for theirs, between the checks, while refs are read, and before git starts.
func TestAttackSwappedGitDirectoryIsNotRead(t *testing.T) {
	withAndWithoutSandbox(t, func(t *testing.T) {
		v, hash := victimRepo(t)
		b := newRepoBox(t, map[string]string{"a": "x\n"})
		cases := 0
		for _, step := range []struct {
			name string
			at   func(func()) func()
		}{{"when it was found", builtin.WhenFound}, {"when it was checked", builtin.WhenChecked}, {"before git starts", builtin.BeforeGit}} {
			for _, part := range []string{".git", ".git/objects", ".git/refs"} {
				for _, with := range []string{"link", "directory"} {
					if step.name == "when it was found" && part != ".git" && with == "directory" {
						continue // then it is a part of the repository
					}
					if cases++; !isSampled(t, cases) {
						continue
					}
					t.Run(step.name+", "+part+" for a "+with, func(t *testing.T) {
						(&testBox{t: t, dir: b.dir, set: b.set}).swapGit(step.at, part, with, v.dir, hash)
					})
				}
			}
		}
	})
}

func (b *testBox) swapGit(at func(func()) func(), part, with, victim, hash string) {
	t := b.t
	name, other := filepath.Join(b.dir, part), filepath.Join(victim, part)
	if with == "link" {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(other, link); err != nil {
			t.Fatal(err)
		}
		other = link
	}
	for _, call := range [][2]string{{"git_log", `{}`}, {"git_show", `{"rev":"` + hash + `"}`}, {"git_show", `{"rev":"HEAD","path":"secret"}`}, {"git_blame", `{"path":"secret"}`},
		{"git_numstat", `{}`}, {"glob", `{"pattern":"**"}`}} {
		var once sync.Once // git_numstat starts two commands at the same time
		swapped := false
		done := at(func() {
			once.Do(func() {
				swapped = true
				b.exchangeNames(name, other)
			})
		})
		got := b.callTool(call[0], "%s", call[1])
		done()
		if strings.Contains(got, canary) || strings.Contains(got, "secret\n") || strings.Contains(got, "secret\t") {
			t.Errorf("%v told of another repository: %s", call, got)
		}
		if swapped {
			b.exchangeNames(name, other)
		}
		if !swapped && call[0] == "git_log" {
			t.Error("nothing was swapped")
		}
	}
	if got := b.callTool("git_log", `{}`); !strings.Contains(got, "Ann\tfirst") {
		t.Errorf("as it was: %s", got)
	}
}
