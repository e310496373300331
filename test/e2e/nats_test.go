//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control"
)

// patience is how long the programs may take; a cold build is most of it.
const patience = 10 * time.Minute

// buildPrograms builds what the tests run, into one directory.
func buildPrograms(t *testing.T, ctx context.Context) (dir string) {
	t.Helper()
	dir = t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct{ in, out, what string }{
		{root, "troupe", "./cmd/cli"}, {root, "troupe-node", "./cmd/node"},
		{filepath.Join(root, "build"), "nats", "github.com/nats-io/natscli/nats"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, b.out), b.what)
		cmd.Dir, cmd.Env = b.in, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", b.what, err, out)
		}
	}
	return dir
}

// testNode is a node, and an environment that knows nothing of the machine's user.
type testNode struct {
	t     *testing.T
	ctx   context.Context
	bin   string
	env   []string
	store string
	repo  string
	url   string
}

func startTestNode(t *testing.T) *testNode {
	t.Helper()
	// Not t.Context(): it ends before the node has been told to stop.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	s := &testNode{t: t, ctx: ctx, bin: buildPrograms(t, ctx), store: t.TempDir(), repo: makeRepository(t)}
	home := t.TempDir()
	s.env = []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}

	node := s.newCommand("troupe-node", "--store-dir", s.store, "--root", s.repo, "--nats-port", "-1", "--agents-on-bus", "--agents-owner", "ops", "-o", "json")
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	node.Stderr = &log
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := node.Wait(); err != nil {
			t.Errorf("the node ended with %v\n%s", err, log.Bytes())
		}
	})
	var ready struct{ URL string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil || ready.URL == "" {
		t.Fatalf("the node is not ready: %v", err)
	}
	s.url = ready.URL
	return s
}

// makeRepository is a small git repository.
func makeRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/small\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { // FIXME: nothing yet\n\t_ = run()\n}\n\nfunc run() error { return nil }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func (s *testNode) newCommand(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.ctx, filepath.Join(s.bin, name), args...)
	cmd.Env, cmd.Dir = s.env, s.repo
	return cmd
}

// runProgram runs a program to its end.
func (s *testNode) runProgram(name string, args ...string) []byte {
	s.t.Helper()
	cmd := s.newCommand(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, errs.Bytes())
	}
	return out
}

// runNATS runs the stock CLI with the credential of node.json.
func (s *testNode) runNATS(args ...string) []byte {
	s.t.Helper()
	return s.runProgram("nats", append(s.credentialFlags(), args...)...)
}

// credentialFlags are the flags of the stock CLI for the user of the node.
func (s *testNode) credentialFlags() []string {
	s.t.Helper()
	file, err := statedir.ReadNodeFile(s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	return []string{"-s", file.Address, "--user", file.User, "--password", file.Password, "--inbox-prefix", bus.InboxPrefix(bus.RoleClient)}
}

// subscriber is a `nats sub` that runs until the end of the test.
type subscriber struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // something came
}

