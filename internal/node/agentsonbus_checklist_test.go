package node

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// The checklist of the Synadia Agent Protocol for NATS 0.3, section 12, for agents. Each item has a test in this file, which
// compares bytes. The test caller (busCaller.collect) checks for every stream that it has one ack, as its first message, that
// nothing follows the terminator, and nothing but the terminator an error. Not tested, because troupe does not have it:
//
//   - "rejects attachments when attachments_ok is false": the agents accept attachments. One that its model cannot read is
//     refused with 400 by the request run.
//   - "an agent that implements section 13 (sender identity)": it is optional. The agents declare no min_sender_trust and
//     ignore the header Agent-Sender by default, as section 13.13 says: see TestAgentProtocolEnvelopes. With --agents-senders
//     they verify it: internal/agentprotocol/sender_test.go.
//   - The items for callers are in internal/agentprotocol/callerchecklist_test.go.

// Checklist: "Registers as a NATS micro service with name agents", "Declares metadata", "Registers an endpoint named prompt",
// "Registers an endpoint named status", "Responds to $SRV.PING.agents and $SRV.INFO.agents".
func TestAgentProtocolDiscovery(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, "default: [{text: Hello.}]")
	var found []string
	for _, info := range c.discover("$SRV.PING.agents", exportedServices) {
		if info.Name != "agents" || info.Type != "io.nats.micro.v1.ping_response" || !regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(info.Version) {
			t.Errorf("%+v", info)
		}
		found = append(found, info.Metadata["session"])
	}
	if s := strings.Join(found, " "); !strings.Contains(s, "assistant") || !strings.Contains(s, "coordinator") {
		t.Errorf("found %q", s)
	}
	info := c.assistantInfo()
	if info.Description == "" || strings.Contains(info.Description, "\n") {
		t.Errorf("description %q", info.Description)
	}
	if direct := c.discover("$SRV.INFO.agents."+info.ID, 1)[0]; direct.ID != info.ID {
		t.Errorf("%+v", direct)
	}
	for want, part := range map[string]any{
		`{"agent":"troupe","node":"host","owner":"ops","protocol_version":"0.3","session":"assistant"}`: info.Metadata,
		`[{"name":"prompt","subject":"` + promptSubject + `","queue_group":"agents","metadata":{"attachments_ok":"true","max_payload":"1MB"}},` +
			`{"name":"status","subject":"` + statusSubject + `","queue_group":"agents","metadata":null}]`: info.Endpoints,
	} {
		if raw, err := json.Marshal(part); err != nil || string(raw) != want {
			t.Errorf("%s\nwant %s %v", raw, want, err)
		}
	}
}

// Checklist: "Accepts both JSON envelopes and the plain-text shorthand", "Tolerates and preserves unknown envelope fields",
// "Emits an ack as the first message", "Emits response streams per section 6".
func TestAgentProtocolEnvelopes(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, "default: [{text: Hello.}]")
	for _, payload := range []string{"Say hello", " \t\r\n{\"prompt\":\"Say hello\"}", `{"prompt":"Say hello","attachments":[]}`, `{"prompt":"Say hello","attachments":null}`, `[1]`, "\xc3\xa4",
		`{"session":"x","prompt":"Say hello","attachments":[{"filename":"a.txt","content":"aGVsbG8=","more":{}}],"more":[1,{"a":null}]}`} {
		r := c.prompt(payload)
		want := []string{ackChunk, `{"type":"status","data":"run:` + r.run + `"}`, `{"type":"response","data":"Hello."}`}
		if r.code != "" || fmt.Sprint(r.chunks) != fmt.Sprint(want) {
			t.Errorf("%q: %q %+v", payload, r.chunks, r.body)
		}
	}
	sub, err := c.nc.SubscribeSync(c.nc.NewInbox())
	if err == nil {
		err = c.nc.PublishMsg(&nats.Msg{Subject: promptSubject, Reply: sub.Subject, Header: nats.Header{"Agent-Sender": {`{"v":1}`}}, Data: []byte("Say hello")})
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := c.collect(sub); r.code != "" || r.text != "Hello." {
		t.Errorf("with the header Agent-Sender: %+v", r)
	}
}

