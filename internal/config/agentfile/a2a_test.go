package agentfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/a2aclient"
)

// Agents of A2A are read from a settings file, and what is wrong with one is named with its line. A directory's file has none.
func TestReadA2AAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(text string) string {
		file := filepath.Join(dir, "troupe.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := "a2a_agents:\n  reviewer: {url: https://a.example, endpoint: https://b.example/rpc, token_env: TOKEN, token_header: X-Key}\n  local:\n    url: http://127.0.0.1:9/card.json\n"
	got, err := LoadShared(write(good))
	want := []a2aclient.Agent{{Name: "reviewer", URL: "https://a.example", Endpoint: "https://b.example/rpc", TokenEnv: "TOKEN", TokenHeader: "X-Key"}, {Name: "local", URL: "http://127.0.0.1:9/card.json"}}
	if diff := cmp.Diff(want, got.A2AAgents); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := LoadDirShared(dir, "troupe.yaml"); err == nil || !strings.Contains(err.Error(), "write it in your own file") {
		t.Errorf("a directory's file: %v", err)
	}
	for text, want := range map[string]string{
		"a2a_agents: [https://a.example]\n":                                             "troupe.yaml:1: ",
		"a2a_agents:\n  reviewer: https://a.example\n":                                  "a2a_agents.reviewer is",
		"a2a_agents:\n  reviewer: {}\n":                                                 "troupe.yaml:2: agentfile: bad field: a2a_agents.reviewer: it has no url",
		"a2a_agents:\n  reviewer: {ulr: https://a.example}\n":                           "did you mean url?",
		"a2a_agents:\n  reviewer: {url: [x]}\n":                                         "a2a_agents.reviewer.url is a list",
		"a2a_agents:\n  a: {url: https://a.example}\n  b c: {url: https://a.example}\n": "troupe.yaml:3: ",
		"a2a_agents:\n  a: {url: https://a.example}\n  a: {url: https://b.example}\n":   "a2a_agents.a is set twice",
		"a2a_agents:\n  a: {url: http://a.example, token_env: TOKEN}\n":                 "write https://",
		"a2a_agents:\n" + strings.Repeat("  a: {url: https://a.example}\n", 65):         "at most 64 are read",
	} {
		if got, err := LoadShared(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100q: %v %v", text, got.A2AAgents, err)
		}
	}
}
