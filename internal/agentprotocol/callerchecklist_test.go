package agentprotocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// infoOf is the answer of an agent to a discovery, as bytes of the protocol.
func infoOf(agent, owner, session, version, subject, endpoint string) string {
	return fmt.Sprintf(`{"name":"agents","id":"I1","version":"1.0.0","description":"x","metadata":{"agent":%q,"owner":%q,"session":%q,"protocol_version":%q,"later":"x"},`+
		`"endpoints":[{"name":"later","subject":"agents.later.x"},{"name":"prompt","subject":%q,"queue_group":"agents","metadata":{%s}}]}`, agent, owner, session, version, subject, endpoint)
}

// rawAgent answers discoveries with these bytes, and prompts at a subject with messages.
func rawAgent(t *testing.T, nc *nats.Conn, subject string, info []string, answer func(m *nats.Msg)) {
	t.Helper()
	_, err := nc.Subscribe("$SRV.INFO.agents", func(m *nats.Msg) { publish(t, nc, m.Reply, info...) })
	if err == nil {
		_, err = nc.Subscribe(subject, answer)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const (
	usualEndpoint = `"max_payload":"1MB","attachments_ok":true`
	usualSubject  = "agents.prompt.cc.derek.reviewer"
)

// Each item of the checklist for callers in section 12 of the specification, by the bytes of an agent that only this
// test plays. Unknown endpoints and metadata are in the bytes of every agent. Heartbeats before discovery, liveness by
// instance, headers and the end of a stream have tests of their own below. Two items do not apply: "enforces attachments_ok",
// since a call sends no attachments, and "preserves unknown metadata fields when relaying", since nothing is relayed.
//
//behaviour:shows H5
func TestCallerChecklist(t *testing.T) {
	t.Parallel()
	done := []string{`{"type":"status","data":"ack"}`, `{"type":"response","data":"done"}`, ""}
	var running sync.WaitGroup // they wait more than they work: all at once
	for _, k := range []struct {
		item, info, subject string
		sends               []string
		text                string
		want                error
	}{
		{"publishes to the prompt endpoint's subject as reported", infoOf("cc", "derek", "reviewer", "0.3", "my.own.subject", usualEndpoint), "my.own.subject", done, "done", nil},
		{"takes the name from the tokens of a default subject", infoOf("claude-code", "derek", "x", "0.3", usualSubject, usualEndpoint), usualSubject, done, "done", nil},
		{"does not construct the subject from identity alone", infoOf("claude-code", "derek", "other", "0.3", "my.own.subject", usualEndpoint), usualSubject, done, "", errNobody},
		{"reads protocol_version: an older one has other subjects", infoOf("claude-code", "derek", "reviewer", "0.2", usualSubject, usualEndpoint), usualSubject, done, "", errVersion},
		{"reads protocol_version: another major one", infoOf("claude-code", "derek", "reviewer", "1.0", usualSubject, usualEndpoint), usualSubject, done, "", errVersion},
		{"reads protocol_version: a later minor one, with a patch", infoOf("claude-code", "derek", "reviewer", "0.4.1-rc1", usualSubject, usualEndpoint), usualSubject, done, "done", nil},
		{"enforces max_payload before publishing", infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, `"max_payload":"12B","attachments_ok":"false"`), usualSubject, done, "", errNotSent},
		{"reads min_sender_trust, and takes an unknown value for signed", infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint+`,"min_sender_trust":"later"`), usualSubject, done, "", errSigned},
		{"publishes at no subject of this system", infoOf("cc", "derek", "reviewer", "0.3", "troupe.cmd.run", usualEndpoint), "troupe.cmd.run", done, "", errSubject},
		{"publishes at no subject of the server", infoOf("cc", "derek", "reviewer", "0.3", "$JS.API.STREAM.DELETE.X", usualEndpoint), usualSubject, done, "", errSubject},
		{"publishes at no inbox", infoOf("cc", "derek", "reviewer", "0.3", "_INBOX.of.another", usualEndpoint), usualSubject, done, "", errSubject},
		{"publishes no heartbeat", infoOf("cc", "derek", "reviewer", "0.3", "agents.hb.cc.derek.other", usualEndpoint), usualSubject, done, "", errSubject},
		{"publishes at no controller", infoOf("cc", "derek", "reviewer", "0.3", "agents.spawn.troupe.ops.control", usualEndpoint), "agents.spawn.troupe.ops.control", done, "", errSubject},
		{"publishes at no controller: stop", infoOf("cc", "derek", "reviewer", "0.3", "agents.stop.troupe.ops.control", usualEndpoint), "agents.stop.troupe.ops.control", done, "", errSubject},
		{"publishes no answer to a question", infoOf("cc", "derek", "reviewer", "0.3", "agents.query.troupe.ops.x", usualEndpoint), "agents.query.troupe.ops.x", done, "", errSubject},
		{"ignores unknown chunk types, and fields", infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint), usualSubject,
			[]string{`{"type":"status","data":"ack"}`, `{"type":"later","data":[1]}`, `{"type":"status","data":"later"}`, `{"type":"response","data":{"text":"do","later":1}}`, `{"type":"response","data":"ne"}`, ""}, "done", nil},
		{"applies an inactivity timeout", infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint), usualSubject, done[:2], "[partial: the first 4 bytes of an answer that did not end]\ndone", errVanished},
	} {
		running.Go(func() {
			t.Run(k.item, func(t *testing.T) {
				nc := connectServer(t)
				rawAgent(t, nc, k.subject, []string{"not json", k.info}, func(m *nats.Msg) { publish(t, nc, m.Reply, k.sends...) })
				c := newCaller(t, nc, time.Minute, awhile)
				c.discovery = awhile
				if k.want == nil {
					c.silence, c.discovery = time.Minute, time.Minute
				}
				text, err := c.Call(t.Context(), CallRequest{Name: "cc/derek/reviewer", Task: "Review A."})
				if text != k.text || !errors.Is(err, k.want) {
					t.Errorf("%q %v", text, err)
				}
			})
		})
	}
	running.Wait()
}

