//go:build e2e

package peers

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/node"
)

// startScripted starts a node whose model is a script.
func startScripted(t *testing.T, script string, change func(*node.Config)) *node.Node {
	t.Helper()
	cfg := node.Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), Lazy: true, Name: "peers", Model: "script/" + writeFile(t, filepath.Join(t.TempDir(), "s.yaml"), script), Env: func(string) string { return "" }}
	change(&cfg)
	h, err := node.Start(patientContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// A client in nats.js, which shares no code with ours, discovers the agents of a node, prompts one, answers its question,
// controls sessions and follows events.
func TestNpmClientOfNATS(t *testing.T) {
	var state string
	const asking = "default: [{calls: [{name: ask_human, args: {question: \"Which one?\"}}]}, {text: \"bought: {{last}}\"}]"
	startScripted(t, asking, func(c *node.Config) {
		c.Port, c.AgentsOnBus, state = embedded.FreePort, &node.AgentsOnBus{Owner: "ops"}, c.StateDir
	})
	file, err := statedir.ReadNodeFile(state)
	if err != nil {
		t.Fatal(err)
	}
	got := outputOf(t, placeScript(t, "bus", "client.mjs", file.Address, file.User, file.Password, bus.InboxPrefix(bus.RoleClient)))
	for _, list := range []any{got["prompt"], got["session"]} {
		texts, _ := list.([]any)
		if n := len(texts); n == 0 || !strings.Contains(texts[n-1].(string), "the red one") {
			t.Errorf("the answer of the caller is not in %v", list)
		} else {
			texts[n-1] = "bought"
		}
	}
	want := map[string]any{"agents": []any{"assistant", "control", "coordinator"}, "protocol": "0.3", "queue": "agents", "prompt": []any{"status", true, "bought"},
		"malformed": "400 bad_request", "events": true, "session": []any{[]any{"shop"}, "bought"}, "status": "shop", "stopped": map[string]any{"ok": true, "session_id": "shop"}, "unknown": "not_found"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An agent in nats.js on a server of the user's own is a delegate: its answer is that of the delegation, and a question
// that nobody can answer ends one.
func TestNpmAgentOfNATS(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	cmd := placeScript(t, "bus", "agent.mjs", s.ClientURL())
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
	if lines := bufio.NewScanner(stdout); !lines.Scan() || lines.Text() != "ready" {
		t.Fatal("the agent did not start")
	}
	agents := t.TempDir()
	writeFile(t, filepath.Join(agents, "lead.md"), "---\nname: lead\ndescription: leads\ntools: delegate\nx-troupe: {delegates: [nats-js/derek/reviewer]}\n---\nlead\n")
	const calls = "agents:\n  lead:\n    - calls: [{name: delegate, args: {agent: nats-js/derek/reviewer, task: \"Review A.\"}}, {name: delegate, args: {agent: nats-js/derek/reviewer, task: ask}}]\n    - text: \"[done] {{result.0}} {{result.1}}\"\n"
	h := startScripted(t, calls, func(c *node.Config) { c.Bus, c.Roots = bus.Options{Servers: s.ClientURL()}, []string{agents} })
	c, err := h.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	ctx := patientContext(t)
	task := client.RunRequest{RunID: client.NewID(), Prompt: "p", Agents: agents, Agent: "lead", AllowedTools: []string{"delegate(nats-js/*)"}}
	if err := h.ApproveRequest(task); err != nil {
		t.Fatal(err)
	}
	a, err := c.Run(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Wait(ctx, a.RunID)
	if err != nil || !strings.Contains(info.Result.Text, "Review A. It is safe.") || !strings.Contains(info.Result.Text, "could answer: Which one?") {
		t.Errorf("%+v %v", info.Result, err)
	}
}

// The official client of OpenAI for npm lists the agents as models, gets answers whole and as a stream, and knows the errors.
func TestNpmClientOfOpenAI(t *testing.T) {
	const token = "a-token-of-the-peers"
	h := startScripted(t, "agents:\n  assistant: [{text: It is safe.}]\n", func(c *node.Config) {
		c.DontListen, c.HTTP = true, &node.HTTPConfig{Address: "127.0.0.1:0", Token: token}
	})
	got := outputOf(t, placeScript(t, "bus", "openai.mjs", h.HTTPURL()+"/v1", token))
	want := map[string]any{"models": true, "whole": []any{"It is safe.", "stop", true}, "streamed": "It is safe.", "finish": "stop",
		"unknown": []any{true, 404.0}, "wrong": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
