package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// TestAttackClosedHostLeavesNoProgram closes a node while a command runs that ignores signals.
func TestAttackClosedHostLeavesNoProgram(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, agents, token := t.TempDir(), writeHandAgents(t), fmt.Sprintf("300.3%d3", os.Getpid())
	h := startNode(t, t.TempDir(), func(c *Config) {
		c.Roots, c.Tools = []string{dir, agents}, []agentfile.ToolRule{{Name: "shell", Allow: []string{"*"}}}
	})
	c := connectClient(t, h)
	beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, fmt.Sprintf(shellScript, "trap '' TERM HUP; setsid sleep "+token+" & echo >up; while :; do sleep "+token+"; done"))})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		if _, err := os.Stat(filepath.Join(dir, "up")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the command did not begin")
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && bytes.Contains(line, []byte(token)) {
			t.Errorf("runs on: %s", bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}