func (s *testNode) startSubscriber(args ...string) *subscriber {
	s.t.Helper()
	cmd := s.newCommand("nats", append([]string{"--context", "troupe", "sub", "troupe.evt.>"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	l := &subscriber{more: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			l.mu.Lock()
			l.lines = append(l.lines, lines.Text())
			l.mu.Unlock()
			select {
			case l.more <- struct{}{}:
			default:
			}
		}
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-done
		_ = cmd.Wait() // killed, as said
	})
	return l
}

func (l *subscriber) allLines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// waitForLine waits for a line that meets a condition.
func (l *subscriber) waitForLine(s *testNode, what string, so func(string) bool) {
	s.t.Helper()
	for !slices.ContainsFunc(l.allLines(), so) {
		select {
		case <-l.more:
		case <-s.ctx.Done():
			s.t.Fatalf("no line with %s in\n%s", what, strings.Join(l.allLines(), "\n"))
		}
	}
}

// startRun starts a run by the cli, follows it, and returns its result.
func (s *testNode) startRun(args ...string) (result struct {
	RunID  string `json:"run_id"`
	Reason string `json:"stop_reason"`
	Agents []struct{ ID, Name string }
}) {
	s.t.Helper()
	raw := s.runProgram("troupe", append([]string{"run", "--store-dir", s.store, "-m", "builtin/scout", "-o", "json"}, args...)...)
	if err := json.Unmarshal(raw, &result); err != nil {
		s.t.Fatalf("%v\n%s", err, raw)
	}
	return result
}

var receivedForm = regexp.MustCompile(`Received on "([^"]+)"`)

// The stock NATS CLI sees a run as it happens, by the context that the node wrote.
// With the credential of the state directory it finds the service and asks it.
func TestTheStockNatsCLI(t *testing.T) {
	s := startTestNode(t)
	plain := s.startSubscriber()
	readable := s.startSubscriber("--translate", filepath.Join(s.bin, "troupe")+" fmt --color never")
	// `nats sub` does not say when it is subscribed: it is once it hears something.
	for len(plain.allLines()) == 0 || len(readable.allLines()) == 0 {
		s.startRun("--dir", s.repo, "What is this?")
	}

	result := s.startRun("--dir", s.repo, "Investigate this repository and write report.md")
	if result.Reason != "completed" || len(result.Agents) < 4 {
		t.Fatalf("%+v", result)
	}
	if _, err := os.Stat(filepath.Join(s.repo, "report.md")); err != nil {
		t.Error(err)
	}
	id := result.RunID
	finished := "troupe.evt." + id + ".super.run.finished"
	plain.waitForLine(s, finished, func(line string) bool {
		var e client.Event
		return json.Unmarshal([]byte(line), &e) == nil && e.Run == id && e.Kind == event.KindRunFinished
	})
	var kinds, agents []string
	subject := ""
	for _, line := range plain.allLines() {
		if m := receivedForm.FindStringSubmatch(line); m != nil {
			subject = m[1]
		}
		var e client.Event
		if json.Unmarshal([]byte(line), &e) != nil || e.Run != id {
			continue
		}
		if err := control.ValidateEvent([]byte(line)); err != nil {
			t.Error(err)
		}
		if want := "troupe.evt." + id + "." + e.Agent + "." + e.Kind; subject != want || strings.Count(subject, ".") != 5 {
			t.Errorf("%s came on %s", want, subject)
		}
		kinds, agents = append(kinds, e.Kind), append(agents, e.Agent)
	}
	if len(kinds) == 0 || kinds[0] != event.KindRunStarted || kinds[len(kinds)-1] != event.KindRunFinished {
		t.Errorf("kinds: %v", kinds)
	}
	for _, want := range []string{event.KindAgentSpawned, event.KindAgentStarted, event.KindTurnStarted, event.KindMessageDelta, event.KindToolFinished, event.KindDelegationRequested, event.KindBudgetReserved, event.KindStopAllowed, event.KindAgentFinished} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, a := range result.Agents {
		if !slices.Contains(agents, a.ID) {
			t.Errorf("nothing of %s (%s)", a.ID, a.Name)
		}
	}
	readable.waitForLine(s, "the end", func(line string) bool {
		return strings.Contains(line, event.KindRunFinished) && !strings.Contains(line, "{") && !receivedForm.MatchString(line)
	})
	for _, line := range readable.allLines() {
		if strings.HasPrefix(line, "{") {
			t.Fatalf("not translated: %s", line)
		}
	}
	s.checkService(id)
	s.checkAgents()
}

// checkAgents finds and prompts an exported agent by the stock CLI: it stops at the terminator of a stream.
func (s *testNode) checkAgents() {
	t := s.t
	t.Helper()
	const subject = "agents.prompt.troupe.ops.coordinator"
	if out := s.runNATS("micro", "ls"); bytes.Count(out, []byte("agents")) < 2 {
		t.Errorf("micro ls: %s", out)
	}
	if out := s.runNATS("micro", "info", "agents"); !bytes.Contains(out, []byte("protocol_version: 0.3")) || !bytes.Contains(out, []byte("Queue Group: agents")) {
		t.Errorf("micro info: %s", out)
	}
	prompt := func(payload string) string {
		return string(s.runNATS("req", "--wait-for-empty", "--reply-timeout", "1m", "--timeout", "5m", subject, payload))
	}
	if out := prompt("hello"); !strings.HasPrefix(strings.TrimSpace(out), `{"type":"status","data":"ack"}`) || !strings.Contains(out, `{"type":"response","data":"`) {
		t.Errorf("a prompt: %s", out)
	}
	if out := prompt(`{"prompt":1}`); !strings.Contains(out, `"error":"bad_request"`) {
		t.Errorf("a malformed prompt: %s", out)
	}
	if out := s.runNATS("req", "--raw", "agents.status.troupe.ops.coordinator", ""); !bytes.Contains(out, []byte(`"interval_s":30`)) {
		t.Errorf("the status: %s", out)
	}
}

// checkService asks the control service by the stock CLI.
func (s *testNode) checkService(id string) {
	t := s.t
	t.Helper()
	if out := s.runNATS("micro", "ls"); !bytes.Contains(out, []byte("troupe")) {
		t.Errorf("micro ls: %s", out)
	}
	info := s.runNATS("micro", "info", "troupe")
	for _, verb := range []string{"run", "cancel", "steer", "answer", "list", "get", "events", "transcript", "budget", "policy", "questions"} {
		if !bytes.Contains(info, []byte("troupe.cmd."+verb)) {
			t.Errorf("micro info has no %s: %s", verb, info)
		}
	}
	var list []client.RunInfo
	if err := json.Unmarshal(s.runNATS("req", "--raw", "troupe.cmd.list", "{}"), &list); err != nil || len(list) < 2 ||
		!slices.ContainsFunc(list, func(i client.RunInfo) bool { return i.RunID == id && i.State == client.RunFinished }) {
		t.Errorf("list: %+v %v", list, err)
	}
	var got client.RunInfo
	var cluster client.ClusterInfo
	if err := json.Unmarshal(s.runNATS("req", "--raw", "troupe.cmd.cluster", "{}"), &cluster); err != nil || len(cluster.Nodes) != 1 || len(cluster.Streams) == 0 {
		t.Errorf("cluster: %v, %+v", err, cluster)
	}
	if err := json.Unmarshal(s.runNATS("req", "--raw", "troupe.cmd.get", `{"run_id":"`+id+`"}`), &got); err != nil || got.Result == nil || got.Result.Run != id {
		t.Errorf("get: %+v %v", got, err)
	}
	var refused struct{ Code, Error, Hint string }
	if err := json.Unmarshal(s.runNATS("req", "--raw", "troupe.cmd.get", `{"run_id":"nobody"}`), &refused); err != nil || refused.Code != "404" || refused.Hint == "" {
		t.Errorf("a refusal: %+v %v", refused, err)
	}
	cmd := s.newCommand("nats", append(s.credentialFlags(), "req", "troupe.cmd.get", `{"run_id":"nobody"}`)...)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Nats-Service-Error-Code: 404")) {
		t.Errorf("a refusal: %s %v", out, err)
	}
	// What nobody outside may.
	for who, flags := range map[string][]string{"nobody": {"-s", s.url}, "an observer": {"--context", "troupe"}, "a client": s.credentialFlags()} {
		cmd = s.newCommand("nats", append(flags, "stream", "ls", "--timeout", "2s")...)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s lists streams: %s", who, out)
		}
	}
	for who, flags := range map[string][]string{"nobody": {"-s", s.url}, "an observer": {"--context", "troupe"}} {
		cmd = s.newCommand("nats", append(flags, "req", "troupe.cmd.list", "{}", "--timeout", "2s")...)
		if out, err := cmd.CombinedOutput(); err == nil && bytes.Contains(out, []byte(id)) {
			t.Errorf("%s lists runs: %s", who, out)
		}
	}
}
