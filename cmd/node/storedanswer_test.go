package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// absentSite is a NATS server whose nodes are processes that a test kills.
type absentSite struct {
	t                *testing.T
	url, dir, agents string
	client           *client.Client
	plain            *nats.Conn // of a program that knows nats.go alone
	stored           *nats.Subscription
}

func startAbsentSite(t *testing.T) *absentSite {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), SyncInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the server is not ready")
	}
	s := &absentSite{t: t, url: srv.ClientURL(), dir: t.TempDir(), agents: t.TempDir()}
	// One write for each line: calls of several runs pay at the same moment.
	s.write("buyer.md", "---\nname: buyer\ndescription: Buys.\nx-troupe:\n  tools:\n    - {name: pay, description: Pays., effect: effect, command: 'printf \"%s\\n\" \"$(cat)\" >> "+s.ledger()+"'}\n---\nBuy.\n")
	if s.client, err = client.Dial(bus.Options{Servers: s.url}, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	if s.plain, err = nats.Connect(s.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.plain.Close)
	if s.stored, err = s.plain.SubscribeSync("troupe.stored.*"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *absentSite) ledger() string { return filepath.Join(s.agents, "ledger") }

func (s *absentSite) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.agents, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// startNode starts the process of a node.
func (s *absentSite) startNode(name string) (kill func()) {
	s.t.Helper()
	cmd := command(s.t, "-s", s.url, "--name", name, "--root", s.dir, "--trust", s.agents)
	startNode(s.t, cmd)
	return func() {
		s.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			s.t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
	}
}

// begin starts a run that asks whether it may pay a sum, and returns the question.
func (s *absentSite) begin(run, args string) client.Question {
	s.t.Helper()
	s.write(run+".yaml", "agents: {buyer: [{calls: [{name: pay, args: "+args+"}]}, {text: \"the end of it: {{last}}\"}]}")
	if _, err := s.client.Run(s.t.Context(), client.RunRequest{RunID: run, Prompt: "buy", Agents: s.agents, Agent: "buyer", Dir: s.dir, AskTools: []string{"pay"}, Model: "script/" + filepath.Join(s.agents, run+".yaml")}); err != nil {
		s.t.Fatal(err)
	}
	if info, err := s.client.Wait(s.t.Context(), run); err != nil || info.State != client.RunParked {
		s.t.Fatalf("%s: %+v, %v; want it parked", run, info, err)
	}
	list, err := s.client.Questions(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, q := range list {
		if q.RunID == run {
			return q
		}
	}
	s.t.Fatalf("%s asks nothing: %+v", run, list)
	return client.Question{}
}

// leave publishes an answer as any program can, and waits until the server says that it has stored it.
func (s *absentSite) leave(q client.Question, digest string, d spec.Decision) {
	s.t.Helper()
	raw, err := json.Marshal(map[string]any{"request_id": client.NewID(), "query": q.Query, "decision": d, "digest": digest, "by": "ann"})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.plain.Publish("troupe.answer."+q.RunID, raw); err != nil {
		s.t.Fatal(err)
	}
	m, err := s.stored.NextMsg(patience)
	if err != nil || m.Header.Get("Nats-Stream") != "TROUPE_ANSWER" || m.Subject != "troupe.stored."+q.RunID || len(m.Data) > 0 {
		s.t.Fatalf("%+v, %v; want the word of the server that the answer is stored", m, err)
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (s *absentSite) paid() []string {
	s.t.Helper()
	raw, err := os.ReadFile(s.ledger())
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return strings.Fields(string(raw))
}

// waitPastPark waits for the end of a run that is parked until its stored answer is read.
func waitPastPark(t *testing.T, c *client.Client, run string) (client.RunInfo, error) {
	t.Helper()
	w, err := c.NewRunWatch(run)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	info, err := w.Wait(t.Context())
	for err == nil && info.State == client.RunParked {
		info, err = w.WaitNew(t.Context())
	}
	return info, err
}

// TestAnswerArrivesWhileNoNodeIsUp: an approval is requested on node A, A is killed, the answer arrives through NATS
// while no node is up, and node B starts. The call runs once, with the approved arguments. An answer to other arguments,
// one that names no call, and a second answer have no effect, and events say why.
//
//behaviour:shows E3
func TestAnswerArrivesWhileNoNodeIsUp(t *testing.T) {
	s := startAbsentSite(t)
	killA := s.startNode("a")
	good, wrong, unnamed := s.begin("good", "{sum: 1}"), s.begin("wrong", "{sum: 2}"), s.begin("unnamed", "{sum: 3}")
	typed := []client.Question{s.begin(client.NewID(), "{sum: 4}"), s.begin("chosen", "{sum: 5}")}
	killA()
	if err := s.client.Answer(t.Context(), client.AnswerRequest{RunID: "good", Query: good.Query, Decision: spec.Approve}); err == nil {
		t.Fatal("a node is up")
	}
	refused, err := s.plain.SubscribeSync("troupe.content.*.super." + event.KindQueryRefused) // with its texts, for clients
	if err != nil {
		t.Fatal(err)
	}
	s.leave(good, good.Digest, spec.Approve)
	s.leave(good, good.Digest, spec.Approve)
	s.leave(wrong, good.Digest, spec.Approve)
	s.leave(unnamed, "", spec.Approve)
	for _, q := range typed {
		cmd := command(t, "-s", s.url, "answer", q.RunID, q.Query, "approve", "--digest", q.Digest)
		cmd.Path, cmd.Args[0] = lookPath(t, "troupe"), "troupe"
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "stored: no node is running") {
			t.Fatalf("troupe answer: %v\n%s", err, out)
		}
	}
	if paid := s.paid(); len(paid) > 0 {
		t.Fatalf("paid %v without a node", paid)
	}
	s.startNode("b")
	for _, run := range []string{"good", typed[0].RunID, typed[1].RunID} {
		if info, err := waitPastPark(t, s.client, run); err != nil || info.State != client.RunFinished || info.Result.Reason != spec.Completed {
			t.Fatalf("the approved run %s: %+v, %v", run, info, err)
		}
	}
	why := map[string]string{}
	for range 3 {
		m, err := refused.NextMsg(patience)
		if err != nil {
			t.Fatalf("refused until now: %v; %v", why, err)
		}
		var e struct {
			Run  string
			Data event.QueryRefused
		}
		if err := json.Unmarshal(m.Data, &e); err != nil || e.Data.By != "ann" || e.Data.Query != good.Query {
			t.Errorf("%s: %v", m.Data, err)
		}
		why[e.Run] = e.Data.Code + " " + e.Data.Why
	}
	for run, part := range map[string]string{"good": "answered", "wrong": "409 ", "unnamed": "409 "} {
		if !strings.Contains(why[run], part) {
			t.Errorf("%s is refused with %q, want %q", run, why[run], part)
		}
	}
	if paid := s.paid(); len(paid) != 3 || !slices.Contains(paid, `{"sum":1}`) || !slices.Contains(paid, `{"sum":4}`) || !slices.Contains(paid, `{"sum":5}`) {
		t.Errorf("paid %v, want one call of each with the approved arguments", paid)
	}
	for _, q := range []client.Question{wrong, unnamed} { // they still wait for an answer
		if err := s.client.Answer(t.Context(), client.AnswerRequest{RunID: q.RunID, Query: q.Query, Decision: spec.Deny, Digest: q.Digest}); err != nil {
			t.Error(err)
		}
	}
}
