package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/sandbox"
)

// TestAttackCommandPlantsNoHook: what a command writes in a git directory runs when a person uses git there.
func TestAttackCommandPlantsNoHook(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		git := exec.Command("sh", "-c", `git init -q . && git init -q sub/module && git init -q --bare store && mkdir tree && echo "gitdir: ../store" >tree/.git`)
		git.Dir = b.dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !b.isEnforced(sandbox.Git) {
			if !b.less.Namespaces {
				t.Errorf("git directories are not read-only here: %s", b.runCommand(":").Report)
			}
			return // the report says so, and a person is asked
		}
		b.wantRefused("echo x >.git/hooks/pre-commit", "echo x >>.git/config", "rm .git/HEAD", "mv .git old", "rm -rf .git && mkdir .git", "mkdir -p .git/objects/info/x", "chmod 777 .git",
			"echo x >sub/module/.git/config", "mv sub old", "mv sub/module old", "mv sub/module/.git old", "echo x >store/hooks/post-update", "echo x >store/config",
			"echo 'gitdir: /nowhere' >tree/.git", "mv tree/.git old", "rm tree/.git", "mv tree old", "ln -f x tree/.git", "git config core.fsmonitor ./evil", "cd sub/module && git config core.pager evil")
		if out := b.runCommand("echo x >f && mkdir d && mv f d/ && echo y >sub/module/z && mv sub/module/z sub/ && rm -r d sub/z && git status --short"); out.Exit != 0 || !strings.Contains(string(out.Stdout), "?? sub/") {
			t.Errorf("what belongs to the tree cannot be changed: %d: %s", out.Exit, out.Stdout)
		}
		b.spec.WriteGit = true
		if out := b.runCommand("git config core.editor ed && echo x >.git/hooks/mine && cat .git/hooks/mine"); out.Exit != 0 || string(out.Stdout) != "x\n" {
			t.Errorf("opened, and not written: %s", out.Stdout)
		}
	})
}

// TestGitProtectionReportsItsGaps: a link cannot be pinned, so it is said.
func TestGitProtectionReportsItsGaps(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		if err := os.Symlink("elsewhere", filepath.Join(b.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if b.isEnforced(sandbox.Git) {
			t.Error("a link is said to be protected")
		}
	})
}
