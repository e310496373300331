package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/config/agentfile"
)

// foreignPeer is an agent of another program. It knows NATS only, and the bytes of the protocol.
type foreignPeer struct {
	t       *testing.T
	nc      *nats.Conn
	prompts chan *nats.Msg
}

// startPeer registers a foreign agent, which answers each prompt with messages. With answer nil it says nothing.
func startPeer(t *testing.T, nc *nats.Conn, name string, answer func(p *foreignPeer, m *nats.Msg)) *foreignPeer {
	t.Helper()
	p := &foreignPeer{t, nc, make(chan *nats.Msg, 16)}
	token := strings.Split(name, "/")
	s, err := micro.AddService(nc, micro.Config{Name: "agents", Version: "1.0.0", Metadata: map[string]string{"agent": token[0], "owner": token[1], "session": token[2], "protocol_version": "0.3"}})
	if err == nil {
		t.Cleanup(func() { _ = s.Stop() }) // the connection may be closed
		err = s.AddEndpoint("prompt", micro.HandlerFunc(func(r micro.Request) {
			m := &nats.Msg{Reply: r.Reply(), Header: nats.Header(r.Headers()), Data: r.Data()}
			p.prompts <- m
			if answer != nil {
				answer(p, m)
			}
		}), micro.WithEndpointSubject("agents.prompt."+strings.ReplaceAll(name, "/", ".")), micro.WithEndpointQueueGroup("agents"),
			micro.WithEndpointMetadata(map[string]string{"max_payload": "1MB", "attachments_ok": "false"}))
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// send publishes messages with these bodies.
func (p *foreignPeer) send(m *nats.Msg, bodies ...string) {
	for _, body := range bodies {
		if err := p.nc.Publish(m.Reply, []byte(body)); err != nil {
			p.t.Error(err)
		}
	}
}

// fail publishes an error of the protocol, and the end of the stream.
func (p *foreignPeer) fail(m *nats.Msg, code, words, body string) {
	header := nats.Header{"Nats-Service-Error-Code": {code}, "Nats-Service-Error": {words}}
	if err := p.nc.PublishMsg(&nats.Msg{Subject: m.Reply, Header: header, Data: []byte(body)}); err != nil {
		p.t.Error(err)
	}
	p.send(m, "")
}

// awaitPrompt returns the next prompt that the agent has got.
func (p *foreignPeer) awaitPrompt() *nats.Msg {
	p.t.Helper()
	select {
	case m := <-p.prompts:
		return m
	case <-testContext(p.t).Done():
		p.t.Fatal("the agent got no prompt")
		return nil
	}
}

// writeBoss writes the file of an agent that may call others, and returns its directory.
func writeBoss(t *testing.T, delegates string) string {
	t.Helper()
	dir := t.TempDir()
	text := "---\nname: boss\ndescription: Delegates.\nx-troupe:\n  delegates: [" + delegates + "]\n---\nDelegate.\n"
	if err := os.WriteFile(filepath.Join(dir, "boss.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bossScript is a model that gives its task to an agent, by the name in the prompt, and repeats the answer.
const bossScript = `
agents:
  boss:
    - calls: [{name: delegate, args: {agent: "{{task}}", task: "{Review A."}}]
    - text: "It said: {{last}}"
`

// startBossNode starts a node that may read the agent files of a directory.
func startBossNode(t *testing.T, dir string, change ...func(*Config)) *Node {
	t.Helper()
	return startNode(t, t.TempDir(), append(change, func(c *Config) { c.Roots = append(c.Roots, dir) })...)
}

// askBoss runs the boss, which calls an agent of another program.
func askBoss(t *testing.T, h *Node, r client.RunRequest) (string, *client.Client) {
	t.Helper()
	c := connectClient(t, h)
	r.Agent, r.Yes = "boss", true
	return beginRun(t, c, r), c
}

// callEnd is the end of a call, as observers see it.
type callEnd struct {
	Text    string             `json:"text"`
	Error   bool               `json:"error"`
	Metrics map[string]float64 `json:"metrics"`
}

// endOfCall waits for the end of a run that has made one call, and returns how that ended.
func endOfCall(t *testing.T, c *client.Client, id string) (callEnd, client.RunInfo) {
	t.Helper()
	info, err := c.Wait(testContext(t), id)
	if err != nil || info.State != client.RunFinished {
		t.Fatalf("%+v %v", info, err)
	}
	var e struct{ Data callEnd }
	raw := eventsOfKind(t, c, id, event.KindToolFinished)
	if len(raw) != 1 {
		t.Fatalf("%d calls have ended: %.400q", len(raw), raw)
	}
	if err := json.Unmarshal([]byte(raw[0]), &e); err != nil {
		t.Fatal(err)
	}
	return e.Data, info
}

// What an agent of another program answers, and how it fails, is the result of the call, in words that say what is known.
//
//behaviour:shows H5
func TestForeignAgentsAreDelegates(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	cases := map[string]struct {
		answer func(p *foreignPeer, m *nats.Msg)
		want   []string // in the result of the run
		fails  bool
	}{
		"works": {func(p *foreignPeer, m *nats.Msg) {
			p.send(m, `{"type":"status","data":"ack"}`, `{"type":"response","data":"A is"}`, `{"type":"status","data":"working","x":1}`, `{"type":"later","data":[1]}`,
				`{"type":"response","data":{"text":" safe.","attachments":[]}}`, "")
		}, []string{"A is safe."}, false},
		"silent": {func(p *foreignPeer, m *nats.Msg) { p.send(m, `{"type":"status","data":"ack"}`, "") }, nil, false},
		"busy": {func(p *foreignPeer, m *nats.Msg) {
			p.fail(m, "429", "slow down", `{"error":"rate_limited","message":"Too many requests","retry_after_s":30}`)
		}, []string{`cc/derek/busy: the agent reports an error: "429" "rate_limited: Too many requests"`}, true},
		"broken": {func(p *foreignPeer, m *nats.Msg) {
			p.send(m, `{"type":"status","data":"ack"}`, `{"type":"response","data":"A is"}`)
			p.fail(m, "500", "it fell over", "not json")
		}, []string{"[partial: the first 4 bytes", "A is\n", `"500" "it fell over"`}, true},
		"asks": {func(p *foreignPeer, m *nats.Msg) { // its answer would be an entry of a log
			p.send(m, `{"type":"status","data":"ack"}`, `{"type":"query","data":{"id":"1","reply_subject":"troupe.box.r.root","prompt":"Which one?"}}`)
		}, []string{"none of the protocol, and was not sent", `"Which one?"`}, true},
		"hostile": {func(p *foreignPeer, m *nats.Msg) { p.send(m, "\xff\xfe{") }, []string{"not a chunk of the protocol", "unknown"}, true},
		"endless": {func(p *foreignPeer, m *nats.Msg) {
			for range 20 {
				p.send(m, `{"type":"response","data":"`+long+`"}`)
			}
		}, []string{"longer than 1048576 bytes"}, true},
		"nobody": {nil, []string{"no agent answers at this name", "was not taken"}, true},
	}
	dir := writeBoss(t, "cc/derek/"+strings.Join(slices.Collect(maps.Keys(cases)), ", cc/derek/"))
	h, model := startBossNode(t, dir), writeScript(t, bossScript)
	nc := connectRole(t, h, bus.RoleNode)
	for name, k := range cases {
		if k.answer != nil {
			startPeer(t, nc, "cc/derek/"+name, k.answer)
		}
	}
	for name, k := range cases {
		id, c := askBoss(t, h, client.RunRequest{Prompt: "cc/derek/" + name, Agents: dir, Model: model})
		end, info := endOfCall(t, c, id)
		for _, want := range k.want {
			if !strings.Contains(end.Text, want) {
				t.Errorf("%s: %.600q lacks %q", name, end.Text, want)
			}
		}
		if end.Error != k.fails || end.Metrics["cost_unknown"] != 1 {
			t.Errorf("%s: %+v", name, end)
		}
		if info.Result.CostKnown {
			t.Errorf("%s: the cost of the run passes for known", name)
		}
		if n := len(eventsOfKind(t, c, id, event.KindAgentSpawned)); n != 2 { // the other one stands for the agent
			t.Errorf("%s: %d agents were started", name, n)
		}
	}
}

// The agent gets the task in an envelope, so that a task that begins with a brace is text. The model is told of it, and only of
// what the file names: any other name reaches nobody.
//
//behaviour:shows H5
func TestForeignAgentGetsTheTask(t *testing.T) {
	t.Parallel()
	dir, model := writeBoss(t, "cc/derek/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir)
	nc := connectRole(t, h, bus.RoleNode)
	done := func(p *foreignPeer, m *nats.Msg) { p.send(m, `{"type":"response","data":"done"}`, "") }
	named, other := startPeer(t, nc, "cc/derek/reviewer", done), startPeer(t, nc, "cc/derek/other", done)
	id, c := askBoss(t, h, client.RunRequest{Prompt: "cc/derek/reviewer", Agents: dir, Model: model})
	waitFinished(t, c, id, spec.Completed)
	if m := named.awaitPrompt(); string(m.Data) != `{"prompt":"{Review A."}` {
		t.Errorf("the prompt is %s", m.Data)
	}
	for _, name := range []string{"cc/derek/other", "cc/derek/*", "cc.derek.other", "cc/derek/reviewer ", "../other"} {
		id, c := askBoss(t, h, client.RunRequest{Prompt: name, Agents: dir, Model: model})
		if info, err := c.Wait(testContext(t), id); err != nil || !strings.Contains(info.Result.Detail, "not delegated: there is no agent") || !strings.Contains(info.Result.Detail, "the agents are: cc/derek/reviewer") {
			t.Errorf("%s: %+v %v", name, info.Result, err)
		}
	}
	if n := len(other.prompts) + len(named.prompts); n > 0 {
		t.Errorf("%d prompts went out that no file allows", n)
	}
}

// Without a rule a person is asked about the call; a directory's own agents name no agents of other programs.
//
//behaviour:shows H5
func TestForeignAgentsNeedPermission(t *testing.T) {
	t.Parallel()
	dir, model := writeBoss(t, "cc/derek/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir)
	p := startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
		p.send(m, `{"type":"response","data":"done"}`, "")
	})
	c := connectClient(t, h)
	r := client.RunRequest{Prompt: "cc/derek/reviewer", Agent: "boss", Agents: dir, Model: model}
	id := beginRun(t, c, r)
	if info, err := c.Wait(testContext(t), id); err != nil || !strings.Contains(info.Result.Text+info.Result.Detail, "no rule allows cc/derek/reviewer") {
		t.Errorf("without a rule: %+v %v", info.Result, err)
	}
	r.AllowedTools = []string{"delegate(cc/derek/*)"}
	id = beginRun(t, c, r)
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "It said: done" {
		t.Errorf("with a rule: %+v", info.Result)
	}
	if n := len(p.prompts); n != 1 {
		t.Errorf("%d prompts went out", n)
	}
	work := t.TempDir()
	if err := os.MkdirAll(filepath.Join(work, ".troupe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, filepath.Join(work, ".troupe", "agents")); err != nil {
		t.Fatal(err)
	}
	open := startNode(t, t.TempDir(), func(c *Config) { c.Roots, c.Model, c.requestsFromUser = []string{work}, model, false })
	c = connectClient(t, open)
	id = client.NewID()
	a, err := c.Run(testContext(t), client.RunRequest{RunID: id, Prompt: "cc/derek/reviewer", Agent: "boss", Dir: work, Yes: true})
	if err != nil || !strings.Contains(fmt.Sprint(a.Notes), "agents of other programs") {
		t.Errorf("%+v %v", a, err)
	}
	if info, err := c.Wait(testContext(t), id); err != nil || strings.Contains(info.Result.Text, "no agent answers") || len(p.prompts) != 1 {
		t.Errorf("an agent of a directory: %+v %v", info.Result, err)
	}
}

// Nobody reports the cost of a foreign agent: under a limit in money it needs consent by its name.
//
//behaviour:shows H5
func TestForeignAgentsUnderALimitInMoney(t *testing.T) {
	t.Parallel()
	dir := writeBoss(t, "cc/derek/reviewer")
	h := startBossNode(t, dir)
	startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", func(p *foreignPeer, m *nats.Msg) {
		p.send(m, `{"type":"response","data":"done"}`, "")
	})
	c := connectClient(t, h)
	r := client.RunRequest{RunID: client.NewID(), Prompt: "cc/derek/reviewer", Agent: "boss", Agents: dir, Model: writeScript(t, bossScript), MaxBudgetUSD: 1, Yes: true}
	if _, err := c.Run(testContext(t), r); err == nil || !strings.Contains(fmt.Sprintf("%+v", err), "whose cost is unknown") {
		t.Errorf("a limit in money that cannot be kept: %v", err)
	}
	r.AllowUnpriced = []string{"cc/derek/reviewer"}
	if a, err := c.Run(testContext(t), r); err != nil || !strings.Contains(fmt.Sprint(a.Notes), "the limit in money does not hold for its calls") {
		t.Errorf("%+v %v", a, err)
	}
	if info := waitFinished(t, c, r.RunID, spec.Completed); info.Result.Text != "It said: done" || info.Result.CostKnown {
		t.Errorf("%+v", info.Result)
	}
}

// A call ends with the operator's timeout, and with the cancel of its run, although the agent says nothing more.
//
//behaviour:shows H5
func TestForeignAgentThatSaysNothingMore(t *testing.T) {
	t.Parallel()
	starts := func(p *foreignPeer, m *nats.Msg) {
		p.send(m, `{"type":"status","data":"ack"}`, `{"type":"response","data":"A is"}`)
	}
	dir, model := writeBoss(t, "cc/derek/reviewer"), writeScript(t, bossScript)
	h := startBossNode(t, dir, func(c *Config) { c.Tools = []agentfile.ToolRule{{Name: "delegate", Timeout: 300 * time.Millisecond}} })
	startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", starts)
	id, c := askBoss(t, h, client.RunRequest{Prompt: "cc/derek/reviewer", Agents: dir, Model: model})
	if end, _ := endOfCall(t, c, id); !strings.Contains(end.Text, "A is\ndelegate timed out after 300ms") || !strings.Contains(end.Text, "what it did is unknown") {
		t.Errorf("timeout: %+v", end)
	}
	h = startBossNode(t, dir)
	p := startPeer(t, connectRole(t, h, bus.RoleNode), "cc/derek/reviewer", starts)
	id, c = askBoss(t, h, client.RunRequest{Prompt: "cc/derek/reviewer", Agents: dir, Model: model})
	p.awaitPrompt()
	began := time.Now()
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: id, Now: true, Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(testContext(t), id); err != nil || info.State != client.RunFinished || time.Since(began) > patience/2 {
		t.Errorf("canceled after %s: %+v %v", time.Since(began), info, err)
	}
}

// The task is not sent again when the node dies during the call: a person decides.
//
//behaviour:shows H5
func TestForeignAgentIsNotAskedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	p := startPeer(t, nc, "cc/derek/reviewer", nil)
	dir, model := writeBoss(t, "cc/derek/reviewer"), writeScript(t, bossScript)
	first := startSharedNode(t, e, "one", shard.TTLMin, dir)
	id, _ := askBoss(t, first, client.RunRequest{Prompt: "cc/derek/reviewer", Agents: dir, Model: model})
	p.awaitPrompt()
	first.cutNetwork()
	c := connectClient(t, startSharedNode(t, e, "two", shard.TTLMin, dir))
	awaitEvents(t, c, id, event.KindCheckpointResumeUnsafe, 1)
	if n := len(p.prompts); n != 0 {
		t.Errorf("the task was sent %d times more", n)
	}
	open, err := c.Questions(testContext(t))
	if err != nil || len(open) != 1 || !strings.Contains(open[0].Question, "its outcome is unknown") {
		t.Fatalf("%+v %v", open, err)
	}
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: id, Query: open[0].Query, Decision: spec.TextOnly, Text: "it was reviewed"}); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Wait(testContext(t), id); err != nil || !strings.Contains(info.Result.Text, "it was reviewed") || len(p.prompts) != 0 {
		t.Errorf("%+v %v, %d prompts", info.Result, err, len(p.prompts))
	}
}

// An agent that calls itself by the protocol calls itself once: a run that another program has started calls no agents of
// other programs. Otherwise each call would start a run with a budget of its own, without end.
//
//behaviour:shows H5
func TestExportedAgentThatCallsItselfEnds(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	loop := "---\nname: loop\ndescription: Calls itself.\nx-troupe: {delegates: [troupe/ops/loop], export: true}\n---\nWork.\n"
	if err := os.MkdirAll(filepath.Join(home, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "agents", "loop.md"), []byte(loop), 0o600); err != nil {
		t.Fatal(err)
	}
	permissions := spec.Permissions{Allow: []spec.PermissionRule{{Text: "delegate(troupe/*)"}}}
	h, _ := startAgentsOnBus(t, `
repeat: true
default:
  - calls: [{name: delegate, args: {agent: troupe/ops/loop, task: "Again."}}]
  - text: "[done] It said: {{last}}"
`, func(c *Config) { c.UserDirs, c.Permissions = true, permissions })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "loop", Prompt: "Begin."})
	info := waitFinished(t, c, id, spec.Completed)
	list, err := c.List(testContext(t))
	if err != nil || len(list) != 2 || !strings.Contains(info.Result.Text, "delegate(*/*)") {
		t.Errorf("%d runs, %v: %s", len(list), err, info.Result.Text)
	}
}

// The agents that a node exports are such agents, too.
//
//behaviour:shows H5
func TestExportedAgentIsAForeignDelegate(t *testing.T) {
	t.Parallel()
	dir := writeBoss(t, "troupe/ops/assistant")
	h, _ := startAgentsOnBus(t, `
agents:
  assistant: [{text: "A is safe."}]
  boss:
    - calls: [{name: delegate, args: {agent: "{{task}}", task: "{Review A."}}]
    - text: "It said: {{last}}"
`, func(c *Config) { c.Roots, c.requestsFromUser = []string{dir}, true })
	id, c := askBoss(t, h, client.RunRequest{Prompt: "troupe/ops/assistant", Agents: dir})
	if info := waitFinished(t, c, id, spec.Completed); info.Result.Text != "It said: A is safe." {
		t.Errorf("%+v", info.Result)
	}
	if list, err := c.List(testContext(t)); err != nil || len(list) != 2 {
		t.Errorf("%+v %v", list, err)
	}
}
