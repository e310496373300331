//go:build e2e

package peers

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/test/npm"
)

//go:embed a2a/package.json a2a/package-lock.json bus/package.json bus/package-lock.json
var scriptFiles embed.FS

// placeScript installs the packages of a folder (a2a or bus) and returns a program with one of its scripts.
func placeScript(t *testing.T, folder, script string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	sub, err := fs.Sub(scriptFiles, folder)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := npm.Install(ctx, folder, sub)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, script))
	dir := t.TempDir()
	if err = errors.Join(err, os.Symlink(modules, filepath.Join(dir, "node_modules"))); err != nil {
		t.Fatal(err)
	}
	return exec.Command("node", append([]string{writeFile(t, filepath.Join(dir, script), string(text))}, args...)...)
}

// outputOf runs a script and returns the object that it prints.
func outputOf(t *testing.T, cmd *exec.Cmd) (got map[string]any) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v %s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v %s", err, raw)
	}
	return got
}

// The client of the official SDK for npm sends, streams, gets and cancels tasks of a node.
func TestNpmClientOfA2A(t *testing.T) {
	const token = "a-token-of-the-peers"
	start := func(script string) string {
		h, err := node.Start(patientContext(t), node.Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), DontListen: true, Lazy: true, Model: "script/" + writeFile(t, filepath.Join(t.TempDir(), "s.yaml"), script),
			Env: func(string) string { return "" }, HTTP: &node.HTTPConfig{Address: "127.0.0.1:0", Token: token}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		return h.HTTPURL() + "/a2a/assistant"
	}
	cmd := placeScript(t, "a2a", "client.mjs", start("agents:\n  assistant: [{text: \"It is safe, {{user}}.\"}]\n"), token, start("agents:\n  assistant: [{text: never, delay: 1h}]\n"))
	got := outputOf(t, cmd)
	want := map[string]any{"card": "assistant", "sent": []any{"TASK_STATE_COMPLETED", "It is safe, A."}, "got": "TASK_STATE_COMPLETED",
		"streamed": []any{"TASK_STATE_COMPLETED", "It is safe, B."}, "canceled": "TASK_STATE_CANCELED", "ended": "TASK_STATE_CANCELED", "unknown": "TaskNotFoundError"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An agent in the official SDK for npm is called, says how it fails, and is canceled.
func TestNpmServerOfA2A(t *testing.T) {
	cmd := placeScript(t, "a2a", "server.mjs")
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the server prints no address")
	}
	c := a2aclient.New(a2aclient.Config{Agents: []a2aclient.Agent{{Name: "reviewer", URL: lines.Text()}}, Env: func(string) string { return "" }})
	defer c.Close()
	call := func(ctx context.Context, task string) string {
		text, err := c.Call(ctx, a2aclient.Request{Name: "a2a/reviewer", Task: task, Key: task})
		return fmt.Sprint(text, " ", err)
	}
	if got := call(t.Context(), "Review A."); got != "A is safe. <nil>" {
		t.Error(got)
	}
	if got := call(t.Context(), "fail"); !strings.Contains(got, "A is a2a/reviewer: the agent reports an error: the task failed: \"no disk\"") {
		t.Error(got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if got := call(ctx, "hang"); !strings.Contains(got, "its task was canceled") || !lines.Scan() || lines.Text() != "canceled" {
		t.Errorf("%s %s", got, lines.Text())
	}
}