// The caller inspects the error headers of a message before its body, and takes only an empty message without headers
// for the end.
//
//behaviour:shows H5
func TestCallerReadsHeadersFirst(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	rawAgent(t, nc, usualSubject, []string{infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint)}, func(m *nats.Msg) {
		for _, send := range []*nats.Msg{
			{Subject: m.Reply, Data: []byte(`{"type":"status","data":"ack"}`)},
			{Subject: m.Reply, Header: nats.Header{"X": {"1"}}}, // empty, and no end
			{Subject: m.Reply, Header: nats.Header{"Nats-Service-Error-Code": {"429"}, "Nats-Service-Error": {"slow down"}}, Data: []byte(`{"type":"response","data":"x"}`)},
		} {
			if err := nc.PublishMsg(send); err != nil {
				t.Error(err)
			}
		}
	})
	text, err := newCaller(t, nc, time.Minute, time.Minute).Call(t.Context(), CallRequest{Name: "cc/derek/reviewer", Task: "Review A."})
	if text != "" || !errors.Is(err, errForeign) || !strings.Contains(err.Error(), `"429" "slow down"`) {
		t.Errorf("%q %v", text, err)
	}
}

// The caller hears heartbeats before its first discovery, by instance: a silent call ends when all instances of its
// agent are offline, and not while one is alive.
//
//behaviour:shows H5
func TestCallerFollowsHeartbeats(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	var mu sync.Mutex
	var heard []string
	_, err := nc.Subscribe("$SRV.INFO.agents", func(*nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, "discovery")
	})
	if err != nil {
		t.Fatal(err)
	}
	rawAgent(t, nc, usualSubject, []string{infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint)}, func(m *nats.Msg) {
		publish(t, nc, m.Reply, `{"type":"status","data":"ack"}`)
	})
	c := newCaller(t, nc, time.Minute, time.Minute)
	beat := func(instance string, seconds float64) {
		data, err := json.Marshal(map[string]any{"agent": "claude-code", "owner": "derek", "session": "reviewer", "instance_id": instance, "ts": "2026-01-02T03:04:05Z", "interval_s": seconds, "later": 1})
		if err != nil {
			t.Fatal(err)
		}
		c.beats.add(&nats.Msg{Subject: "agents.hb.cc.derek.reviewer", Data: data})
	}
	beat("A", 0.01)
	beat("B", 0.02)
	c.beats.add(&nats.Msg{Data: []byte("{")})
	_, err = c.Call(t.Context(), CallRequest{Name: "cc/derek/reviewer", Task: "Review A."})
	if !errors.Is(err, errVanished) || !strings.Contains(err.Error(), "its heartbeats ended") {
		t.Errorf("after the last heartbeat: %v", err)
	}
	beat("B", 60)
	if silent := c.beats.silence(foundAgent{subject: usualSubject, agent: "claude-code", owner: "derek", session: "reviewer"}); silent != 0 {
		t.Errorf("silent for %s with a live instance", silent)
	}
	if silent := c.beats.silence(foundAgent{subject: usualSubject, agent: "claude-code", owner: "derek", session: "other"}); silent != 0 {
		t.Errorf("an agent that was never heard is silent for %s", silent)
	}
	if len(heard) != 1 {
		t.Errorf("%d discoveries", len(heard))
	}
}

