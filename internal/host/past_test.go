package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox"
)

// wordy is an agent with a command whose output is clipped.
func wordy(t *testing.T) (model, agents string) {
	t.Helper()
	agents = t.TempDir()
	text := `---
name: wordy
description: Prints much.
x-troupe:
  tools:
    - name: dump
      description: Prints much.
      command: seq 1 40000
      effect: read
---
Dump.
`
	if err := os.WriteFile(filepath.Join(agents, "wordy.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return script(t, `
agents:
  wordy:
    - calls: [{name: dump}]
    - text: "seen"
`), agents
}

func TestAHostKeepsWholeResults(t *testing.T) {
	noLeaks(t)
	model, agents := wordy(t)
	h := start(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c, tp := connect(t, h), record(t, h)
	run := begin(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
	finished(t, c, run, agent.Completed)
	s, err := gateway.FoldAgent(within(t), h.post, mailbox.At(run, "root"))
	if err != nil {
		t.Fatal(err)
	}
	result := s.History[2].Results[0].Text
	_, ref, ok := strings.Cut(result, "read_result reads any part of it, ref ")
	if !ok {
		t.Fatalf("the result names no reference: %.200s…%s", result, result[len(result)-200:])
	}
	part, size, err := h.blobs.Get(within(t), run, strings.TrimSuffix(ref, "]"), 0, 8)
	if err != nil || string(part) != "1\n2\n3\n4\n" || size < 200_000 {
		t.Errorf("%q of %d bytes: %v", part, size, err)
	}
	_, raw := paged(t, c, run)
	sameEvents(t, tp.whole(t, run, raw), raw)
	told := false
	for _, e := range raw {
		told = told || strings.Contains(e, `"kind":"tool.finished"`) && strings.Contains(e, `"size":`+fmt.Sprint(size)) && strings.Contains(e, `"ref":"`)
	}
	if !told {
		t.Error("no event names the kept result")
	}
}