// Checklist: "Rejects malformed envelopes, empty payloads, invalid base64, oversize requests with status 400". The server of
// this test passes on no more than the agents accept, as servers do by default: internal/agentprotocol has the test of an
// oversize request on a server that passes it on.
func TestAgentProtocolMalformedRequests(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, "default: [{text: Hello.}]")
	for name, payload := range map[string]string{
		"empty": "", "blank": " \n", "not JSON": `{"prompt":`, "trailing": `{"prompt":"x"} y`, "no prompt": `{}`, "a number": `{"prompt":1}`, "null": `{"prompt":null}`,
		"another case": `{"Prompt":"x"}`, "empty prompt": `{"prompt":""}`, "blank prompt": `{"prompt":"  "}`, "not UTF-8": "\xff\xfe", "not UTF-8 in JSON": "{\"prompt\":\"\xff\"}",
		"URL-safe base64": attach("a.txt", "_-8="), "unpadded": attach("a.txt", "aGVsbG8"), "whitespace": attach("a.txt", `aGVs\nbG8=`), "no content": `{"prompt":"x","attachments":[{"filename":"a"}]}`,
		"no filename": `{"prompt":"x","attachments":[{"content":"aGVsbG8="}]}`, "no list": `{"prompt":"x","attachments":{}}`, "no objects": `{"prompt":"x","attachments":["a"]}`,
		"empty file": attach("a.txt", ""), "too many": `{"prompt":"x","attachments":[` + strings.TrimSuffix(strings.Repeat(`{"filename":"a","content":"aGVsbG8="},`, 9), ",") + `]}`,
		"a type that no model reads": attach("a.zip", base64.StdEncoding.EncodeToString([]byte("PK\x03\x04\xff\xfe"))), "a name of two lines": attach(`a\nb`, "aGVsbG8="),
		"unknown field of a run": `{"prompt":"x","troupe":{"model_name":"y"}}`, "field of the envelope": `{"prompt":"x","troupe":{"agent":"y"}}`, "no object": `{"prompt":"x","troupe":[]}`,
		"a run id that is none": `{"prompt":"x","troupe":{"run_id":"../../x"}}`, "too large for a run": strings.Repeat("x", 600<<10),
	} {
		if r := c.prompt(payload); r.code != "400" || r.body.Error != "bad_request" || r.text != "" || strings.ContainsAny(r.header, "\r\n") {
			t.Errorf("%s: %q %+v %v", name, r.header, r.body, r.chunks)
		}
	}
	if err := c.nc.Publish(promptSubject, make([]byte, c.nc.MaxPayload()+1)); err == nil {
		t.Error("the server passes an oversize request on")
	}
}

// Checklist: "Publishes heartbeats on agents.hb.{agent}.{owner}.{name} at its configured cadence with all section 8.3 fields",
// and the reply of the endpoint status has the same form.
func TestAgentProtocolHeartbeats(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, "default: [{text: Hello.}]", func(c *Config) { c.AgentsOnBus.Heartbeat = time.Second })
	sub, err := connectRole(t, h, bus.RoleObserver).SubscribeSync("agents.hb.*.*.*")
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^\{"agent":"troupe","owner":"ops","session":"assistant","instance_id":"` + c.assistantInfo().ID +
		`","ts":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)","interval_s":1,"node":"host","state":"idle","prompts":0\}$`)
	beats := [][]byte{c.next(c.request(statusSubject, "whatever")).Data}
	for len(beats) < 3 { // a cadence is two of them
		if m := c.next(sub); m.Subject == beatSubject {
			beats = append(beats, m.Data)
		}
	}
	for _, raw := range beats {
		at := want.FindSubmatch(raw)
		if at == nil {
			t.Fatalf("%s", raw)
		}
		if ts, err := time.Parse(time.RFC3339, string(at[1])); err != nil || time.Since(ts).Abs() > time.Hour {
			t.Errorf("%s %v", at[1], err)
		}
	}
}

// attach is an envelope with a file.
func attach(name, content string) string {
	return `{"prompt":"x","attachments":[{"filename":"` + name + `","content":"` + content + `"}]}`
}

// serviceInfo is a reply to a discovery request.
type serviceInfo struct {
	Type, Name, ID, Version, Description string
	Metadata                             map[string]string
	Endpoints                            []struct {
		Name     string            `json:"name"`
		Subject  string            `json:"subject"`
		Queue    string            `json:"queue_group"`
		Metadata map[string]string `json:"metadata"`
	}
}

// discover sends a discovery request, and returns the first n replies.
func (c *busCaller) discover(subject string, n int) (list []serviceInfo) {
	c.t.Helper()
	sub := c.request(subject, "")
	for range n {
		var info serviceInfo
		if err := json.Unmarshal(c.next(sub).Data, &info); err != nil {
			c.t.Fatal(err)
		}
		list = append(list, info)
	}
	return list
}

// exportedServices is how many services answer a discovery: assistant, coordinator and the controller.
const exportedServices = 3

func (c *busCaller) assistantInfo() serviceInfo {
	c.t.Helper()
	for _, info := range c.discover("$SRV.INFO.agents", exportedServices) {
		if info.Metadata["session"] == "assistant" {
			return info
		}
	}
	c.t.Fatal("the assistant is not found")
	return serviceInfo{}
}

