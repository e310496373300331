//go:build e2e

package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/model"
)

const patience = 3 * time.Minute

func patientContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func mustInstall(t *testing.T) programs {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	p, err := installPrograms(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if so() {
			return
		}
	}
	t.Fatalf("it never was so: %s", what)
}

// startEverything starts the server "everything" at a loopback address.
func startEverything(t *testing.T, p programs) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", p.Everything, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url = fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
	waitUntil(t, "the server listens", func() bool {
		r, err := http.Get(url)
		if err == nil {
			_ = r.Body.Close()
		}
		return err == nil
	})
	return url
}

const lead = "---\nname: lead\ndescription: leads\ntools: delegate, mcp__here, mcp__web, mcp__files\n---\nlead\n"

const worker = "---\nname: worker\ndescription: works\ntools: mcp__here, mcp__web, mcp__files\n---\nwork\n"

// startRun starts a node with servers, and a run of a lead whose child does calls,
// one after the other, and says what came of each.
func startRun(t *testing.T, servers map[string]any, calls ...string) (*client.Client, client.RunAccepted, func() []client.Event) {
	t.Helper()
	agents, at := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(agents, "lead.md"), lead)
	writeFile(t, filepath.Join(agents, "worker.md"), worker)
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	text := "agents:\n  lead:\n    - calls: [{name: delegate, args: {agent: worker, task: work}}]\n    - text: \"{{last}}\"\n  worker:\n"
	for _, c := range calls {
		text += "    - calls: [" + c + "]\n"
	}
	text += "    - text: \"[done] {{last}}\"\n"
	// The reference server calls its write_file destructive, which always asks a
	// person; here the operator says otherwise, as he may.
	writes := agentfile.ToolRule{Name: "mcp__files__write_file", Class: model.Effect}
	h, err := node.Start(patientContext(t), node.Config{StartServer: embedded.StartServer, Tools: []agentfile.ToolRule{writes}, StateDir: t.TempDir(), Port: embedded.FreePort, Lazy: true, Name: "peers", Roots: []string{agents},
		Servers: writeFile(t, filepath.Join(at, "mcp.json"), string(raw)), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := h.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan client.Event, 4096)
	stop, err := c.Watch(func(e client.Event) { heard <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	task := client.RunRequest{RunID: client.NewID(), Prompt: "p", Agents: agents, Agent: "lead", Model: "script/" + writeFile(t, filepath.Join(at, "script.yaml"), text)}
	if err := h.ApproveRequest(task); err != nil {
		t.Fatal(err)
	}
	a, err := c.Run(patientContext(t), task)
	if err != nil {
		t.Fatal(err)
	}
	var all []client.Event
	return c, a, func() []client.Event {
		for {
			select {
			case e := <-heard:
				all = append(all, e)
			default:
				return all
			}
		}
	}
}

// waitForEnd waits for the end of a run, and until all that it told has come: the
// index may say so first.
func waitForEnd(t *testing.T, c *client.Client, run string, events func() []client.Event) client.RunInfo {
	t.Helper()
	var info client.RunInfo
	waitUntil(t, "the run is over", func() bool {
		var err error
		info, err = c.Get(patientContext(t), run)
		return err == nil && info.State == client.RunFinished
	})
	if info.Result.Reason != spec.Completed {
		t.Errorf("%+v", info.Result)
	}
	waitUntil(t, "the end is told", func() bool {
		return slices.ContainsFunc(events(), func(e client.Event) bool { return e.Kind == event.KindRunFinished })
	})
	return info
}

// toolResults are what the tools of a run gave, by name and number.
func toolResults(t *testing.T, events []client.Event) []event.ToolCall {
	t.Helper()
	var all []event.ToolCall
	for _, e := range events {
		var n event.ToolCall
		if e.Kind == event.KindToolFinished && e.Agent != "root" {
			if err := json.Unmarshal(e.Data, &n); err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}

func TestTheReferenceServersServeADelegatedChildOverBothTransports(t *testing.T) {
	p, dir := mustInstall(t), t.TempDir()
	writeFile(t, filepath.Join(dir, "note.txt"), "the cat sat on the mat")
	c, a, events := startRun(t, map[string]any{
		"here":  map[string]any{"command": "node", "args": []string{p.Everything}},
		"web":   map[string]any{"type": "http", "url": startEverything(t, p)},
		"files": map[string]any{"command": "node", "args": []string{p.Filesystem, dir}},
	},
		`{name: mcp__here__echo, args: {message: hello}}`,
		`{name: mcp__web__echo, args: {message: hello}}`,
		`{name: mcp__here__get-sum, args: {a: 2, b: 40}}`,
		`{name: mcp__web__get-tiny-image, args: {}}`,
		`{name: mcp__here__read_resource, args: {}}`,
		`{name: mcp__web__read_resource, args: {uri: "demo://resource/dynamic/text/1"}}`,
		`{name: mcp__files__read_text_file, args: {path: "`+filepath.Join(dir, "note.txt")+`"}}`,
		`{name: mcp__files__read_text_file, args: {path: /etc/passwd}}`,
		`{name: mcp__files__write_file, args: {path: "`+filepath.Join(dir, "new.txt")+`", content: "made"}}`,
		`{name: mcp__here__echo, args: {message: 7}}`,
	)
	t.Logf("notes: %q", a.Notes)
	waitForEnd(t, c, a.RunID, events)
	all := toolResults(t, events())
	want := []struct {
		error bool
		text  string
	}{{false, "Echo: hello"}, {false, "Echo: hello"}, {false, "42"}, {false, "[image, image/png, "}, {false, "demo://resource/"}, {false, "Resource 1"},
		{false, "the cat sat on the mat"}, {true, "ccess denied"}, {false, "Successfully wrote"}, {true, "the arguments do not fit the schema"}}
	if len(all) != len(want) {
		t.Fatalf("%d results: %+v", len(all), all)
	}
	for i, w := range want {
		if all[i].Error != w.error || !strings.Contains(all[i].Text, w.text) {
			t.Errorf("%d %s: %v %q, not %v %q", i, all[i].Tool, all[i].Error, all[i].Text, w.error, w.text)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "new.txt")); err != nil || string(data) != "made" {
		t.Errorf("%q %v", data, err)
	}
}

func TestAReferenceServerThatIsKilledInACallGivesAnErrorResultAndIsStartedAgain(t *testing.T) {
	p := mustInstall(t)
	pids := filepath.Join(t.TempDir(), "pids")
	c, a, events := startRun(t, map[string]any{"here": map[string]any{"command": "/bin/sh", "args": []string{"-c", `echo $$ >>"$1"; exec node "$0"`, p.Everything, pids}}},
		`{name: mcp__here__trigger-long-running-operation, args: {duration: 120, steps: 600}}`,
		`{name: mcp__here__echo, args: {message: again}}`,
	)
	progress := func() bool {
		for _, e := range events() {
			if e.Kind == event.KindToolProgress {
				return true
			}
		}
		return false
	}
	waitUntil(t, "the call makes progress", progress)
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitForEnd(t, c, a.RunID, events)
	all := toolResults(t, events())
	if len(all) != 2 || !all[0].Error || !strings.Contains(all[0].Text, "the server ended during the call") || !strings.Contains(all[0].Text, "its last word was: ") {
		t.Fatalf("%+v", all)
	}
	if all[1].Error || all[1].Text != "Echo: again" {
		t.Errorf("%+v", all[1])
	}
	if data, err := os.ReadFile(pids); err != nil || len(strings.Fields(string(data))) != 2 {
		t.Errorf("%s %v", data, err)
	}
}
