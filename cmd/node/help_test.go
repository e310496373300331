package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRecipesOfTheHelp: the first example of `troupe-node --help` starts a node exactly as it is written, and the flags and
// values of all examples are accepted as they are written. The others need directories, servers and keys of their own.
func TestRecipesOfTheHelp(t *testing.T) {
	help, err := command(t, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(help), "\nExamples:\n")
	examples, _, _ = strings.Cut(examples, "\n\n")
	recipes := strings.Split(examples, "\n")
	if len(recipes) < 5 || !strings.HasPrefix(recipes[0], "  troupe-node --root ~/src") {
		t.Fatalf("the examples are %q", recipes)
	}
	for i, recipe := range recipes {
		line := strings.TrimSpace(recipe)
		asWritten := command(t)
		run := exec.Command("sh", "-c", "exec "+line+" --help")
		run.Dir, run.Env = asWritten.Dir, asWritten.Env
		if out, err := run.CombinedOutput(); err != nil || !strings.HasPrefix(line, "troupe-node ") {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if i > 0 {
			continue
		}
		if err := os.Mkdir(filepath.Join(asWritten.Dir, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
		start := exec.Command("sh", "-c", "exec "+line)
		start.Dir, start.Env, start.WaitDelay = asWritten.Dir, asWritten.Env, patience
		if ready := startNode(t, start); !strings.Contains(ready, "127.0.0.1") {
			t.Errorf("the node says %q", ready)
		}
		if err := start.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := exitOf(t, start.Wait()); code != 0 {
			t.Errorf("%s: exit %d\n%s", line, code, start.Stderr)
		}
	}
}
