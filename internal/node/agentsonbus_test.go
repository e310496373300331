package node

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/agentprotocol"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// The subjects of the agents that the tests export.
const (
	promptSubject = "agents.prompt.troupe.ops.assistant"
	statusSubject = "agents.status.troupe.ops.assistant"
	beatSubject   = "agents.hb.troupe.ops.assistant"
)

// ackChunk is the first message of every reply to a prompt that is an envelope.
const ackChunk = `{"type":"status","data":"ack"}`

// startAgentsOnBus starts a node that exports its agents, with a script as its model.
func startAgentsOnBus(t *testing.T, script string, change ...func(*Config)) (*Node, *busCaller) {
	t.Helper()
	h := startNode(t, t.TempDir(), append([]func(*Config){func(c *Config) {
		c.Model, c.AgentsOnBus, c.requestsFromUser = writeScript(t, script), &AgentsOnBus{Owner: "ops"}, false
	}}, change...)...)
	return h, &busCaller{t, connectRole(t, h, bus.RoleClient)}
}

// busCaller is a caller of the protocol that knows NATS only.
type busCaller struct {
	t  *testing.T
	nc *nats.Conn
}

// request sends a request with an inbox of its own, and returns the subscription to it.
func (c *busCaller) request(subject, payload string) *nats.Subscription {
	c.t.Helper()
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err == nil {
		err = c.nc.PublishRequest(subject, inbox, []byte(payload))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return sub
}

// next is the next message of a stream.
func (c *busCaller) next(sub *nats.Subscription) *nats.Msg {
	c.t.Helper()
	m, err := sub.NextMsgWithContext(testContext(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// reply is the whole reply to a prompt.
type busReply struct {
	chunks  []string // their bytes
	text    string   // of the response chunks
	run     string   // of which the stream is
	queries []struct {
		ID           string `json:"id"`
		ReplySubject string `json:"reply_subject"`
		Prompt       string `json:"prompt"`
	}
	code, header string // of the error, if there is one
	body         struct {
		Error       string `json:"error"`
		Message     string `json:"message"`
		RetryAfterS int    `json:"retry_after_s"`
		RunID       string `json:"run_id"`
		StopReason  string `json:"stop_reason"`
		Partial     bool   `json:"partial"`
		TokensLimit int64  `json:"tokens_limit"`
	}
}

// collect reads a stream to its end, and checks the rules that hold for each. answers are the replies to its queries.
func (c *busCaller) collect(sub *nats.Subscription, answers ...string) (r busReply) {
	c.t.Helper()
	for {
		m := c.next(sub)
		if len(m.Data) == 0 && len(m.Header) == 0 {
			break
		}
		if r.code != "" {
			c.t.Errorf("a message follows the error: %s", m.Data)
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			r.code, r.header = code, m.Header.Get("Nats-Service-Error")
			if err := json.Unmarshal(m.Data, &r.body); err != nil || r.body.Error == "" || r.header == "" {
				c.t.Errorf("the error has the header %q and the body %s: %v", r.header, m.Data, err)
			}
			continue
		}
		r.add(c.t, m.Data)
		if n := len(r.queries); n > 0 && bytes.Contains(m.Data, []byte(`"query"`)) {
			if n > len(answers) {
				c.t.Fatalf("a further query: %s", m.Data)
			}
			if err := c.nc.Publish(r.queries[n-1].ReplySubject, []byte(answers[n-1])); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	if err := c.nc.FlushWithContext(testContext(c.t)); err != nil {
		c.t.Fatal(err)
	}
	if n, _, err := sub.Pending(); err != nil || n > 0 {
		c.t.Errorf("%d messages follow the terminator, %v", n, err)
	}
	if len(r.chunks) > 0 && (r.chunks[0] != ackChunk || strings.Count(strings.Join(r.chunks, "\n"), ackChunk) != 1) {
		c.t.Errorf("the stream has not one ack at its beginning: %q", r.chunks)
	}
	return r
}

// add adds a chunk to the reply.
func (r *busReply) add(t *testing.T, raw []byte) {
	t.Helper()
	var k struct {
		Type string
		Data json.RawMessage
	}
	if err := json.Unmarshal(raw, &k); err != nil || k.Type == "" || len(k.Data) == 0 {
		t.Fatalf("not a chunk: %q %v", raw, err)
	}
	r.chunks = append(r.chunks, string(raw))
	var text string
	switch k.Type {
	case "response":
		if err := json.Unmarshal(k.Data, &text); err != nil {
			t.Fatal(err)
		}
		r.text += text
	case "status":
		if err := json.Unmarshal(k.Data, &text); err != nil {
			t.Fatal(err)
		}
		if run, ok := strings.CutPrefix(text, "run:"); ok {
			r.run = run
		}
	case "query":
		r.queries = append(r.queries, struct {
			ID           string `json:"id"`
			ReplySubject string `json:"reply_subject"`
			Prompt       string `json:"prompt"`
		}{})
		if err := json.Unmarshal(k.Data, &r.queries[len(r.queries)-1]); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("a chunk of an unknown type: %s", raw)
	}
}

// prompt sends a prompt and returns the whole reply.
func (c *busCaller) prompt(payload string, answers ...string) busReply {
	c.t.Helper()
	sub := c.request(promptSubject, payload)
	defer func() { _ = sub.Unsubscribe() }()
	return c.collect(sub, answers...)
}

// writing is an agent that writes a file, which a person must approve.
const writing = `
agents:
  assistant:
    - calls: [{name: write_file, args: {path: "a.txt", content: "hello"}}]
    - text: "done: {{last}}"
`

// promptIn is a prompt of a run in a directory.
func promptIn(t *testing.T, dir string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"prompt": "Write it", "troupe": map[string]any{"dir": dir}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A caller approves a call only by a word that means that, and denies it with a reason.
func TestCallerDecidesAboutACall(t *testing.T) {
	t.Parallel()
	for name, omit := range map[string]bool{"events with texts": false, "events without texts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			noLeaks(t)
			decideAboutACall(t, omit)
		})
	}
}

func decideAboutACall(t *testing.T, omitTexts bool) {
	t.Helper()
	dir := t.TempDir()
	_, c := startAgentsOnBus(t, writing, func(c *Config) {
		if c.Roots = []string{dir}; omitTexts {
			c.EventsContent = EventsWithoutTexts
		}
	})
	file := filepath.Join(dir, "a.txt")

	r := c.prompt(promptIn(t, dir), "Sure, go ahead", "no, not now")
	if _, err := os.Stat(file); err == nil || r.code != "" || !strings.Contains(r.text, "not now") {
		t.Errorf("denied: %v %+v", err, r)
	}
	if len(r.queries) != 2 || !strings.Contains(r.queries[0].Prompt, "a.txt") || !strings.Contains(r.queries[1].Prompt, "write yes alone") {
		t.Fatalf("the queries are %+v", r.queries)
	}
	if r.queries[0].ReplySubject == r.queries[1].ReplySubject || r.queries[0].ID == r.queries[1].ID {
		t.Errorf("the queries share a subject or an id: %+v", r.queries)
	}

	r = c.prompt(promptIn(t, dir), `{"prompt":"yes"}`)
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "hello" || r.code != "" || len(r.queries) != 1 {
		t.Errorf("approved: %q %v %+v", raw, err, r)
	}
}

// asking is an agent that asks a person.
const asking = `
agents:
  assistant:
    - calls: [{name: ask_human, args: {question: "Which one?"}}]
    - text: "bought: {{last}}"
`

// A question that another person answers is the caller's no more, and the stream goes on.
func TestAnotherPersonAnswersTheQuestionOfAStream(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, asking)
	sub := c.request(promptSubject, "Buy one")
	var r busReply
	for len(r.queries) == 0 {
		r.add(t, c.next(sub).Data)
	}
	if err := connectClient(t, h).Answer(testContext(t), client.AnswerRequest{RunID: r.run, Query: questionsOf(t, h)[0].Query, Decision: spec.TextOnly, Text: "the red one"}); err != nil {
		t.Fatal(err)
	}
	for {
		m := c.next(sub)
		if len(m.Data) == 0 {
			break
		}
		r.add(t, m.Data)
	}
	if !strings.Contains(r.text, "the red one") || len(r.queries) != 1 {
		t.Errorf("%+v", r)
	}
}

// questionsOf waits for questions: the list shows one a moment after its event was heard.
func questionsOf(t *testing.T, h *Node) (list []client.Question) {
	t.Helper()
	c := connectClient(t, h)
	waitUntil(t, "a question is listed", func() bool {
		var err error
		if list, err = c.Questions(testContext(t)); err != nil {
			t.Fatal(err)
		}
		return len(list) > 0
	})
	return list
}

// A question that nobody answers ends the stream, and the run waits for a person.
func TestUnansweredQuestionEndsTheStreamAndNotTheRun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, asking, func(c *Config) { c.AgentsOnBus.AnswerTimeout = 50 * time.Millisecond })
	sub := c.request(promptSubject, "Buy one")
	var r busReply
	for {
		m := c.next(sub)
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "" {
			if code != "409" || !bytes.Contains(m.Data, []byte(`"error":"needs_human"`)) || !bytes.Contains(m.Data, []byte(r.run)) {
				t.Errorf("%s %s", code, m.Data)
			}
			break
		}
		r.add(t, m.Data)
	}
	if m := c.next(sub); len(m.Data) > 0 || len(m.Header) > 0 {
		t.Errorf("no terminator: %+v", m)
	}
	asks := connectClient(t, h)
	if err := asks.Answer(testContext(t), client.AnswerRequest{RunID: r.run, Query: questionsOf(t, h)[0].Query, Decision: spec.TextOnly, Text: "blue"}); err != nil {
		t.Fatal(err)
	}
	if info, err := asks.Wait(testContext(t), r.run); err != nil || info.State != client.RunFinished || !strings.Contains(info.Result.Text, "blue") {
		t.Errorf("%+v %v", info, err)
	}
}

// On a shared server, where events have no texts, each prompt is one run of one node, and its question reaches the caller.
func TestPromptsOnAClusterAreOneRunEach(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	e := startSharedServer(t)
	script := writeScript(t, asking)
	hosts := map[string]*Node{}
	for _, name := range []string{"a", "b"} {
		hosts[name] = startSharedNodeWith(t, e, name, func(c *Config) {
			c.LeaseTTL, c.Model, c.AgentsOnBus = shard.TTLDefault, script, &AgentsOnBus{Owner: "ops"}
		})
	}
	waitForSpread(t, hosts["a"], hosts["b"])
	const prompts = 12
	replies := make([]busReply, prompts)
	var wait sync.WaitGroup
	for i := range prompts {
		nc, err := e.Connect(bus.RoleClient)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		wait.Go(func() { replies[i] = (&busCaller{t, nc}).prompt("Buy one", "green") })
	}
	wait.Wait()
	runs := map[string]bool{}
	for _, r := range replies {
		runs[r.run] = true
		if r.code != "" || !strings.Contains(r.text, "green") {
			t.Errorf("%+v", r)
		}
	}
	list, err := connectClient(t, hosts["a"]).List(testContext(t))
	if err != nil || len(list) != prompts || len(runs) != prompts {
		t.Errorf("%d prompts made %d runs, of which the streams name %d, %v", prompts, len(list), len(runs), err)
	}
}

// A node that closes ends its streams with an error; the runs go on.
func TestStreamsEndWithTheNode(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, "default: [{text: late, delay: 1h}]")
	sub := c.request(promptSubject, "Wait")
	for r := (busReply{}); r.run == ""; {
		r.add(t, c.next(sub).Data)
	}
	if err := h.agentHost.Close(); err != nil {
		t.Fatal(err)
	}
	m := c.next(sub)
	if m.Header.Get("Nats-Service-Error-Code") != "500" || !bytes.Contains(m.Data, []byte(`"error":"node_closing"`)) {
		t.Errorf("%v %s", m.Header, m.Data)
	}
	if m := c.next(sub); len(m.Data) > 0 || len(m.Header) > 0 {
		t.Errorf("no terminator: %+v", m)
	}
}

// A node answers a limited number of prompts at once, and refuses further ones at once.
func TestPromptsAtOnceAreLimited(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, asking)
	for range agentprotocol.PromptsAtOnce {
		sub := c.request(promptSubject, "Buy one")
		if m := c.next(sub); string(m.Data) != ackChunk {
			t.Fatalf("%v %s", m.Header, m.Data)
		}
	}
	r := c.prompt("One more")
	if r.code != "429" || r.body.Error != "rate_limited" || r.body.RetryAfterS <= 0 || len(r.chunks) > 0 {
		t.Errorf("%+v", r)
	}
}

