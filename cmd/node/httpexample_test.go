package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// The body that docs/http.md shows for POST /api/v1/runs, as a shell makes it of the line, starts a run in the directory
// of the shell; the path after it answers with the result.
func TestNodeTakesTheRunOfTheDocument(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(docs), "/api/v1/runs -d ")
	argument, rest, _ := strings.Cut(rest, "\n")
	_, rest, _ = strings.Cut(rest, "'http://127.0.0.1:8420")
	resultPath, _, isFound := strings.Cut(rest, "'\n")
	if !isFound {
		t.Fatal("docs/http.md has no example")
	}
	state, dir := t.TempDir(), t.TempDir()
	shell := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+argument)
	shell.Dir = dir
	body, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	var ready struct {
		HTTP string `json:"http"`
	}
	line := startNode(t, command(t, "--store-dir", state, "--nats-port", "-1", "--durability", "lazy", "-o", "json", "--http", "127.0.0.1:0", "--root", dir, "-m", "builtin/scout"))
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(state, "http.token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, ready.HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		r.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		raw, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(raw)
	}
	status, text := ask("POST", "/api/v1/runs", string(body))
	var accepted client.RunAccepted
	if err := json.Unmarshal([]byte(text), &accepted); err != nil || status != http.StatusCreated || accepted.RunID == "" {
		t.Fatalf("%d %s", status, text)
	}
	status, text = ask("GET", resultPath, "")
	if status != http.StatusOK || !strings.Contains(text, accepted.RunID) || !strings.Contains(text, `"stop_reason":"completed"`) {
		t.Errorf("%d %s", status, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.md")); err != nil {
		t.Error(err)
	}
}
