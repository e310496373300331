package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/sandbox"
	"github.com/troupe-run/troupe/internal/workdir"
)

// swappedBox is a directory to run commands in, and a link beside it to one that is somebody else's.
func swappedBox(t *testing.T) (b *testBox, link, victim string) {
	t.Helper()
	above := t.TempDir()
	b = &testBox{t: t, dir: filepath.Join(above, "w")}
	link, victim = filepath.Join(above, "link"), filepath.Join(above, "victim")
	for _, dir := range []string{b.dir, victim} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(victim, "secret"), []byte("canary-of-a-person"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	return b, link, victim
}

// exchangeNames gives each of two names what the other one had.
func exchangeNames(one, other string) error {
	return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
}

func (b *testBox) wantUntouched(victim string, out sandbox.Output) {
	b.t.Helper()
	if left, err := os.ReadDir(victim); err != nil || len(left) != 1 {
		b.t.Errorf("it wrote elsewhere: %v %v", left, err)
	}
	if string(out.Stdout) == "canary-of-a-person" {
		b.t.Error("it read elsewhere")
	}
}

// TestAttackCommandStartsInNoDirectorySwappedBefore: the name leads elsewhere once the directory was checked.
func TestAttackCommandStartsInNoDirectorySwappedBefore(t *testing.T) {
	for name, less := range systems {
		for _, with := range []string{"a link", "another directory"} {
			t.Run(name+", "+with, func(t *testing.T) {
				b, other, victim := swappedBox(t)
				b.less = less
				if with != "a link" {
					other = victim
				}
				defer sandbox.BeforeStart(func() {
					if err := exchangeNames(b.dir, other); err != nil {
						t.Error(err)
					}
				})()
				out, err := b.runIn(t.Context(), "cat secret; echo x > file")
				if with != "a link" {
					victim = b.dir // where it is now
				}
				b.wantUntouched(victim, out)
				if !errors.Is(err, workdir.ErrReplaced) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// swaps is how many commands TestAttackCommandsRunInNoDirectorySwappedMeanwhile runs on each system.
const swaps = 40

// TestAttackCommandsRunInNoDirectorySwappedMeanwhile: commands run in the directory, or not at all.
func TestAttackCommandsRunInNoDirectorySwappedMeanwhile(t *testing.T) {
	for name, less := range systems {
		t.Run(name, func(t *testing.T) {
			b, link, victim := swappedBox(t)
			b.less = less
			done := make(chan struct{})
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						_ = exchangeNames(b.dir, link)
					}
				}
			})
			ran := 0
			for range swaps {
				out, err := b.runIn(t.Context(), "cat secret; echo x > file")
				b.wantUntouched(victim, out)
				if err == nil {
					ran++
				}
			}
			close(done)
			swapper.Wait()
			t.Logf("%d of %d commands ran", ran, swaps)
		})
	}
}
