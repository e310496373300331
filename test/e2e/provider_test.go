//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/test/mockprovider"
)

// The fixtures of a run: the root looks and delegates twice in one reply, each
// child looks twice in one reply, and all answer.
const delegation = `{"fixtures": [
 {"match": {"systemMessage": "You investigate a directory", "hasToolResult": false},
  "response": {"content": "I ask two others.", "toolCalls": [
    {"name": "list_dir", "arguments": {"path": "."}},
    {"name": "delegate", "arguments": {"agent": "surveyor", "task": "look at the first half"}},
    {"name": "delegate", "arguments": {"agent": "surveyor", "task": "look at the second half"}}],
   "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}}},
 {"match": {"systemMessage": "You investigate a directory", "hasToolResult": true},
  "response": {"content": "Both halves were seen, and nothing is wrong with either of them.",
   "usage": {"prompt_tokens": 1200, "completion_tokens": 20, "total_tokens": 1220}}},
 {"match": {"systemMessage": "Say what is in this folder", "hasToolResult": false},
  "response": {"toolCalls": [
    {"name": "list_dir", "arguments": {"path": "."}},
    {"name": "read_file", "arguments": {"path": "a.txt"}}],
   "usage": {"prompt_tokens": 500, "completion_tokens": 30, "total_tokens": 530}}},
 {"match": {"systemMessage": "Say what is in this folder", "hasToolResult": true},
  "response": {"content": "I saw a.txt.", "usage": {"prompt_tokens": 600, "completion_tokens": 10, "total_tokens": 610}}}
]}`

// A streamed run with parallel tool calls and delegation, over the wire format
// of each provider, with a mock that nobody here wrote; its journal is the judge.
func TestARunOverTheWireOfEachProvider(t *testing.T) {
	troupe := buildTroupe(t)
	for provider, env := range map[string]func(*mockprovider.MockServer) string{
		"anthropic": func(m *mockprovider.MockServer) string { return "ANTHROPIC_BASE_URL=" + m.URL },
		"openai":    func(m *mockprovider.MockServer) string { return "OPENAI_BASE_URL=" + m.URL + "/v1" },
	} {
		t.Run(provider, func(t *testing.T) {
			m, err := mockprovider.Start(t.Context(), mockprovider.Config{Fixtures: []byte(delegation), Dir: t.TempDir(), Log: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one line\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(troupe, "run", "--dir", dir, "--store-dir", t.TempDir(), "-m", provider+"/m-1",
				"--agent", "coordinator", "--max-tokens", "200000", "-o", "stream-json", "survey this")
			cmd.Env = append(os.Environ(), env(m), "ANTHROPIC_API_KEY=none", "OPENAI_API_KEY=none", "NATS_URL=", "NATS_CONTEXT=")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			checkStream(t, lines)
			checkJournal(t, m)
		})
	}
}

// checkStream: deltas come before the message they belong to, and the last
// line is the result.
func checkStream(t *testing.T, lines []string) {
	t.Helper()
	var result event.Result
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
		t.Fatal(err)
	}
	want := int64(960 + 1220 + 2*(530+610))
	if result.Subtype != "success" || len(result.Agents) != 3 || result.Turns != 6 || result.Budget.Used != want || result.Budget.Reserved != 0 {
		t.Errorf("result: %+v, want 3 agents, 6 turns, %d tokens", result, want)
	}
	delta, message := -1, -1
	for i, line := range lines[:len(lines)-1] {
		var e struct{ Kind, Agent string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if e.Agent == "root" && e.Kind == event.KindMessageDelta && delta < 0 {
			delta = i
		}
		if e.Agent == "root" && e.Kind == event.KindMessageAssistant && message < 0 {
			message = i
		}
	}
	if delta < 0 || message < delta {
		t.Errorf("the first delta is line %d, its message line %d", delta, message)
	}
}

// checkJournal: one request for each lease, and in each of them every call has
// its one result.
func checkJournal(t *testing.T, m *mockprovider.MockServer) {
	t.Helper()
	entries, err := m.Journal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 6 {
		t.Errorf("the provider saw %d requests, want 6: one a turn", len(entries))
	}
	results := 0
	for i, e := range entries {
		if !e.Body.Stream {
			t.Errorf("request %d is not streamed", i)
		}
		open := map[string]bool{}
		for _, message := range e.Body.Messages {
			for _, c := range message.ToolCalls {
				open[c.ID] = true
			}
			if message.Role == "tool" {
				if !open[message.ToolCallID] {
					t.Errorf("request %d: a result for %q, which is not open", i, message.ToolCallID)
				}
				delete(open, message.ToolCallID)
				results++
			}
		}
		if len(open) > 0 {
			t.Errorf("request %d: calls without results: %v", i, open)
		}
	}
	if results != 3+2+2 {
		t.Errorf("the provider saw %d results, want 7", results)
	}
}
