//go:build unix

package builtin_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/toolset/builtin"
)

// promptly is how long a call may take that waits for nothing, on a machine that does other work.
const promptly = time.Minute

// callPromptly calls a tool and fails the test where the answer is late.
func (b *testBox) callPromptly(name, args string) string {
	b.t.Helper()
	answer := make(chan string, 1)
	go func() { answer <- b.callTool(name, "%s", args) }()
	select {
	case text := <-answer:
		return text
	case <-time.After(promptly):
		b.t.Fatalf("%s %s does not return", name, args)
		return ""
	}
}

func (b *testBox) makePipe(name string) {
	b.t.Helper()
	if err := syscall.Mkfifo(filepath.Join(b.dir, name), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// TestAttackATemporaryFileCannotBePrepared: a command of the run knows the key of a call, and what was known of the
// name of the temporary file followed from it.
func TestAttackATemporaryFileCannotBePrepared(t *testing.T) {
	known := func(name string) string {
		sum := sha256.Sum256([]byte(name + "\x00r.a.1-0"))
		return fmt.Sprintf(".troupe-%x.tmp", sum[:8])
	}
	b := newRepoBox(t, map[string]string{"a": "x\n", "b": "x\n"})
	b.openTools(all)
	if err := os.Symlink(".git/config", filepath.Join(b.dir, known("a"))); err != nil {
		t.Fatal(err)
	}
	before := b.readFile(".git/config")
	b.wantLines(b.callPromptly("edit_file", `{"path":"a","old":"x","new":"[core] fsmonitor = evil"}`), "edited a at line 1, 24 bytes")
	if got := b.readFile(".git/config"); got != before {
		t.Errorf("the settings of git were written: %q", got)
	}
	b.makePipe(known("b"))
	b.wantLines(b.callPromptly("edit_file", `{"path":"b","old":"x","new":"y"}`), "edited b at line 1, 2 bytes")
	if a, b := b.readFile("a"), b.readFile("b"); a != "[core] fsmonitor = evil\n" || b != "y\n" {
		t.Errorf("%q %q", a, b)
	}
}

// TestRetryRemovesTheTemporaryFile: a node that ends between writing and renaming leaves a temporary file.
func TestRetryRemovesTheTemporaryFile(t *testing.T) {
	sum := sha256.Sum256([]byte("a\x00r.a.1-0"))
	b := writableBox(t, map[string]string{fmt.Sprintf(".troupe-%x-0123.tmp", sum[:8]): "half", ".troupe-0-1.tmp": "of another call"}, all)
	b.callTool("write_file", `{"path":"a","content":"whole"}`)
	b.wantLines(b.callTool("list_dir", `{}`), ".troupe-0-1.tmp\t15", "a\t5")
}

// TestAttackAPipeThatTakesAFilesPlaceHoldsNoCallUp exchanges a file and a pipe while calls look and open.
func TestAttackAPipeThatTakesAFilesPlaceHoldsNoCallUp(t *testing.T) {
	b := writableBox(t, map[string]string{"f": "x\n", "real": "x\n"}, builtin.Config{Writable: []string{"**"}})
	b.makePipe("pipe")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for at := func(name string) string { return filepath.Join(b.dir, name) }; ; {
			for _, name := range []string{"pipe", "real"} {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.Link(at(name), at("next"))
				_ = os.Rename(at("next"), at("f"))
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 1000 {
		for _, call := range []string{"edit_file", "write_file"} {
			args := map[string]string{"edit_file": `{"path":"f","old":"none","new":"y"}`, "write_file": `{"path":"f","content":"y\n"}`}[call]
			if got := b.callPromptly(call, args); !strings.HasPrefix(got, "error: ") {
				t.Fatalf("%s: %s", call, got)
			}
		}
	}
}

// TestAttackAHugeLineIsReadInBounds: a sparse file takes no disk, and its line has no end.
func TestAttackAHugeLineIsReadInBounds(t *testing.T) {
	b := writableBox(t, map[string]string{"huge": strings.Repeat("x", 9000), "lines": "one\ntwo\n" + strings.Repeat("x", 9000)}, all)
	for _, name := range []string{"huge", "lines"} {
		if err := os.Truncate(filepath.Join(b.dir, name), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.callPromptly("read_file", `{"path":"huge"}`); !strings.HasPrefix(got, "1\txxx") || !strings.HasSuffix(got, "\n[lines 1-1 of ?]") {
		t.Errorf("%.100s … %q", got, got[max(0, len(got)-40):])
	}
	b.wantLines(b.callPromptly("read_file", `{"path":"lines","limit":2}`), "1\tone", "2\ttwo", "[lines 1-2 of ?]")
	b.wantLines(b.callPromptly("read_file", `{"path":"huge","offset":2}`), "[lines 0-0 of ?]")
	for _, call := range []string{"edit_file", "write_file", "grep"} {
		b.callPromptly(call, `{"path":"huge","old":"x","new":"y","content":"y","pattern":"x"}`)
	}
}

// TestAttackPipesInATreeDoNotDelayASearch: git opens what has one of these names, and waits.
func TestAttackPipesInATreeDoNotDelayASearch(t *testing.T) {
	for _, name := range []string{".gitignore", "sub/.gitignore", "nested/.git/HEAD"} {
		b := newRepoBox(t, map[string]string{"sub/a.go": "package a\n", "nested/.git/objects/x": "", "nested/.git/refs/x": ""})
		b.makePipe(name)
		b.openTools(builtin.Config{})
		if got := b.callPromptly("glob", `{"pattern":"sub/*.go"}`); !strings.HasPrefix(got, "sub/a.go\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The secrets of a directory are read when a run is built and when its tools are made: neither may wait for what has taken
// the place of the directory, nor read the secrets behind a link.
func TestAttackSecretsOfWhatIsNoDirectory(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, ".env"), []byte("DB_PASSWORD=correcthorse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]func(path string) error{
		"a pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) }, "a link": func(path string) error { return os.Symlink(outside, path) },
	} {
		path := filepath.Join(top, "place of "+name)
		if err := place(path); err != nil {
			t.Fatal(err)
		}
		answer := make(chan error, 1)
		go func() {
			_, err := builtin.Secrets(path)
			answer <- err
		}()
		select {
		case err := <-answer:
			if err == nil {
				t.Errorf("%s was read", name)
			}
		case <-time.After(promptly):
			t.Fatalf("%s is waited for", name)
		}
	}
}
