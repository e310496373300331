package agentprotocol

import (
	"errors"
	"fmt"
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
	if _, err := h.controller.spawn(t.Context(), "", []byte(`{"session_id":"`+name+`","max_lifetime_s":0}`)); err != nil {
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
		_, err := h.controller.stop(t.Context(), "", []byte(`{"session_id":"plans"}`))
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
	if _, ok := h.sessions.find("plans"); ok {
		t.Error("a stopped session is there")
	}
	spawnSession(t, h, "plans")
	requests.Store(0)
	if err := stop(); err == nil {
		t.Error("a stop that canceled nothing reports success")
	}
	if s, ok := h.sessions.find("plans"); !ok || s.isStopped() {
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
		h.listener.hearAgents(beatOf(heartbeat{Session: name, Role: roleSession, Node: node, Spawned: spawned}))
	}
	early := conversation("plans")
	if err := h.controller.sessions.addSession(early, ""); err != nil {
		t.Fatal(err)
	}
	beat("c", "plans", false) // as a conversation moves to another node
	if _, ok := h.sessions.find("plans"); !ok {
		t.Fatal("two nodes may work on runs of a conversation")
	}
	beat("a", "plans", true)
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, ok := h.sessions.find("plans"); !ok {
			tick.Stop()
			break
		}
	}
	beat("c", "plans", false)
	if err := h.controller.sessions.addSession(conversation("plans"), ""); !errors.Is(err, errSessionExists) {
		t.Errorf("a second instance of a spawned session: %v", err)
	}
	// A stop that was sent to its node leaves the name to a new session, and not to one without the fields of spawn.
	if err := h.controller.denySession(t.Context(), "plans"); !errors.Is(err, errSilent) {
		t.Errorf("%v", err)
	}
	if err := h.controller.sessions.addSession(conversation("plans"), ""); !errors.Is(err, errSessionExists) {
		t.Errorf("a second instance while the session may be stopping: %v", err)
	}
	spawnSession(t, h, "plans")
}

// A spawn that meets the end of its node is refused, and no session stays registered.
func TestSpawnDuringCloseIsRefused(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	h := serveHost(t, nc, "a")
	var spawns sync.WaitGroup
	registered := make(chan *session, sessionsMax)
	for i := range sessionsMax {
		spawns.Go(func() {
			s := &session{exportedAgent: &exportedAgent{name: fmt.Sprintf("s-%d", i), spawned: true}, created: time.Now()}
			err := h.controller.sessions.addSession(s, "")
			var refused *client.Error
			if err == nil {
				registered <- s
			} else if !errors.As(err, &refused) || refused.Code != client.CodeUnavailable {
				t.Error(err)
			}
			if err != nil && s.service != nil && !s.service.Stopped() {
				t.Errorf("%s was refused and is registered", s.name)
			}
		})
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	spawns.Wait()
	close(registered)
	for s := range registered {
		if !s.service.Stopped() {
			t.Errorf("%s is registered", s.name)
		}
	}
	if h.listener.beats.IsValid() {
		t.Error("a closed node follows heartbeats")
	}
}

// The end of a node between the registration of a session and its entry among those of the node is an error of spawn.
func TestSpawnSaysThatTheNodeIsClosing(t *testing.T) {
	t.Parallel()
	h := serveHost(t, connectServer(t), "a")
	s := &session{exportedAgent: &exportedAgent{name: "plans", spawned: true}, created: time.Now()}
	h.sessions.mu.Lock()
	h.sessions.closed = true
	h.sessions.mu.Unlock()
	if err := h.controller.sessions.register(s, ""); !errors.Is(err, errNodeClosing) || !s.service.Stopped() {
		t.Errorf("%v", err)
	}
}

// A node without the session answers no stop while another has it, also when it is busy. A busy owner says so.
func TestABusyNodeAnswersNoStopForAnother(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	a, b := serveHost(t, nc, "a"), serveHost(t, nc, "b")
	answerConversations(t, nc, func(_ int64, m *nats.Msg) { refuseRequest(t, m, client.CodeNotFound) })
	spawnSession(t, a, "plans")
	for range cap(b.promptSlots) {
		b.promptSlots <- struct{}{}
	}
	if !b.controller.isElsewhere([]byte(`{"session_id":"plans"}`)) || b.controller.isElsewhere([]byte(`{`)) || a.controller.isElsewhere([]byte(`{"session_id":"plans"}`)) {
		t.Error("b takes the session for its own, or a does not")
	}
	for _, want := range []string{`{"ok":true,"session_id":"plans"}`, "404"} {
		m, err := nc.Request("agents.stop.troupe.ops.control", []byte(`{"session_id":"plans"}`), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) != want && m.Header.Get("Nats-Service-Error-Code") != want {
			t.Errorf("%s %v, want %s", m.Data, m.Header, want)
		}
	}
}

// A conversation that answers no prompt is as busy as the run that works.
func TestAConversationIsAsBusyAsItsRun(t *testing.T) {
	t.Parallel()
	h := serveHost(t, connectServer(t), "a")
	s := &session{exportedAgent: &exportedAgent{name: "plans"}, created: time.Now()}
	if err := h.controller.sessions.addSession(s, ""); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[client.RunState]string{client.RunLive: stateBusy, client.RunParked: stateWaiting} {
		s.setWorking(client.RunInfo{RunID: "r", State: state})
		if b, i := s.beat(), s.describe(); b.State != want || b.RunID != "r" || b.Prompts != 0 || !i.Active || i.RunID != "r" {
			t.Errorf("%+v %+v", b, i)
		}
	}
	s.setWorking(client.RunInfo{})
	if b := s.beat(); b.State != stateIdle {
		t.Errorf("%+v", b)
	}
}
