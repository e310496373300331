package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus"
)

// awaitQuestion reads a stream until its run has asked a question, and returns the run.
func (c *busCaller) awaitQuestion(sub *nats.Subscription) string {
	c.t.Helper()
	r := &busReply{}
	for len(r.queries) == 0 || r.run == "" {
		m := c.next(sub)
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			c.t.Fatalf("%s %s", code, m.Data)
		}
		if len(m.Data) > 0 {
			r.add(c.t, m.Data)
		}
	}
	return r.run
}

// awaitSessions waits until the controller lists sessions, and returns their names.
func (c *busCaller) awaitSessions() string {
	c.t.Helper()
	list := c.control("list", "")
	for len(list.Sessions) == 0 {
		c.next(c.subscribe("agents.hb.>"))
		list = c.control("list", "")
	}
	return list.names()
}

// The fields of a spawn hold for each run of its session, also after the end of its node: a run of it that goes on is no
// session with all rights of its agent.
func TestAttackSessionKeepsItsFieldsAfterARestart(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	state, script := t.TempDir(), writeScript(t, "default:\n  - calls: [{name: ask_human, args: {question: \"Which one?\"}}]\n  - text: done\n")
	start := func() (*Node, *busCaller) {
		h := startNode(t, state, func(c *Config) {
			c.Model, c.requestsFromUser = script, false
			c.AgentsOnBus = &AgentsOnBus{Owner: "ops", Heartbeat: 20 * time.Millisecond}
		})
		return h, &busCaller{t, connectRole(t, h, bus.RoleClient)}
	}
	first, c := start()
	user := connectClient(t, first)
	if r := c.control("spawn", `{"session_id":"narrow","allowed_tools":["Read","ask_human"],"max_turns":3,"max_lifetime_s":0}`); r.code != "" {
		t.Fatal(r.raw)
	}
	run := c.awaitQuestion(c.request("agents.prompt.troupe.ops.narrow", `{"prompt":"Buy","troupe":{"caller":"bob"}}`))
	if d, err := user.Describe(testContext(t), run); err != nil || d.Description.Caller != "agent protocol session, not verified: bob" || d.Description.RootTurns != 3 {
		t.Errorf("%+v %v", d.Description, err)
	}
	if _, err := user.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Buy", Conversation: "shop"}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, c = start()
	if all := c.awaitSessions(); all != "shop" { // in the order of the names: the run of narrow was looked at
		t.Errorf("exported are %s", all)
	}
	if _, err := c.nc.RequestWithContext(testContext(t), "agents.prompt.troupe.ops.narrow", []byte("Write")); err != nats.ErrNoResponders {
		t.Errorf("a prompt with the rights of the agent was taken: %v", err)
	}
}

// lastOf reads a stream, and returns its error or its last message.
func (c *busCaller) lastOf(sub *nats.Subscription) *nats.Msg {
	c.t.Helper()
	m := c.next(sub)
	for len(m.Data) > 0 && m.Header.Get("Nats-Service-Error-Code") == "" {
		m = c.next(sub)
	}
	return m
}

// A session that is spawned with the id of a conversation that exists ends none of its other runs, by a stop or by its
// lifetime: only those that the session began.
func TestAttackSpawnEndsNoOtherRuns(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, asking, func(c *Config) { c.AgentsOnBus.Heartbeat = time.Hour }) // the conversation is no session of its own
	user := connectClient(t, h)
	other, err := user.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Buy one", Conversation: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	spawn := func(lifetime float64) *nats.Subscription {
		if r := c.control("spawn", fmt.Sprintf(`{"session_id":"shop","max_lifetime_s":%v}`, lifetime)); r.code != "" {
			t.Fatal(r.raw)
		}
		return c.request("agents.prompt.troupe.ops.shop", "And a second one")
	}
	stream, run := spawn(0), &busReply{}
	for c.next(stream); run.run == ""; { // after ack
		run.add(t, c.next(stream).Data)
	}
	if r := c.control("stop", `{"session_id":"shop"}`); !r.OK {
		t.Fatal(r.raw)
	}
	if end := c.lastOf(stream); end.Header.Get("Nats-Service-Error-Code") != "409" || !strings.Contains(string(end.Data), `"error":"canceled"`) {
		t.Errorf("the run of the session: %s", end.Data)
	}
	for lifetime := 1.0; ; lifetime *= 2 { // a slow machine sends the prompt too late
		end := c.lastOf(spawn(lifetime))
		for len(c.control("list", "").Sessions) > 0 { // it ends after its runs
		}
		if end.Header.Get("Status") == "503" || strings.Contains(string(end.Data), `"error":"not_found"`) {
			continue
		}
		if !strings.Contains(string(end.Data), `"error":"canceled"`) {
			t.Errorf("the run of the session: %s", end.Data)
		}
		break
	}
	i, err := user.Conversations().Get(testContext(t), "shop")
	if err != nil || i.Active != other.RunID || i.Waiting != 0 || i.Count < 3 {
		t.Errorf("%+v %v", i, err)
	}
}

// A node with as many prompts as it answers at once still lists and stops a session.
func TestAttackPromptsKeepNoStopOut(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, asking)
	if r := c.control("spawn", `{"session_id":"plans","max_lifetime_s":0}`); r.code != "" {
		t.Fatal(r.raw)
	}
	stream := c.request("agents.prompt.troupe.ops.plans", "Buy one")
	for i := range agentprotocol.PromptsAtOnce {
		sub := stream
		if i > 0 {
			sub = c.request(promptSubject, "Buy one")
		}
		if m := c.next(sub); string(m.Data) != ackChunk {
			t.Fatalf("%v %s", m.Header, m.Data)
		}
	}
	if r := c.prompt("One more"); r.code != "429" {
		t.Fatalf("%+v", r)
	}
	if r := c.control("list", ""); r.names() != "plans" {
		t.Errorf("list: %s", r.raw)
	}
	if r := c.control("stop", `{"session_id":"plans"}`); !r.OK {
		t.Fatalf("stop: %s", r.raw)
	}
	if end := c.lastOf(stream); !strings.Contains(string(end.Data), `"error":"canceled"`) {
		t.Errorf("the prompt of the session: %s", end.Data)
	}
}

// A prompt that is not signed states a caller that is not taken for a signed sender, nor for a session. An owner cannot
// state one by the request run either.
func TestAttackForgedCaller(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, remembering, func(c *Config) { c.AgentsOnBus.Senders = agentprotocol.AnySender })
	user := connectClient(t, h)
	for _, forged := range []string{"agent protocol $G.UAWW24XPLGOX3R3JF4OZEZZ6RUXMB55DSWJCEFFSUDFBCKJD4MSCMQYI", "agent protocol session", "bob"} {
		r := c.prompt(fmt.Sprintf(`{"prompt":"Hello","troupe":{"caller":%q}}`, forged))
		d, err := user.Describe(testContext(t), r.run)
		if err != nil || d.Description.Caller != "agent protocol, not verified: "+forged {
			t.Errorf("%q: %+v %v", forged, d.Description, err)
		}
		m, err := c.nc.RequestWithContext(testContext(t), "troupe.cmd.as.alice.run", fmt.Appendf(nil, `{"run_id":%q,"prompt":"Hello","caller":%q}`, client.NewID(), forged))
		if err != nil {
			t.Fatal(err)
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); (code == "403") != (forged != "bob") {
			t.Errorf("%q of an owner: %q %s", forged, code, m.Data)
		}
	}
}
