//go:build linux

package shell_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// runShell runs a command in a directory.
func runShell(t *testing.T, cfg shell.Config, command string) tool.Result {
	t.Helper()
	one, err := shell.Tool(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return set.Call(t.Context(), shell.Name, tool.Call{Run: "r", Agent: "a", ID: "1-0", Key: "r.a.1-0", Args: args})
}

func TestAnExitCodeIsAResultAndNoFailure(t *testing.T) {
	cfg := shell.Config{Dir: t.TempDir()}
	for command, want := range map[string]string{
		"echo hi":              "hi\n",
		"printf hi; exit 3":    "hi\n[exit code 3]\n",
		":":                    "[exit code 0, and it printed nothing]\n",
		"kill -9 $$":           "[ended by signal 9]\n",
		"echo $TROUPE_KEY":     "r.a.1-0\n",
		"printf '\\377' | cat": "\uFFFD",
	} {
		if r := runShell(t, cfg, command); r.Error || r.Text != want {
			t.Errorf("%s: %+v", command, r)
		}
	}
	if r := runShell(t, cfg, " "); !r.Error || !strings.Contains(r.Text, "empty") {
		t.Errorf("%+v", r)
	}
}

//behaviour:shows C4
func TestShellTimeoutKillsAndReturnsTheOutput(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{time.Second, 10 * time.Second} {
		r := runShell(t, shell.Config{Dir: t.TempDir(), Timeout: limit}, "echo begun; setsid sleep 300 & sleep 300")
		over := "shell timed out after " + limit.String()
		if r.Error && r.Text == "begun\n"+over {
			return
		}
		if !r.Error || r.Text != over { // a busy machine may not have begun within the short one
			t.Fatalf("%+v", r)
		}
	}
	t.Error("it never tells what was printed")
}

func TestShellOutputIsMaskedAndClipped(t *testing.T) {
	cfg := shell.Config{Dir: t.TempDir()}
	if r := runShell(t, cfg, `echo 'password: "Zx9Qw7Rt5Yu3"'`); r.Text != "password: \"[masked]\"\n" {
		t.Errorf("%+v", r)
	}
	if r := runShell(t, cfg, "echo first; yes | head -c 20000000; echo last"); len(r.Text) > tool.OutputBytesMax || !strings.HasPrefix(r.Text, "first\n") || !strings.HasSuffix(r.Text, "last\n") {
		t.Errorf("%d bytes", len(r.Text))
	}
}

func TestShellReadsGrantedPathsOnly(t *testing.T) {
	lib := t.TempDir()
	if err := os.WriteFile(filepath.Join(lib, "tool"), []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(lib, "tool") + "; echo x > " + filepath.Join(lib, "new") + " || echo no"
	if r := runShell(t, shell.Config{Dir: t.TempDir(), Read: []string{lib}}, command); !strings.HasPrefix(r.Text, "ran\n") || !strings.HasSuffix(r.Text, "no\n") {
		t.Errorf("%+v", r)
	}
	if r := runShell(t, shell.Config{Dir: t.TempDir()}, command); strings.Contains(r.Text, "\nran\n") || strings.HasPrefix(r.Text, "ran\n") {
		t.Errorf("%+v", r)
	}
}

func TestShellIsAnEffect(t *testing.T) {
	one, err := shell.Tool(shell.Config{})
	if err != nil || one.Spec().Class != model.Effect {
		t.Error(err)
	}
}

// Who may write beside the directory must not lead commands elsewhere.
func TestAttackLinkInThePlaceOfTheDirectoryIsNotFollowed(t *testing.T) {
	above, elsewhere := t.TempDir(), t.TempDir()
	dir := filepath.Join(above, "w")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	one, err := shell.Tool(shell.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(one)
	if err != nil {
		t.Fatal(err)
	}
	write := func() tool.Result {
		return set.Call(t.Context(), shell.Name, tool.Call{Run: "r", Agent: "a", ID: "1-0", Key: "k", Args: json.RawMessage(`{"command":"echo x > file"}`)})
	}
	if r := write(); r.Error {
		t.Fatalf("%+v", r)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, dir); err != nil {
		t.Fatal(err)
	}
	if r := write(); !r.Error || !strings.Contains(r.Text, "another one now") {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("written through the link: %v, %v", left, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := write(); r.Error { // it was removed and made anew
		t.Errorf("%+v", r)
	}
	if err := os.Rename(dir, filepath.Join(above, "aside")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(elsewhere, dir); err != nil {
		t.Fatal(err)
	}
	if r := write(); !r.Error || !strings.Contains(r.Text, "another one now") {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("written in a directory that was put there: %v, %v", left, err)
	}
}