// Only those who may send the request run may prompt, and a prompt gets no more rights than such a request.
func TestAttackPrompts(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, "default: [{text: hello}]")
	watcher := connectRole(t, h, bus.RoleObserver)
	for _, subject := range []string{promptSubject, statusSubject, beatSubject} {
		if err := watcher.PublishRequest(subject, watcher.NewInbox(), []byte("Say hello")); err != nil {
			t.Fatal(err)
		}
	}
	if err := watcher.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	// A reply there would be an entry of a log, an event, or an acknowledgement.
	for _, reply := range []string{"", "troupe.box.default.0.x.root", "troupe.evt.a.b.c.d", "_INBOX_node.x", "$JS.API.INFO", "_INBOX.*"} {
		if err := c.nc.PublishMsg(&nats.Msg{Subject: promptSubject, Reply: reply, Data: []byte("Say hello")}); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.prompt(`{"prompt":"x","troupe":{"dir":"/etc"}}`); r.code != "403" || r.body.Error != "forbidden" {
		t.Errorf("a directory outside of the roots: %+v", r)
	}
	if r := c.prompt("Say hello"); r.text != "hello" {
		t.Errorf("%+v", r)
	}
	if list, err := connectClient(t, h).List(testContext(t)); err != nil || len(list) != 1 {
		t.Errorf("%d runs, want that of the last prompt only: %v", len(list), err)
	}
}

// A prompt with the id of a run that exists starts no other run, and gets its answer.
func TestPromptWithTheIDOfARun(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, "default: [{text: it is 42}]")
	id := client.NewID()
	for range 2 {
		if r := c.prompt(`{"prompt":"What is it?","troupe":{"run_id":"` + id + `"}}`); r.run != id || r.text != "it is 42" {
			t.Errorf("%+v", r)
		}
	}
	if list, err := connectClient(t, h).List(testContext(t)); err != nil || len(list) != 1 {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

// A long answer comes in several chunks, none of which cuts a character.
func TestLongAnswerComesInChunks(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	long := strings.Repeat("ä€𝄞x", 8000)
	_, c := startAgentsOnBus(t, "default: [{text: "+long+"}]", func(c *Config) { c.EventsContent = EventsWithoutTexts })
	if r := c.prompt(`{"prompt":"Speak","troupe":{"max_output_tokens":200000}}`); r.text != long || len(r.chunks) < 4 {
		t.Errorf("%d chunks with %d of %d bytes", len(r.chunks), len(r.text), len(long))
	}
}