// Checklist: "Nats-Service-Error-Code is set from the section 9.2 taxonomy". The end of a run that is no success is an
// error after the text that there is; a budget that is used up is 429 with a body.
func TestAgentProtocolErrors(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for name, k := range map[string]struct{ script, fields, code, error, reason string }{
		"budget": {"agents: {assistant: [{calls: [{name: list_dir, args: {path: .}}], usage: {input_tokens: 9000, output_tokens: 900}}]}\nclosing: so far", `"max_tokens":12000`, "429", "budget_exhausted", "token_budget"},
		"turns":  {"agents: {assistant: [{calls: [{name: list_dir, args: {path: .}}]}]}\nrepeat: true\nclosing: so far", `"max_turns":1`, "429", "limit_reached", "max_turns"},
		"model":  {"default: [{error: {class: authentication, status: 401, message: no key}}]", "", "500", "model_error", "model_error"},
		"fork":   {"default: [{text: hello}]", `"fork":"01k9z3abcdefghjkmnpqrstvwx"`, "404", "not_found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, c := startAgentsOnBus(t, k.script, func(c *Config) { c.Roots = []string{dir} })
			fields := strings.Trim(`"dir":"`+dir+`",`+k.fields, ",")
			r := c.prompt(`{"prompt":"x","troupe":{` + fields + `}}`)
			if r.code != k.code || r.body.Error != k.error || r.body.StopReason != k.reason || r.body.Message == "" {
				t.Errorf("%s %+v %q", r.code, r.body, r.chunks)
			}
			if k.code == "429" && (!r.body.Partial || !strings.Contains(r.text, "so far") || r.body.TokensLimit == 0 || r.body.RunID != r.run) {
				t.Errorf("the partial answer is missing: %q %+v", r.text, r.body)
			}
			if (k.reason == "") != (r.body.RunID == "") {
				t.Errorf("the run is %q", r.body.RunID)
			}
		})
	}
}

// Checklist: "If it issues mid-stream queries: conforms to section 7", and the heartbeat says that the agent waits.
func TestAgentProtocolQuery(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, c := startAgentsOnBus(t, asking)
	sub := c.request(promptSubject, "Buy one")
	var r busReply
	for len(r.queries) == 0 {
		r.add(t, c.next(sub).Data)
	}
	q := r.queries[0]
	if want := `{"type":"query","data":{"id":"` + q.ID + `","reply_subject":"` + q.ReplySubject + `","prompt":"Which one?"}}`; r.chunks[len(r.chunks)-1] != want {
		t.Errorf("%s, want %s", r.chunks[len(r.chunks)-1], want)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(q.ID) || !regexp.MustCompile(`^agents\.query\.troupe\.ops\.[a-z2-7]{26}$`).MatchString(q.ReplySubject) {
		t.Errorf("%+v", q)
	}
	c.awaitState("waiting", r.run)
	if err := c.nc.Publish(q.ReplySubject, []byte("the red one")); err != nil {
		t.Fatal(err)
	}
	for {
		m := c.next(sub)
		if len(m.Data) == 0 && len(m.Header) == 0 {
			break
		}
		r.add(t, m.Data)
	}
	if !strings.Contains(r.text, "the red one") || len(r.queries) != 1 {
		t.Errorf("%+v", r)
	}
	c.awaitState("idle", "")
}

// awaitState asks for the status until it is as wanted.
func (c *busCaller) awaitState(state, run string) {
	c.t.Helper()
	ctx := testContext(c.t)
	for {
		var b struct {
			State       string `json:"state"`
			RunID       string `json:"run_id"`
			TokensLimit int64  `json:"tokens_limit"`
			Prompts     int    `json:"prompts"`
		}
		m, err := c.nc.RequestWithContext(ctx, statusSubject, nil)
		if err == nil {
			err = json.Unmarshal(m.Data, &b)
		}
		if err != nil {
			c.t.Fatalf("the state is %+v, want %s: %v", b, state, err)
		}
		if b.State == state && b.RunID == run && (run == "" || b.TokensLimit > 0 && b.Prompts == 1) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			c.t.Fatalf("the state is %+v, want %s", b, state)
		}
	}
}

// Checklist: attachments (section 5.2). The run has the files of the envelope.
func TestAgentProtocolAttachments(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h, c := startAgentsOnBus(t, "default: [{text: Read.}]")
	picture := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	r := c.prompt(`{"prompt":"Read them","attachments":[{"filename":"notes.html","content":"aGVsbG8="},{"filename":"p.png","content":"` + picture + `"}]}`)
	if r.code != "" || r.text != "Read." {
		t.Fatalf("%+v", r)
	}
	raw, err := connectClient(t, h).Transcript(testContext(t), r.run, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"notes.html", "text/html", "p.png", "image/png"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the transcript has no %s: %s", want, raw)
		}
	}
	// The files of a run that is refused are removed.
	refused := client.NewID()
	if r := c.prompt(`{"prompt":"x","attachments":[{"filename":"a.txt","content":"aGVsbG8="}],"troupe":{"run_id":"` + refused + `","dir":"/etc"}}`); r.code != "403" {
		t.Errorf("%+v", r)
	}
}
