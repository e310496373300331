package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus"
)

// sessionReply is an answer of the controller of sessions.
type sessionReply struct {
	code, header string
	raw          string
	OK           bool   `json:"ok"`
	SessionID    string `json:"session_id"`
	Subject      string `json:"subject"`
	InstanceID   string `json:"instance_id"`
	Error        string `json:"error"`
	Sessions     []struct {
		SessionID string `json:"session_id"`
		Subject   string `json:"subject"`
		Node      string `json:"node"`
		Dir       string `json:"cwd"`
		Active    bool   `json:"active_request"`
		Queued    int    `json:"queued_requests"`
	} `json:"sessions"`
}

// control sends a request to the controller of sessions, as "nats req" does.
func (c *busCaller) control(verb, payload string) (r sessionReply) {
	c.t.Helper()
	m, err := c.nc.RequestWithContext(testContext(c.t), "agents."+verb+".troupe.ops.control", []byte(payload))
	if err != nil {
		c.t.Fatalf("%s %s: %v", verb, payload, err)
	}
	r.code, r.header, r.raw = m.Header.Get("Nats-Service-Error-Code"), m.Header.Get("Nats-Service-Error"), string(m.Data)
	if err := json.Unmarshal(m.Data, &r); err != nil {
		c.t.Fatalf("%s: %v", m.Data, err)
	}
	return r
}

// names are the sessions of a list.
func (r sessionReply) names() string {
	var all []string
	for _, s := range r.Sessions {
		all = append(all, s.SessionID)
	}
	return strings.Join(all, " ")
}

// remembering answers with the first message of its history.
const remembering = "default: [{text: \"Told: {{task}}\"}, {text: \"Told: {{task}}\"}, {text: \"Told: {{task}}\"}]"

// A session that was spawned is an agent of its own: discovered, with a status, prompted in its conversation, listed
// and stopped.
func TestSpawnedSessionIsAnAgent(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := t.TempDir()
	h, c := startAgentsOnBus(t, remembering, func(c *Config) { c.Roots = []string{dir} })
	spawned := c.control("spawn", `{"session_id":"plans","cwd":"`+dir+`","model":"","allowed_tools":["Read"],"permission_mode":"dontAsk","max_turns":5,"max_lifetime_s":900,"unknown":1}`)
	var raw map[string]any
	if err := json.Unmarshal([]byte(spawned.raw), &raw); err != nil || spawned.code != "" {
		t.Fatalf("%+v %v", spawned, err)
	}
	for field, want := range map[string]any{"session_id": "plans", "subject": "agents.prompt.troupe.ops.plans", "heartbeat_subject": "agents.hb.troupe.ops.plans",
		"status_subject": "agents.status.troupe.ops.plans", "agent": "assistant", "cwd": dir, "permission_mode": "dontAsk", "max_turns": 5.0, "max_lifetime_s": 900.0, "node": "host",
		"active_request": false, "queued_requests": 0.0} {
		if raw[field] != want {
			t.Errorf("%s is %v, want %v", field, raw[field], want)
		}
	}
	info := c.discover("$SRV.INFO.agents."+spawned.InstanceID, 1)[0]
	if m := info.Metadata; m["session"] != "plans" || m["role"] != "session" || m["protocol_version"] != "0.3" || info.Endpoints[0].Subject != spawned.Subject {
		t.Errorf("%+v", info)
	}
	if m, err := c.nc.RequestWithContext(testContext(t), "agents.status.troupe.ops.plans", nil); err != nil || !strings.Contains(string(m.Data), `"session":"plans"`) ||
		!strings.Contains(string(m.Data), `"role":"session"`) {
		t.Errorf("%s %v", m.Data, err)
	}
	for i := range 2 {
		r := c.collect(c.request(spawned.Subject, fmt.Sprintf("prompt %d", i)))
		if r.code != "" || r.text != "Told: prompt 0" { // the first message of the history
			t.Fatalf("%+v", r)
		}
		d, err := connectClient(t, h).Describe(testContext(t), r.run)
		if err != nil || d.Conversation != "plans" || d.Description.Goal != fmt.Sprintf("prompt %d", i) || d.Description.Workspace != dir || d.Description.Caller != "agent protocol session" {
			t.Errorf("%+v %v", d, err)
		}
	}
	if list := c.control("list", ""); len(list.Sessions) != 1 || list.Sessions[0].SessionID != "plans" || list.Sessions[0].Dir != dir || list.Sessions[0].Node != "host" {
		t.Errorf("%s", list.raw)
	}
	if r := c.control("stop", `{"session_id":"plans"}`); r.raw != `{"ok":true,"session_id":"plans"}` {
		t.Errorf("%s", r.raw)
	}
	if list := c.control("list", ""); list.raw != `{"sessions":[]}` {
		t.Errorf("%s", list.raw)
	}
	if _, err := c.nc.RequestWithContext(testContext(t), spawned.Subject, []byte("Still there?")); err != nats.ErrNoResponders {
		t.Errorf("a stopped session answers: %v", err)
	}
	// Its conversation stays, and a session of the same name continues it.
	if r := c.control("spawn", `{"session_id":"plans"}`); r.code != "" {
		t.Fatal(r.raw)
	}
	r := c.collect(c.request(spawned.Subject, "Again"))
	if i, err := connectClient(t, h).Conversations().Get(testContext(t), "plans"); err != nil || i.Count != 3 || r.code != "" {
		t.Errorf("%+v %+v %v", r, i, err)
	}
}

