package gemini_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/gemini"
)

// answeredTranscript is a transcript of a question, this reply with its calls answered,
// and what is said next.
func answeredTranscript(m model.Message) []model.Message {
	out := []model.Message{{Role: model.User, Text: "a"}}
	results := model.Message{Role: model.ToolRole}
	m.Calls = append([]model.ToolCall(nil), m.Calls...)
	for i := range m.Calls {
		m.Calls[i].ID = fmt.Sprintf("1-%d", i)
		results.Results = append(results.Results, model.ToolResult{Call: m.Calls[i].ID, Text: "ok"})
	}
	if out = append(out, m); len(m.Calls) > 0 {
		out = append(out, results)
	}
	return append(out, model.Message{Role: model.User, Text: "b"})
}

// serveEvents serves a client with events.
func serveEvents(t *testing.T, events ...string) (*gemini.Client, func()) {
	t.Helper()
	s := httptest.NewServer(wiretest.Stream(events))
	c, err := gemini.New(gemini.Config{BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c, s.Close
}

// replayedContent is what the API gets back of a reply.
func replayedContent(t *testing.T, name string, m model.Message) any {
	t.Helper()
	req := wiretest.Request()
	req.Model, req.Messages = name, answeredTranscript(m)
	_, body, _ := completeWith(t, gemini.Config{}, req, wireDialect().Hello...)
	return body["contents"].([]any)[1].(map[string]any)["parts"]
}

// TestSignaturesGoBackWhereTheyCame: every part of a reply goes back in its
// place with its signature, to the model that made it.
func TestSignaturesGoBackWhereTheyCame(t *testing.T) {
	const name = "gemini-3.8-flash"
	req := wiretest.Request()
	req.Model = name
	a, b := callPart("a", `{"x":1}`), callPart("b", `{}`)
	for what, c := range map[string]struct {
		events []string
		want   string // the parts sent back
	}{
		"parallel calls, the first one signed": {[]string{chunkEvent(textPart("I "), "", ""), chunkEvent(textPart("look."), "", ""), chunkEvent(signedPart(a, "s1")+","+b, "STOP", usage)},
			`[{"text":"I look."},{"functionCall":{"id":"call_1_0","name":"a","args":{"x":1}},"thoughtSignature":"s1"},{"functionCall":{"id":"call_1_1","name":"b","args":{}}}]`},
		"thoughts before and between": {[]string{chunkEvent(thoughtPart("h"), "", ""), chunkEvent(thoughtPart("m"), "", ""), chunkEvent(textPart("say"), "", ""), chunkEvent(signedPart(thoughtPart("so"), "s0"), "", ""), chunkEvent(signedPart(a, "s1"), "STOP", usage)},
			`[{"text":"hm","thought":true},{"text":"say"},{"text":"so","thought":true,"thoughtSignature":"s0"},{"functionCall":{"id":"call_1_0","name":"a","args":{"x":1}},"thoughtSignature":"s1"}]`},
		"a signature in a part of its own": {[]string{chunkEvent(textPart("wörld"), "", ""), chunkEvent(signedPart(textPart(""), "s1"), "STOP", usage)},
			`[{"text":"wörld"},{"text":"","thoughtSignature":"s1"}]`},
		"text after a call": {[]string{chunkEvent(signedPart(a, "s1"), "", ""), chunkEvent(textPart("then"), "STOP", usage)},
			`[{"functionCall":{"id":"call_1_0","name":"a","args":{"x":1}},"thoughtSignature":"s1"},{"text":"then"}]`},
		"unsigned": {[]string{chunkEvent(textPart("x")+","+a, "STOP", usage)},
			`[{"text":"x"},{"functionCall":{"id":"call_1_0","name":"a","args":{"x":1}},"thoughtSignature":"skip_thought_signature_validator"}]`},
	} {
		got, _, _ := completeWith(t, gemini.Config{}, req, c.events...)
		for _, o := range got.Message.Opaque {
			if o.Issuer != "gemini/"+name {
				t.Errorf("%s: issued by %s", what, o.Issuer)
			}
		}
		want := parseJSON(t, `{"parts":`+c.want+`}`)["parts"]
		if diff := cmp.Diff(want, replayedContent(t, name, got.Message)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if s := fmt.Sprint(replayedContent(t, "gemini-2.5-pro", got.Message)); strings.Contains(s, "hought") {
			t.Errorf("%s: another model was sent %s", what, s)
		}
	}
}

// TestAChangedMessageKeepsItsCallsSignatures: a message that was changed since,
// or whose block is broken, is still one that the API takes.
func TestAChangedMessageKeepsItsCallsSignatures(t *testing.T) {
	const name = "gemini-3.8-flash"
	m := model.Message{Role: model.Assistant, Text: "[redacted] text", Calls: []model.ToolCall{{Name: "a", Args: `{}`}}}
	for data, signature := range map[string]string{
		`[{"text":4},{"call":true,"thoughtSignature":"s1"}]`:                                        "s1",
		`[{"text":99},{"call":true,"thoughtSignature":"s1"},{"call":true,"thoughtSignature":"s2"}]`: "s1",
		`[{"text":-5},{"text":20}]`: "skip_thought_signature_validator",
		`{broken`:                   "skip_thought_signature_validator",
		`[]`:                        "skip_thought_signature_validator",
	} {
		m.Opaque = []model.Opaque{{Issuer: "gemini/" + name, Kind: "parts", Data: []byte(data)}}
		want := parseJSON(t, fmt.Sprintf(`{"parts":[{"text":"[redacted] text"},{"functionCall":{"id":"call_1_0","name":"a","args":{}},"thoughtSignature":%q}]}`, signature))["parts"]
		if diff := cmp.Diff(want, replayedContent(t, name, m)); diff != "" {
			t.Errorf("%s: %s", data, diff)
		}
	}
}

// TestThoughtsAreShownAndNotSaid: they are deltas of their own kind, and no text.
func TestThoughtsAreShownAndNotSaid(t *testing.T) {
	client, stop := serveEvents(t, chunkEvent(thoughtPart("hm")+","+textPart("a"), "", ""), chunkEvent(textPart("b"), "STOP", usage))
	defer stop()
	var deltas []model.Delta
	got, err := client.Complete(t.Context(), wiretest.Request(), func(d model.Delta) { deltas = append(deltas, d) })
	if err != nil || got.Message.Text != "ab" {
		t.Errorf("%+v, %v", got, err)
	}
	want := []model.Delta{{Kind: model.ReasoningDelta, Text: "hm"}, {Kind: model.TextDelta, Text: "a"}, {Kind: model.TextDelta, Text: "b"}}
	if diff := cmp.Diff(want, deltas); diff != "" {
		t.Error(diff)
	}
}

// TestHostileRepliesAreBounded: thousands of calls and signed parts leave a
// message that is bounded and can be sent.
func TestHostileRepliesAreBounded(t *testing.T) {
	var parts []string
	for range 5000 {
		parts = append(parts, callPart("a", `{}`), signedPart(textPart(""), "s"))
	}
	got, _, _ := completeWith(t, gemini.Config{}, wiretest.Request(), chunkEvent(strings.Join(parts, ","), "STOP", usage))
	if len(got.Message.Calls) != 1024 || len(got.Message.Opaque) != 0 {
		t.Errorf("%d calls, %d blocks", len(got.Message.Calls), len(got.Message.Opaque))
	}
	if sent := replayedContent(t, "gemini-3.8-flash", got.Message).([]any); len(sent) != 1024 {
		t.Errorf("%d parts", len(sent))
	}
	for _, counts := range []string{`{"promptTokenCount":-1}`, `{"promptTokenCount":5,"cachedContentTokenCount":9,"candidatesTokenCount":-3}`, `{"promptTokenCount":9223372036854775807,"toolUsePromptTokenCount":9}`} {
		got, _, _ := completeWith(t, gemini.Config{}, wiretest.Request(), chunkEvent(textPart("a"), "STOP", `,"usageMetadata":`+counts))
		if got.UsageKnown {
			t.Errorf("%s: %+v", counts, got.Usage)
		}
	}
}

// TestListsOfAnEventAreBounded: one event of 8 MiB must not become hundreds of megabytes of empty parts.
func TestListsOfAnEventAreBounded(t *testing.T) {
	wiretest.CheckLists(t, wireDialect(), "data: {\"candidates\":[%s]}\n\n", "data: {\"candidates\":[{\"content\":{\"parts\":[%s]}}]}\n\n")
}
