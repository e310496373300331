package agentprotocol

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// serveHost exports the agent helper by a host of its own.
func serveHost(t *testing.T, nc *nats.Conn, node string) *Host {
	t.Helper()
	h, err := Serve(Config{Conn: nc, Client: client.New(nc, names.Names{}), Agents: []Agent{{Name: "helper"}}, Owner: "ops", Node: node, Machine: node, Version: "1.0.0"})
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

// spawnSession starts a session without a lifetime.
func spawnSession(t *testing.T, h *Host, name string) {
	t.Helper()
	if _, err := h.spawn(t.Context(), "", []byte(`{"session_id":"`+name+`","max_lifetime_s":0}`)); err != nil {
		t.Fatal(err)
	}
}

// answerConversations plays the node that knows conversations: answer gets the number of the request, from 1.
func answerConversations(t *testing.T, nc *nats.Conn, answer func(n int64, m *nats.Msg)) *atomic.Int64 {
	t.Helper()
	var requests atomic.Int64
	_, err := nc.Subscribe("troupe.cmd.conversations", func(m *nats.Msg) { answer(requests.Add(1), m) })
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &requests
}

// refuseRequest answers a request to a node with an error.
func refuseRequest(t *testing.T, m *nats.Msg, code string) {
	t.Helper()
	if err := m.RespondMsg(&nats.Msg{Header: nats.Header{"Nats-Service-Error-Code": {code}, "Nats-Service-Error": {"x"}}}); err != nil {
		t.Error(err)
	}
}

// A stop that could not cancel the runs of its session is an error, and can be repeated: the session is there until its
// runs are canceled. Of two stops at once none reports success before that.
func TestStopThatFailsCanBeRepeated(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	h := serveHost(t, nc, "a")
	spawnSession(t, h, "plans")
	requests := answerConversations(t, nc, func(n int64, m *nats.Msg) {
		if n == 1 {
			refuseRequest(t, m, client.CodeBad)
		} else {
			refuseRequest(t, m, client.CodeNotFound)
		}
	})
	stop := func() error {
		_, err := h.stop(t.Context(), "", []byte(`{"session_id":"plans"}`))
		return err
	}
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() { errs[i] = stop() })
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || requests.Load() != 2 {
		t.Errorf("%v after %d requests", errs, requests.Load())
	}
	if _, ok := h.ownSession("plans"); ok {
		t.Error("a stopped session is there")
	}
	spawnSession(t, h, "plans")
	requests.Store(0)
	if err := stop(); err == nil {
		t.Error("a stop that canceled nothing reports success")
	}
	if s, ok := h.ownSession("plans"); !ok || s.isStopped() {
		t.Fatal("a session whose stop failed is gone")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A session that was spawned has one instance: a node that exports its conversation, because it has a run there, ends
// that when it hears of it, and exports none while it does.
func TestASpawnedSessionHasOneInstance(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	h := serveHost(t, nc, "b")
	conversation := func(name string) *session {
		return &session{exportedAgent: &exportedAgent{name: name, task: client.RunRequest{Conversation: name}}, created: time.Now()}
	}
	beat := func(node, name string, spawned bool) {
		data, err := json.Marshal(heartbeat{Session: name, Role: roleSession, Node: node, IntervalS: 60, Spawned: spawned})
		if err != nil {
			t.Fatal(err)
		}
		h.hearSessions(&nats.Msg{Data: data})
	}
	early := conversation("plans")
	if err := h.addSession(early, ""); err != nil {
		t.Fatal(err)
	}
	beat("c", "plans", false) // as a conversation moves to another node
	if _, ok := h.ownSession("plans"); !ok {
		t.Fatal("two nodes may work on runs of a conversation")
	}
	beat("a", "plans", true)
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, ok := h.ownSession("plans"); !ok {
			tick.Stop()
			break
		}
	}
	beat("c", "plans", false)
	if err := h.addSession(conversation("plans"), ""); !errors.Is(err, errSessionExists) {
		t.Errorf("a second instance of a spawned session: %v", err)
	}
	// A stop that was sent to its node leaves the name to a new session, and not to one without the fields of spawn.
	if err := h.denySession(t.Context(), "plans"); !errors.Is(err, errSilent) {
		t.Errorf("%v", err)
	}
	if err := h.addSession(conversation("plans"), ""); !errors.Is(err, errSessionExists) {
		t.Errorf("a second instance while the session may be stopping: %v", err)
	}
	spawnSession(t, h, "plans")
}
