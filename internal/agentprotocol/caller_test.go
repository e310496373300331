package agentprotocol

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// registerAgent registers an agent of another program, cc/derek/NAME, as a micro service. group "" makes each instance
// take every task.
func registerAgent(t *testing.T, nc *nats.Conn, name, group string, answer func(m micro.Request)) micro.Service {
	t.Helper()
	s, err := micro.AddService(nc, micro.Config{Name: "agents", Version: "1.0.0", Metadata: map[string]string{"agent": "claude-code", "owner": "derek", "session": name, "protocol_version": "0.3"}})
	if err == nil {
		options := []micro.EndpointOpt{micro.WithEndpointSubject("agents.prompt.cc.derek." + name), micro.WithEndpointMetadata(map[string]string{"max_payload": "1MB", "attachments_ok": "true"})}
		if options = append(options, micro.WithEndpointQueueGroup(group)); group == "" {
			options[len(options)-1] = micro.WithEndpointQueueGroupDisabled()
		}
		err = s.AddEndpoint("prompt", micro.HandlerFunc(answer), options...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			t.Error(err)
		}
	})
	return s
}

// publish publishes messages to the reply subject of a request.
func publish(t *testing.T, nc *nats.Conn, subject string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := nc.Publish(subject, []byte(body)); err != nil {
			t.Error(err)
		}
	}
}

// newCaller makes a caller that waits no longer than these for a first and for each later message.
func newCaller(t *testing.T, nc *nats.Conn, ack, silence time.Duration) *Caller {
	t.Helper()
	c, err := NewCaller(nc, names.Names{})
	if err != nil {
		t.Fatal(err)
	}
	c.ack, c.silence, c.check = ack, silence, 10*time.Millisecond
	return c
}

// The waits of a caller of these tests: shortWait for a message that does not come, and awhile for one that does not come
// where others came before, which a busy machine brings late.
const (
	shortWait = 50 * time.Millisecond
	awhile    = 2 * time.Second
)

