package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/cli/exit"
)

// TestAttackANameWritesNoLineOfItsOwn: an error quotes a file name that an attacker chose.
// The name neither controls the terminal nor looks like a line of the node.
func TestAttackANameWritesNoLineOfItsOwn(t *testing.T) {
	cmd := command(t, "--root", filepath.Join(t.TempDir(), "\x1b]0;taken\x07\u202e\nready nats://127.0.0.1:1"))
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exit.Usage {
		t.Errorf("%v", err)
	}
	if text := string(out); strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Contains(text, "\nready") || !strings.Contains(text, `\x1b]0;taken`) {
		t.Errorf("%q", text)
	}
}