// A conversation with a run that works is an agent for as long as the run does. Its prompts continue the conversation
// with the agent and in the directory of that run.
func TestRunningConversationIsAnAgent(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir := t.TempDir()
	h, c := startAgentsOnBus(t, asking, func(c *Config) { c.Roots, c.AgentsOnBus.Heartbeat = []string{dir}, 20*time.Millisecond })
	asks := connectClient(t, h)
	first, err := asks.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "Buy one", Dir: dir, Conversation: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	list := c.control("list", "")
	for len(list.Sessions) == 0 {
		c.next(c.subscribe("agents.hb.>"))
		list = c.control("list", "")
	}
	if list.names() != "shop" || list.Sessions[0].Subject != "agents.prompt.troupe.ops.shop" || list.Sessions[0].Dir != dir {
		t.Fatalf("%s", list.raw)
	}
	second := c.request("agents.prompt.troupe.ops.shop", "And a second one")
	if m := c.next(second); string(m.Data) != ackChunk {
		t.Fatalf("%s", m.Data)
	}
	run := (&busReply{})
	for run.run == "" {
		run.add(t, c.next(second).Data)
	}
	d, err := asks.Describe(testContext(t), run.run)
	if err != nil || d.Conversation != "shop" || d.Description.Workspace != dir || d.Description.Root != "assistant" {
		t.Errorf("%+v %v", d, err)
	}
	// stop cancels both runs; the stream says so.
	if r := c.control("stop", `{"session_id":"shop"}`); !r.OK {
		t.Fatalf("%s", r.raw)
	}
	for {
		m := c.next(second)
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			if code != "409" || !strings.Contains(string(m.Data), `"error":"canceled"`) {
				t.Errorf("%s %s", code, m.Data)
			}
			break
		}
	}
	for _, id := range []string{first.RunID, run.run} {
		waitUntil(t, "the run "+id+" has ended", func() bool { // its row says for a moment that it waits for a person
			info, err := asks.Get(testContext(t), id)
			return err == nil && info.State == client.RunFinished && info.Result.Reason == "canceled"
		})
	}
	for list = c.control("list", ""); len(list.Sessions) > 0; list = c.control("list", "") {
		c.next(c.subscribe("agents.hb.>"))
	}
}

// subscribe subscribes to a subject for one message.
func (c *busCaller) subscribe(subject string) *nats.Subscription {
	c.t.Helper()
	sub, err := c.nc.SubscribeSync(subject)
	if err == nil {
		err = sub.AutoUnsubscribe(1)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return sub
}

// A session whose lifetime is over is stopped, with its runs.
func TestSessionEndsWithItsLifetime(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, "default: [{text: late, delay: 1h}]")
	for lifetime := 1.0; ; lifetime *= 2 { // a slow machine sends the prompt too late
		s := c.control("spawn", fmt.Sprintf(`{"max_lifetime_s":%v}`, lifetime))
		sub := c.request(s.Subject, "Wait")
		m := c.next(sub)
		if m.Header.Get("Status") == "503" {
			continue
		}
		for m.Header.Get("Nats-Service-Error-Code") == "" {
			m = c.next(sub)
		}
		if m.Header.Get("Nats-Service-Error-Code") == "409" && strings.Contains(string(m.Data), `"error":"canceled"`) {
			break
		}
		if !strings.Contains(string(m.Data), `"error":"not_found"`) {
			t.Fatalf("%s", m.Data)
		}
	}
	if list := c.control("list", ""); len(list.Sessions) > 0 {
		t.Error(list.raw)
	}
}