// An agent that stops in the middle is noticed by its silence, one that never acknowledges by the shorter wait before
// it, and an answer that comes faster than it is read says that a part is lost.
//
//behaviour:shows H5
func TestSilenceOfAForeignAgent(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	for name, k := range map[string]struct {
		ack   time.Duration
		sends []string
		want  error
		text  string
	}{
		"mute":   {shortWait, nil, errNoAck, ""},
		"stops":  {time.Minute, []string{`{"type":"status","data":"ack"}`, `{"type":"response","data":"A ä"}`}, errVanished, "[partial: the first 4 bytes of an answer that did not end]\nA ä"},
		"header": {time.Minute, []string{`{"type":"response"}`}, errMalformed, ""},
		"number": {time.Minute, []string{`{"type":"response","data":{"text":1}}`}, errMalformed, ""},
	} {
		registerAgent(t, nc, name, "agents", func(m micro.Request) { publish(t, nc, m.Reply(), k.sends...) })
		text, err := newCaller(t, nc, k.ack, awhile).Call(t.Context(), CallRequest{Name: "cc/derek/" + name, Task: "Review A."})
		if !errors.Is(err, k.want) || text != k.text || !strings.Contains(err.Error(), "cc/derek/"+name) {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}

// Two agents that are not in one queue group both take a task. Their answers are not taken for one.
//
//behaviour:shows H5
func TestTwoForeignAgentsAtOneSubject(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	for range 2 {
		registerAgent(t, nc, "twins", "", func(m micro.Request) {
			publish(t, nc, m.Reply(), `{"type":"status","data":"ack"}`, `{"type":"response","data":"A is safe."}`)
		})
	}
	var words []string
	text, err := newCaller(t, nc, time.Minute, time.Minute).Call(t.Context(), CallRequest{Name: "cc/derek/twins", Task: "Review A.", Progress: func(w string) { words = append(words, w) }})
	if !errors.Is(err, errTwoAgents) || !strings.HasPrefix(text, "[partial") || len(words) != 1 || words[0] != "ack" {
		t.Errorf("%q %v, progress %q", text, err, words)
	}
}

// An agent that acknowledges again while it works shows that it is alive, as the SDKs of the protocol do.
func TestLaterAcknowledgementsAreSignsOfLife(t *testing.T) {
	t.Parallel()
	var a foreignAnswer
	ack := []byte(`"ack"`)
	if err := a.addStatus(ack); err != nil {
		t.Fatal(err)
	}
	if err := a.addStatus(ack); !errors.Is(err, errTwoAgents) {
		t.Errorf("a second one at once: %v", err)
	}
	a.ackedAt = a.ackedAt.Add(-twinAckWithin)
	if err := a.addStatus(ack); err != nil {
		t.Errorf("a later one: %v", err)
	}
}

// The server says that nobody is there only before an agent has answered. The same message later, which any program can
// send, does not say that the task was not taken.
func TestNoRespondersInAStreamIsNoProofThatNobodyActed(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	registerAgent(t, nc, "late", "agents", func(m micro.Request) {
		publish(t, nc, m.Reply(), `{"type":"status","data":"ack"}`)
		if err := nc.PublishMsg(&nats.Msg{Subject: m.Reply(), Header: nats.Header{"Status": {"503"}}}); err != nil {
			t.Error(err)
		}
	})
	c := newCaller(t, nc, time.Minute, time.Minute)
	if _, err := c.Call(t.Context(), CallRequest{Name: "cc/derek/late", Task: "Review A."}); err == nil || errors.Is(err, errNobody) || !strings.Contains(err.Error(), "what it did is unknown") {
		t.Errorf("after the acknowledgement: %v", err)
	}
	if _, err := c.Call(t.Context(), CallRequest{Name: "cc/derek/absent", Task: "Review A."}); !errors.Is(err, errNobody) {
		t.Errorf("without an agent: %v", err)
	}
}

// A name that is not three tokens reaches no subject, and the end of the context ends the wait at once.
//
//behaviour:shows H5
func TestCallsThatReachNobody(t *testing.T) {
	t.Parallel()
	nc := connectServer(t)
	sub, err := nc.SubscribeSync("agents.>")
	if err != nil {
		t.Fatal(err)
	}
	c := newCaller(t, nc, time.Minute, time.Minute)
	for _, name := range []string{"", "helper", "cc/derek", "cc/derek/reviewer/x", "cc/*/x", "cc/derek/>", "cc/de rek/x", "cc/derek.x/y", "$SYS/a/b", "cc//x", "cc/derek/x\n"} {
		if text, err := c.Call(t.Context(), CallRequest{Name: name, Task: "Review A."}); !errors.Is(err, errNobody) || text != "" {
			t.Errorf("%q: %q %v", name, text, err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := sub.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages went out, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	registerAgent(t, nc, "reviewer", "agents", func(micro.Request) { cancel() })
	if _, err := c.Call(ctx, CallRequest{Name: "cc/derek/reviewer", Task: "Review A."}); !errors.Is(err, errNoWait) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Any messages are an answer within its limit, or an error that says what is known.
func FuzzForeignAnswers(f *testing.F) {
	for _, seed := range []string{"", "{", `{"type":"response","data":"x"}`, `{"type":"response","data":{"text":"x","more":1}}`, `{"type":"response","data":null}`,
		`{"type":"query","data":{"prompt":"which?"}}`, `{"type":"query","data":[]}`, `{"type":"status","data":{}}`, `{"type":7}`, "\xff", `{"type":"response","data":"\ud800"}`} {
		f.Add([]byte(seed), "", "")
	}
	f.Add([]byte(`{"error":"rate_limited","message":"wait"}`), "429", "busy")
	f.Fuzz(func(t *testing.T, data []byte, code, words string) {
		var a foreignAnswer
		a.text.WriteString(strings.Repeat("x", answerBytesMax-len(data)/2))
		m := &nats.Msg{Data: data}
		if code != "" {
			m.Header = nats.Header{"Nats-Service-Error-Code": {code}, "Nats-Service-Error": {words}}
		}
		err := a.add(m)
		switch {
		case a.text.Len() > answerBytesMax || !utf8.ValidString(a.text.String()):
			t.Errorf("%q: %d bytes of text", data, a.text.Len())
		case code != "" && !errors.Is(err, errForeign):
			t.Errorf("%q %q: %v", code, words, err)
		case err != nil && (len(err.Error()) > 4*wordsShown+1024 && utf8.Valid(data) && len(code)+len(words) < wordsShown):
			t.Errorf("%q: an error of %d bytes", data, len(err.Error()))
		case err == nil && a.ended != (len(data) == 0):
			t.Errorf("%q ends the stream: %v", data, a.ended)
		}
	})
}
