package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/node"
)

// upNode is a node of `troupe up`. Its leases are short, for one test waits for the end of
// some, but a slow machine has the time to renew them.
func upNode() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	f := flag.NewFlagSet("upnode", flag.ExitOnError)
	name, root, durability := f.String("name", "", ""), f.String("root", "", ""), f.String("durability", "sync", "")
	address, state, claude := f.String("http", "", ""), f.String("store-dir", "", ""), f.Bool("claude-files", false, "")
	_ = f.Parse(os.Args[1:]) // it exits
	var web *node.HTTPConfig
	if *address != "" {
		web = &node.HTTPConfig{Address: *address, Token: os.Getenv("TROUPE_HTTP_TOKEN")}
	}
	cfg := node.Config{HTTP: web, StartServer: embedded.StartServer, Name: *name, StateDir: *state, Roots: []string{*root}, ResumeAll: true, LeaseTTL: 3 * shard.TTLMin,
		Lazy:       *durability == "lazy",
		Bus:        bus.Options{}.FromEnv(os.Getenv),
		ServiceBus: bus.Options{User: os.Getenv("TROUPE_SERVICE_USER"), Password: os.Getenv("TROUPE_SERVICE_PASSWORD")}}
	var err error
	if *claude {
		cfg, _, err = cfg.WithClaudeFiles()
	}
	var h *node.Node
	if err == nil {
		h, err = node.Start(ctx, cfg)
	}
	if err == nil {
		fmt.Println("ready", h.HTTPURL(), "over HTTP")
		<-ctx.Done()
		err = errors.Join(h.Drain(context.Background()), h.Close())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// listNodes asks for the live nodes.
func (s testHome) listNodes() []client.NodeInfo {
	s.t.Helper()
	out, err := s.command("nodes", "list", "-o", "json").Output()
	var list []client.NodeInfo
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // nobody answers yet, or just now
		s.t.Fatal(err)
	}
	return list
}

// waitForNodes waits until so many nodes hold all shards together.
func (s testHome) waitForNodes(n int) []client.NodeInfo {
	s.t.Helper()
	for end := time.Now().Add(2 * patience); time.Now().Before(end); <-time.After(processPollPause) {
		list, sum := s.listNodes(), 0
		for _, i := range list {
			sum += len(i.Shards)
			if len(i.Shards) == 0 {
				sum = 0
				break
			}
		}
		if len(list) == n && sum == 64 {
			return list
		}
	}
	s.t.Fatalf("%d nodes never shared the shards: %+v", n, s.listNodes())
	return nil
}

// checkProofs complains of nodes that cannot prove what up's own server promises.
func (s testHome) checkProofs(nodes []client.NodeInfo) {
	s.t.Helper()
	for _, n := range nodes {
		if n.Profile != string(bus.ServerLazy) || n.Unproven != "" {
			s.t.Errorf("%s: profile %s, unproven %s", n.Name, n.Profile, n.Unproven)
		}
	}
}

// waitForTools waits until so many tools of each run have started, or more: one starts again
// where its node was taken for dead.
func (s testHome) waitForTools(runs []string, tools int) {
	s.t.Helper()
	for _, id := range runs {
		for end := time.Now().Add(2 * patience); ; <-time.After(processPollPause) {
			events, err := s.command("events", id, "-o", "jsonl").Output()
			if err == nil && strings.Count(string(events), `"tool.started"`) >= tools {
				break
			}
			if time.Now().After(end) {
				s.t.Fatalf("run %s never came to its tools: %v\n%s", id, err, events)
			}
		}
	}
}

// checkHTTP reads the runs from a node over HTTP, with the token of the state directory that all nodes have.
func (s testHome) checkHTTP(log *watchedOutput, name string, runs []string) {
	s.t.Helper()
	log.until(s.t, name+" | ready ")
	_, rest, _ := strings.Cut(log.String(), name+" | ready ")
	url, _, _ := strings.Cut(rest, " ")
	token, err := os.ReadFile(filepath.Join(s.home, "state", "troupe", "http.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", url+"/api/v1/runs?state=finished", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	var list []client.RunInfo
	if err := json.NewDecoder(reply.Body).Decode(&list); err != nil || reply.StatusCode != http.StatusOK || len(list) != len(runs) {
		s.t.Errorf("%s over HTTP: %d %v %+v", name, reply.StatusCode, err, list)
	}
}

// TestUpSurvivesTheDeathOfANode: three processes share the agents of some runs.
// One is killed in the middle; the others take over, and every run ends well.
// Ctrl-C stops what is left.
//
//behaviour:shows F2
func TestUpSurvivesTheDeathOfANode(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{
		"boss.md":   "---\nname: boss\ndescription: Delegates.\n---\nDelegate.\n",
		"keeper.md": "---\nname: keeper\ndescription: Waits.\nx-troupe:\n  tools:\n    - {name: wait, description: Waits., command: 'while [ ! -e gate ]; do sleep 0.02; done; echo open', effect: read}\n---\nWait.\n",
		"model.yaml": `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: keeper, task: "first"}}, {name: delegate, args: {agent: keeper, task: "second"}}]
    - text: "both: {{last}}"
  keeper:
    - calls: [{name: wait}]
    - text: "waited: {{last}}"
`})
	bin, err := exec.LookPath("upnode")
	if err != nil {
		t.Fatal(err)
	}
	up := s.command("up", "--nodes", "3", "--lazy", "--http", "127.0.0.1:0", "--node-binary", bin, "--root", s.home)
	out, err := up.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Process.Kill()
	log := watchOutput(out)
	log.until(t, "its events have no texts of people, models and tools")
	log.until(t, `all nodes are ready; next: troupe start --dir `+s.home+` "what to do" starts a run, troupe top shows all`+"\n")
	nodes := s.waitForNodes(3)
	s.checkProofs(nodes)

	var runs []string
	for i := range 4 {
		id, err := s.command("start", "Wait", "--agent", "boss", "--agents", s.home, "--dir", s.home, "-m", "script/"+filepath.Join(s.home, "model.yaml")).Output()
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		runs = append(runs, strings.TrimSpace(string(id)))
	}
	s.waitForTools(runs, 2)
	if err := syscall.Kill(nodes[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.home, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range runs {
		text, err := s.command("result", "--wait", id).CombinedOutput()
		if err != nil || !strings.Contains(string(text), "both: waited: open") {
			t.Errorf("run %s: %v\n%s", id, err, text)
		}
	}
	log.until(t, nodes[0].Name+" | ended: signal: killed")
	s.waitForNodes(2)
	s.checkHTTP(log, nodes[1].Name, runs)
	if err := up.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	log.end()
	if err := up.Wait(); err != nil {
		t.Errorf("it was told to stop, and ended with %v", err)
	}
	for _, n := range nodes {
		if syscall.Kill(n.PID, 0) == nil {
			t.Errorf("%s is left behind", n.Name)
		}
	}
}