// Requests to the controller that are malformed, or for what is not allowed, are refused, by the taxonomy of the
// protocol.
func TestControllerRefuses(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	root, outside := t.TempDir(), t.TempDir()
	_, c := startAgentsOnBus(t, remembering, func(c *Config) { c.Roots = []string{root} })
	if r := c.control("spawn", `{"session_id":"taken","max_lifetime_s":0}`); r.code != "" {
		t.Fatal(r.raw)
	}
	for _, k := range []struct{ verb, payload, code, word string }{
		{"spawn", `{`, "400", "bad_request"},
		{"spawn", `[]`, "400", "bad_request"},
		{"spawn", `{"session_id":"No Token"}`, "400", "bad_request"},
		{"spawn", `{"session_id":"` + strings.Repeat("x", 59) + `"}`, "400", "bad_request"},
		{"spawn", `{"session_id":7}`, "400", "bad_request"},
		{"spawn", `{"permission_mode":"all"}`, "400", "bad_request"},
		{"spawn", `{"max_turns":-1}`, "400", "bad_request"},
		{"spawn", `{"max_lifetime_s":-1}`, "400", "bad_request"},
		{"spawn", `{"max_lifetime_s":1e300}`, "400", "bad_request"},
		{"spawn", `{"max_lifetime_s":1e-10}`, "400", "bad_request"},
		{"spawn", `{"max_lifetime_s":0.9}`, "400", "bad_request"},
		{"spawn", `{"allowed_tools":"Read"}`, "400", "bad_request"},
		{"spawn", `{"agent":"nobody"}`, "404", "not_found"},
		{"spawn", `{"cwd":"` + outside + `"}`, "403", "forbidden"},
		{"spawn", `{"session_id":"taken"}`, "409", "conflict"},
		{"spawn", `{"session_id":"assistant"}`, "409", "conflict"},
		{"spawn", `{"session_id":"control"}`, "409", "conflict"},
		{"stop", ``, "400", "bad_request"},
		{"stop", `{"session_id":""}`, "400", "bad_request"},
		{"stop", `{"session_id":"*"}`, "400", "bad_request"},
		{"stop", `{"session_id":"nowhere"}`, "404", "not_found"},
		{"stop", `{"session_id":"assistant"}`, "404", "not_found"},
	} {
		if r := c.control(k.verb, k.payload); r.code != k.code || r.Error != k.word || r.header == "" {
			t.Errorf("%s %.80s: %s %s", k.verb, k.payload, r.code, r.raw)
		}
	}
	if r := c.collect(c.request("agents.prompt.troupe.ops.taken", `{"prompt":"x","troupe":{"conversation":"other"}}`)); r.code != "400" {
		t.Errorf("a prompt for another conversation: %+v", r)
	}
	for i := range 63 {
		if r := c.control("spawn", fmt.Sprintf(`{"session_id":"s-%d"}`, i)); r.code != "" {
			t.Fatal(r.raw)
		}
	}
	if r := c.control("spawn", `{}`); r.code != "429" || r.Error != "rate_limited" {
		t.Errorf("one session more than there may be: %s", r.raw)
	}
	if r := c.collect(c.request("agents.prompt.troupe.ops.control", "help")); r.code != "" || !strings.Contains(r.text, "session_id") {
		t.Errorf("%+v", r)
	}
}

// Only a client may use the controller, and where agents take signed senders only, only with a signature.
func TestAttackController(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, remembering, func(c *Config) { c.AgentsOnBus.Senders = agentprotocol.SignedSender })
	for verb, payload := range map[string]string{"spawn": `{"session_id":"x"}`, "list": "", "stop": `{"session_id":"x"}`} {
		if r := c.control(verb, payload); r.code != "401" || r.Error != "sender_not_signed" {
			t.Errorf("%s: %s %s", verb, r.code, r.raw)
		}
	}
	observer := connectRole(t, h, bus.RoleObserver)
	if m, err := observer.Request("agents.spawn.troupe.ops.control", []byte(`{"session_id":"x"}`), 200*time.Millisecond); err == nil {
		t.Errorf("an observer got %s", m.Data)
	}
}

// A request to the controller whose reply subject is not the inbox of a client starts nothing.
func TestAttackControllerReplies(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, remembering)
	for _, reply := range []string{"troupe.cmd.run", "agents.prompt.troupe.ops.assistant", "troupe.evt.x"} {
		if err := c.nc.PublishRequest("agents.spawn.troupe.ops.control", reply, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.control("spawn", `{"session_id":"real"}`); r.code != "" {
		t.Fatal(r.raw)
	}
	if list := c.control("list", ""); list.names() != "real" {
		t.Error(list.raw)
	}
}

// The nodes of a cluster list the sessions of all, one of them takes each spawn, and that one answers a stop.
func TestSessionsOfACluster(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	c := startAgentsOnCluster(t, remembering)
	const sessions = 12
	at := map[string]bool{}
	for i := range sessions {
		if r := c.control("spawn", fmt.Sprintf(`{"session_id":"s-%02d"}`, i)); r.code != "" {
			t.Fatal(r.raw)
		}
	}
	list := c.control("list", "")
	for len(list.Sessions) < sessions {
		c.next(c.subscribe("agents.hb.>"))
		list = c.control("list", "")
	}
	for _, s := range list.Sessions {
		at[s.Node] = true
	}
	if len(list.Sessions) != sessions || len(at) != 2 {
		t.Errorf("%s", list.raw)
	}
	for i := range sessions {
		if r := c.collect(c.request(fmt.Sprintf("agents.prompt.troupe.ops.s-%02d", i), "Hello")); r.code != "" || !strings.Contains(r.text, "Hello") {
			t.Errorf("%+v", r)
		}
		if r := c.control("stop", fmt.Sprintf(`{"session_id":"s-%02d"}`, i)); !r.OK {
			t.Errorf("%s", r.raw)
		}
	}
	if r := c.control("stop", `{"session_id":"s-00"}`); r.code != "404" {
		t.Errorf("%s", r.raw)
	}
}
