package deploy_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/node"
)

// answerSite is a site with the roles, on which a run waits for an answer and no node is up.
func startAnswerSite(t *testing.T) (s *testSite, start func() *node.Node, c *client.Client, run string) {
	t.Helper()
	s = startSite(t)
	trusted := t.TempDir()
	path := filepath.Join(trusted, "model.yaml")
	if err := os.WriteFile(path, []byte("default: [{calls: [{name: ask_human, args: {question: Which one}}]}, {text: \"{{last}}\"}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := node.SetupServer(t.Context(), node.Config{Bus: s.connectOptions("setup")}, 1); err != nil {
		t.Fatal(err)
	}
	start = func() *node.Node {
		t.Helper()
		h, err := node.Start(t.Context(), node.Config{Name: "n1", Trust: []string{trusted}, Bus: s.connectOptions("node"), ServiceBus: bus.Options{NKey: s.seeds["service"]}, ResumeAll: true, Env: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	c, err := client.Dial(s.connectOptions("client"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h, run := start(), client.NewID()
	if _, err := c.Run(t.Context(), client.RunRequest{RunID: run, Prompt: "ask", Model: "script/" + path}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(t.Context(), run); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v, %v; want it parked", info, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return s, start, c, run
}

// With the least rights of each role, a client leaves an answer while no node is up, and the next node reads and removes it.
func TestAnswersWaitForANode(t *testing.T) {
	s, start, c, run := startAnswerSite(t)
	r := client.AnswerRequest{RunID: run, Query: "1-0.1", Decision: spec.TextOnly, Text: "the red one"}
	if err := c.Answer(t.Context(), r); !errors.Is(err, client.ErrUnavailable) {
		t.Fatalf("a direct answer without a node: %v", err)
	}
	if err := client.StoreAnswer(t.Context(), c, r); err != nil {
		t.Fatal(err)
	}
	h := start()
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	info, err := c.Wait(ctx, run)
	for err == nil && info.State == client.RunParked { // the node has not read the answer yet
		info, err = c.Wait(ctx, run)
	}
	if err != nil || info.Result == nil || info.Result.Text != "a person answered: the red one" {
		t.Errorf("%+v, %v", info, err)
	}
	if n := s.storedIn("TROUPE_ANSWER"); n != 0 {
		t.Errorf("%d answers are left", n)
	}
}

// storedIn returns how many messages a stream has.
func (s *testSite) storedIn(stream string) uint64 {
	s.t.Helper()
	nc, err := bus.Connect(bus.Options{Servers: s.url, NKey: s.seeds["setup"], InboxPrefix: "_INBOX_setup"})
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	found, err := js.Stream(s.t.Context(), stream)
	if err != nil {
		s.t.Fatal(err)
	}
	return found.CachedInfo().State.Msgs
}

// TestAttackAnAnswerWritesNoLog: a message that a client leaves names the subject of its acknowledgement. An acknowledgement in a
// log would be an entry, and one in a bucket a lease or a row.
func TestAttackAnAnswerWritesNoLog(t *testing.T) {
	s, _, _, run := startAnswerSite(t)
	nc, err := bus.Connect(s.connectOptions("client"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	stored, err := nc.SubscribeSync("troupe.stored.*")
	if err != nil {
		t.Fatal(err)
	}
	streams := []string{"TROUPE_BOX_DEFAULT_0", "KV_troupe_shards", "KV_troupe_runs"}
	before := map[string]uint64{}
	for _, name := range streams {
		before[name] = s.storedIn(name)
	}
	for _, reply := range []string{"troupe.box.default.0." + run + ".root", "$KV.troupe_shards.default.0", "$KV.troupe_runs.forged", "$JS.API.STREAM.PURGE.TROUPE_BOX_DEFAULT_0"} {
		if err := nc.PublishMsg(&nats.Msg{Subject: "troupe.answer." + run, Reply: reply, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if _, err := stored.NextMsg(patience); err != nil {
			t.Fatalf("with the reply %s: %v", reply, err)
		}
	}
	for _, name := range streams {
		if after := s.storedIn(name); after > before[name] || name == streams[0] && after != before[name] {
			t.Errorf("%s has %d messages, and had %d", name, after, before[name])
		}
	}
}