// An instance is known by the name in its subject: its session may be another label, that of another agent included.
func TestHeartbeatsAreOfTheNameInTheirSubject(t *testing.T) {
	t.Parallel()
	beats := newLiveness()
	beat := func(name, session string, seconds float64) {
		data, err := json.Marshal(map[string]any{"agent": "claude-code", "owner": "derek", "session": session, "instance_id": name, "interval_s": seconds})
		if err != nil {
			t.Fatal(err)
		}
		beats.add(&nats.Msg{Subject: "agents.hb.cc.derek." + name, Data: data})
		if b := beats.instances["agents.hb.cc.derek."+name+" "+name]; seconds < 1 { // it was heard long ago
			b.at = b.at.Add(-time.Minute)
			beats.instances["agents.hb.cc.derek."+name+" "+name] = b
		}
	}
	beat("alive", "conv-7", 60)
	beat("dead", "", 0.01)
	beat("late", "alive", 0.01)
	for name, silent := range map[string]bool{"alive": false, "dead": true, "late": true} {
		a := foundAgent{subject: "agents.prompt.cc.derek." + name, agent: "claude-code", owner: "derek", session: "conv-7"}
		if got := beats.silence(a) > 0; got != silent {
			t.Errorf("%s is silent: %t", name, got)
		}
	}
}

// The answer to a question goes to an inbox or a subject of the other program: not to the endpoint of an agent, which
// would take it for a prompt of ours, not to this system, and not to the server.
func TestAnswersGoToNoEndpoint(t *testing.T) {
	t.Parallel()
	c := newCaller(t, connectServer(t), time.Minute, time.Minute)
	for subject, may := range map[string]bool{
		"_INBOX.question": true, "agents.query.cc.derek.q1": true, "my.own.subject": true,
		"agents.prompt.cc.derek.other": false, "agents.status.cc.derek.other": false, "agents.hb.cc.derek.other": false,
		"agents.spawn.troupe.ops.control": false, "agents.list.troupe.ops.control": false, "agents.stop.troupe.ops.control": false, "agents.query": false, "agents.later.x": false,
		"troupe.box.r.root": false, "$JS.API.STREAM.DELETE.X": false, "_R_.x": false, "_GR_.x": false, "a.>": false, "a..b": false, "": false,
	} {
		if c.mayAnswerAt(subject) != may {
			t.Errorf("%s: %t", subject, !may)
		}
	}
}

// While a question is open its agent may send keep-alives. What it sends beyond the limit is dropped, and the call then
// says so.
func TestAnOpenQuestionHoldsLittle(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	rawAgent(t, nc, usualSubject, []string{infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint)}, func(m *nats.Msg) {
		publish(t, nc, m.Reply, `{"type":"status","data":"ack"}`, `{"type":"query","data":{"id":"q","reply_subject":"_INBOX.question","prompt":"Which?"}}`)
	})
	c := newCaller(t, nc, time.Minute, time.Minute)
	var asked *Question
	if _, err := c.Call(t.Context(), CallRequest{Name: "cc/derek/reviewer", Task: "Review A."}); !errors.As(err, &asked) {
		t.Fatal(err)
	}
	long := []byte(`{"type":"response","data":"` + strings.Repeat("x", openBytesMax/4) + `"}`)
	for range 8 {
		if err := nc.Publish(c.open[0].sub.Subject, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, bytes, err := c.open[0].sub.Pending(); err != nil || bytes > openBytesMax {
		t.Errorf("%d bytes wait to be read, %v", bytes, err)
	}
	if _, err := c.Call(t.Context(), CallRequest{Name: "cc/derek/reviewer", Task: "A.", Answers: asked.ID}); !errors.Is(err, errOverrun) {
		t.Error(err)
	}
}

// A question is answered once, at the subject that the agent names, and by its id only.
//
//behaviour:shows H5
func TestCallerAnswersAQuestion(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	answers, err := nc.SubscribeSync("_INBOX.question")
	if err != nil {
		t.Fatal(err)
	}
	rawAgent(t, nc, usualSubject, []string{infoOf("claude-code", "derek", "reviewer", "0.3", usualSubject, usualEndpoint)}, func(m *nats.Msg) {
		publish(t, nc, m.Reply, `{"type":"status","data":"ack"}`, `{"type":"response","data":"A"}`, `{"type":"query","data":{"id":"q","reply_subject":"_INBOX.question","prompt":"Which?"}}`)
		go func() {
			if a, err := answers.NextMsg(time.Minute); err == nil {
				publish(t, nc, m.Reply, `{"type":"response","data":"B"}`, "")
				if string(a.Data) != `{"prompt":"{left}"}` {
					t.Errorf("the answer is %s", a.Data)
				}
			}
		}()
	})
	c := newCaller(t, nc, time.Minute, time.Minute)
	var asked *Question
	if _, err := c.Call(t.Context(), CallRequest{Name: "cc/derek/reviewer", Task: "Review A."}); !errors.As(err, &asked) || asked.Text != "Which?" {
		t.Fatal(err)
	}
	for _, r := range []CallRequest{{Name: "cc/derek/other", Answers: asked.ID}, {Name: "cc/derek/reviewer", Answers: "x"}} {
		if _, err := c.Call(t.Context(), r); !errors.Is(err, errNotAsked) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	r := CallRequest{Name: "cc/derek/reviewer", Task: "{left}", Answers: asked.ID}
	if text, err := c.Call(t.Context(), r); text != "AB" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if _, err := c.Call(t.Context(), r); !errors.Is(err, errNotAsked) {
		t.Errorf("answered twice: %v", err)
	}
}
