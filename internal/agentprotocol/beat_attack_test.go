package agentprotocol

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// beatOf is a heartbeat at the subject of its agent, with what b leaves out.
func beatOf(b heartbeat) *nats.Msg {
	b.Agent, b.Owner, b.InstanceID, b.IntervalS = cmp.Or(b.Agent, "troupe"), cmp.Or(b.Owner, "ops"), cmp.Or(b.InstanceID, "i"), cmp.Or(b.IntervalS, 60)
	return &nats.Msg{Subject: "agents.hb." + b.Agent + "." + b.Owner + "." + b.Session, Data: encode(b)}
}

// A session gets no name of an agent of another node, by heartbeats and by a discovery: both would share its prompts.
func TestAttackSessionHasNoNameOfAnotherAgent(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	h := serveHost(t, nc, "b")
	conversation := func(name string) *session {
		return &session{exportedAgent: &exportedAgent{name: name, task: client.RunRequest{Conversation: name}}, created: time.Now()}
	}
	early := conversation("reviewer")
	if err := h.controller.sessions.addSession(early, ""); err != nil {
		t.Fatal(err)
	}
	h.listener.hearAgents(beatOf(heartbeat{Session: "reviewer", Node: "a"}))
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C { // the conversation that was there ends
		if _, ok := h.sessions.find("reviewer"); !ok {
			tick.Stop()
			break
		}
	}
	h.listener.hearInfo(&nats.Msg{Data: []byte(`{"name":"agents","id":"i","metadata":{"node":"a"},"endpoints":[{"name":"prompt","subject":"agents.prompt.troupe.ops.planner"}]}`)})
	for _, name := range []string{"reviewer", "planner", "helper", "control"} {
		for _, spawned := range []bool{true, false} {
			s := conversation(name)
			s.spawned = spawned
			if err := h.controller.sessions.addSession(s, ""); !errors.Is(err, errAgentName) {
				t.Errorf("%s, spawned %t: %v", name, spawned, err)
			}
		}
	}
	h.listener.hearInfo(&nats.Msg{Data: []byte(`{"name":"agents","id":"i","metadata":{"role":"session","node":"a"},"endpoints":[{"name":"prompt","subject":"agents.prompt.troupe.ops.plans"}]}`)})
	h.listener.hearInfo(&nats.Msg{Data: []byte(`{"name":"agents","id":"i","metadata":{"node":"b"},"endpoints":[{"name":"prompt","subject":"agents.prompt.troupe.ops.plans"}]}`)})
	h.listener.hearInfo(&nats.Msg{Data: []byte(`{"name":"agents","id":"i","metadata":{"node":"a"},"endpoints":[{"name":"prompt","subject":"agents.prompt.troupe.other.plans"}]}`)})
	spawnSession(t, h, "plans")
}

// A node that begins asks the agents of others who they are.
func TestHostDiscoversAgentsOfOtherNodes(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	serveHost(t, nc, "a")
	b, err := Serve(Config{Conn: nc, Discovery: nc, Client: client.New(nc, names.Names{}), Owner: "ops", Node: "b", Machine: "b", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		b.sessions.mu.Lock()
		found := b.sessions.isOtherAgent("helper")
		b.sessions.mu.Unlock()
		if found {
			tick.Stop()
			return
		}
	}
}

// A heartbeat counts for the owner and the name of its subject, within its limits.
func TestAttackForgedHeartbeats(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", beatTextMax+1)
	good := heartbeat{Agent: "cc", Owner: "derek", Session: "reviewer", InstanceID: "A", IntervalS: 60}
	for name, change := range map[string]func(*heartbeat){
		"another owner": func(b *heartbeat) { b.Owner = "alice" }, "another name": func(b *heartbeat) { b.Session = "other" },
		"no instance": func(b *heartbeat) { b.InstanceID = "" }, "no interval": func(b *heartbeat) { b.IntervalS = 0 },
		"an interval of two days": func(b *heartbeat) { b.IntervalS = 2 * 86400 }, "a long agent": func(b *heartbeat) { b.Agent = long },
		"a long instance": func(b *heartbeat) { b.InstanceID = long }, "a long node": func(b *heartbeat) { b.Node = long },
		"a long run": func(b *heartbeat) { b.RunID = long }, "a long state": func(b *heartbeat) { b.State = long }, "a long time": func(b *heartbeat) { b.Time = long },
		"many bytes": func(b *heartbeat) { b.Node = strings.Repeat("x", beatBytesMax) },
	} {
		b := good
		change(&b)
		if _, ok := readHeartbeat("agents.hb.cc.derek.reviewer", encode(b)); ok {
			t.Errorf("%s is accepted", name)
		}
	}
	if b, ok := readHeartbeat("agents.hb.cc.derek.reviewer", encode(good)); !ok || b.interval() != time.Minute {
		t.Errorf("%+v", b)
	}
	if _, ok := readHeartbeat("agents.hb.cc", encode(good)); ok {
		t.Error("a subject of another form is accepted")
	}
	if fast := (heartbeat{IntervalS: 1e-9}); fast.interval() != intervalMin {
		t.Errorf("%s", fast.interval())
	}
	// Another harness, or another name, does not speak for the instance.
	l := newLiveness()
	l.add(&nats.Msg{Subject: "agents.hb.cc.derek.reviewer", Data: encode(good)})
	l.add(&nats.Msg{Subject: "agents.hb.evil.derek.reviewer", Data: encode(good)})
	for key, b := range l.instances {
		if b.harness == "cc" {
			b.at = b.at.Add(-time.Hour)
			l.instances[key] = b
		}
	}
	if a := (foundAgent{subject: "agents.prompt.cc.derek.reviewer", agent: "cc", owner: "derek", session: "reviewer"}); len(l.instances) != 2 || l.silence(a) < time.Hour {
		t.Errorf("%+v, silent for %s", l.instances, l.silence(a))
	}
}

// Heartbeats of agents that have gone make room, and those of many others keep no new one out.
func TestAttackManyHeartbeats(t *testing.T) {
	t.Parallel()
	h := serveHost(t, connectServer(t), "a")
	l := newLiveness()
	hear := func(name string) {
		for _, role := range []string{roleSession, ""} {
			h.listener.hearAgents(beatOf(heartbeat{Session: name, Role: role, Node: "b", IntervalS: 86400, State: stateIdle}))
		}
		l.add(beatOf(heartbeat{Session: name}))
	}
	for i := range instancesMax + 10 {
		hear(fmt.Sprintf("s-%d", i))
	}
	_, session := h.sessions.other["s-4105"]
	_, agent := h.sessions.agents["s-4105"]
	if _, first := h.sessions.other["s-0"]; !session || !agent || first || len(h.sessions.other) != instancesMax || len(h.sessions.agents) != instancesMax || len(l.instances) != instancesMax {
		t.Errorf("%d sessions, %d agents, %d instances, the newest %t %t", len(h.sessions.other), len(h.sessions.agents), len(l.instances), session, agent)
	}
	for name, o := range h.sessions.other {
		o.at = o.at.AddDate(0, -1, 0)
		h.sessions.other[name] = o
	}
	hear("late")
	if list := h.sessions.others(); len(list) != 1 || list[0].Session != "late" {
		t.Errorf("%d sessions", len(list))
	}
}
