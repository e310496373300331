//go:build e2e

package mockprovider_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/mockprovider"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/model/openai"
)

const (
	key  = "sk-e2e-0123456789"
	name = "gemini-3-claude-gpt-5" // each provider takes it for one of its own
)

// providerClient is one of our clients, and how it writes call ids.
type providerClient struct {
	name   string
	path   string
	prefix string
	client model.Client
}

// startMock starts the mock and makes four clients of it.
func startMock(t *testing.T) (*mockprovider.MockServer, []providerClient) {
	t.Helper()
	fixtures, err := os.ReadFile("testdata/fixtures.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := mockprovider.Start(t.Context(), mockprovider.Config{Fixtures: fixtures, Dir: t.TempDir(), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	a, err := anthropic.New(anthropic.Config{BaseURL: m.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	o, err := openai.New(openai.Config{BaseURL: m.URL + "/v1", APIKey: key, Structured: openai.StructuredAlways})
	if err != nil {
		t.Fatal(err)
	}
	r, err := openai.New(openai.Config{BaseURL: m.URL + "/v1", APIKey: key, API: openai.APIResponses, Structured: openai.StructuredAlways})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gemini.New(gemini.Config{BaseURL: m.URL, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return m, []providerClient{{"anthropic", "/v1/messages", "toolu_", a}, {"openai", "/v1/chat/completions", "call_", o},
		{"openai responses", "/v1/responses", "call_", r}, {"gemini", "/v1beta/models/" + name + ":streamGenerateContent", "call_", g}}
}

func newRequest(text string) model.Request {
	tool := func(name string) model.ToolSpec {
		return model.ToolSpec{Name: name, Description: "A tool.", Schema: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`}
	}
	return model.Request{Model: name, System: "Be brief.", MaxOutput: 321,
		Messages: []model.Message{{Role: model.User, Text: text}},
		Tools:    []model.ToolSpec{tool("read_file"), tool("grep"), tool("list_dir")}}
}

// lastEntry is the mock's latest entry.
func lastEntry(t *testing.T, m *mockprovider.MockServer) mockprovider.JournalEntry {
	t.Helper()
	entries, err := m.Journal(t.Context())
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries[len(entries)-1]
}

func TestStreamedText(t *testing.T) {
	m, providers := startMock(t)
	for _, p := range providers {
		var pieces []string
		got, err := p.client.Complete(t.Context(), newRequest("please greet me"), func(d model.Delta) { pieces = append(pieces, d.Text) })
		if err != nil {
			t.Fatal(p.name, err)
		}
		want := model.Reply{Message: model.Message{Role: model.Assistant, Text: "Hello from the mock, in several pieces."},
			Stop: model.StopEnd, Usage: model.Usage{Input: 21, Output: 9}, UsageKnown: true, Served: name}
		if p.name == "gemini" {
			want.Served = "" // the mock does not say
		}
		got.Message.Opaque = nil // the mock thinks always in Responses: see TestReasoning
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(p.name, diff)
		}
		if len(pieces) < 3 || strings.Join(pieces, "") != want.Message.Text {
			t.Errorf("%s: deltas %q", p.name, pieces)
		}
		e := lastEntry(t, m)
		if !strings.HasPrefix(e.Path, p.path) || !e.Body.Stream || e.Body.Model != name || len(e.Body.Tools) != 3 {
			t.Errorf("%s: %+v", p.name, e)
		}
		if diff := cmp.Diff([]mockprovider.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "please greet me"}}, e.Body.Messages); diff != "" {
			t.Error(p.name, diff)
		}
		if p.name == "gemini" {
			continue // the mock notes down neither the limit nor the schema
		}
		if e.Body.MaxTokens+e.Body.MaxOutput != 321 {
			t.Errorf("%s: %+v", p.name, e.Body)
		}
		if string(e.Body.Tools[0].Function.Parameters) != newRequest("").Tools[0].Schema {
			t.Errorf("%s: schema %s", p.name, e.Body.Tools[0].Function.Parameters)
		}
	}
}

// TestToolRound: parallel calls come whole and in order, and their results go
// back under ids of ours.
func TestToolRound(t *testing.T) {
	m, providers := startMock(t)
	for _, p := range providers {
		req := newRequest("please look")
		got, err := p.client.Complete(t.Context(), req, nil)
		if err != nil {
			t.Fatal(p.name, err)
		}
		want := []model.ToolCall{{Name: "read_file", Args: `{"path":"a.go"}`}, {Name: "grep", Args: `{"pattern":"x y","glob":"*.go"}`}, {Name: "list_dir", Args: "{}"}}
		if diff := cmp.Diff(want, got.Message.Calls); diff != "" {
			t.Fatal(p.name, diff)
		}
		stop := model.StopTools
		if p.name == "gemini" {
			stop = model.StopUnknown // the mock has a reason for it that Google does not have
		}
		if got.Message.Text != "I look." || got.Stop != stop || got.Usage != (model.Usage{Input: 40, Output: 17}) || !got.UsageKnown {
			t.Errorf("%s: %+v", p.name, got)
		}
		ids := []string{"1-0", "1-1", "1-2"}
		results := model.Message{Role: model.ToolRole}
		for i, id := range ids {
			got.Message.Calls[i].ID = id
			results.Results = append(results.Results, model.ToolResult{Call: id, Text: "result " + id})
		}
		req.Messages = append(req.Messages, got.Message, results)
		if got, err = p.client.Complete(t.Context(), req, nil); err != nil || got.Message.Text != "Found." {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
		// The mock writes an assistant message for each item of Responses.
		var calls, answers []string
		for _, said := range lastEntry(t, m).Body.Messages {
			for _, c := range said.ToolCalls {
				calls = append(calls, c.ID+" "+c.Function.Name)
			}
			if said.Role == "tool" {
				answers = append(answers, said.ToolCallID+" "+said.Content)
			}
		}
		var asked, answered []string
		for i, id := range ids {
			wire := p.prefix + strings.ReplaceAll(id, "-", "_")
			asked, answered = append(asked, wire+" "+want[i].Name), append(answered, wire+" result "+id)
		}
		if p.name == "gemini" { // the mock makes ids of its own, and writes results as JSON
			for i := range answers {
				_, answers[i], _ = strings.Cut(answers[i], " ")
				_, calls[i], _ = strings.Cut(calls[i], " ")
				asked[i], answered[i] = want[i].Name, `{"output":"result `+ids[i]+`"}`
			}
		}
		if diff := cmp.Diff(asked, calls) + cmp.Diff(answered, answers); diff != "" {
			t.Errorf("%s: %s", p.name, diff)
		}
	}
}

func TestFaults(t *testing.T) {
	m, providers := startMock(t)
	for _, p := range providers {
		entries, err := m.Journal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.client.Complete(t.Context(), newRequest("too fast"), nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.RateLimit || e.RetryAfter != time.Second || e.Message != "Slow down" || !e.Unbilled {
			t.Errorf("%s: %v", p.name, err)
		}
		after, err := m.Journal(t.Context())
		if err != nil || len(after) != len(entries)+1 {
			t.Errorf("%s: %d requests for one attempt", p.name, len(after)-len(entries))
		}
		got, err := p.client.Complete(t.Context(), newRequest("long answer"), nil)
		if err != nil || got.Stop != model.StopMaxOutput || got.Message.Text != "It begins and" {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
		got, err = p.client.Complete(t.Context(), newRequest("break off"), nil)
		if !errors.As(err, &e) || e.Class != model.Network || e.Unbilled || got.UsageKnown ||
			!strings.HasPrefix("A stream that is broken off after a few of its pieces.", got.Message.Text) {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
		_, err = p.client.Complete(t.Context(), newRequest("something else"), nil)
		if !errors.As(err, &e) || e.Status != 503 || !strings.Contains(e.Message, "no fixture matched") {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

// TestReasoning: what a model thought comes as deltas, and goes back so that the
// mock, which checks it as the provider does, takes it.
func TestReasoning(t *testing.T) {
	_, providers := startMock(t)
	for _, p := range providers {
		var thought, text string
		req := newRequest("think hard")
		got, err := p.client.Complete(t.Context(), req, func(d model.Delta) {
			if d.Kind == model.ReasoningDelta {
				thought += d.Text
			} else {
				text += d.Text
			}
		})
		if err != nil || got.Message.Text != "It is 42." || text != got.Message.Text || !strings.Contains(thought, "six times seven") {
			t.Errorf("%s: %+v, thought %q, %v", p.name, got, thought, err)
		}
		if kept := len(got.Message.Opaque) > 0; kept != (p.name != "openai") {
			t.Errorf("%s: kept of what it thought: %+v", p.name, got.Message.Opaque)
		}
		req.Messages = append(req.Messages, got.Message, model.Message{Role: model.User, Text: "please greet me"})
		if got, err := p.client.Complete(t.Context(), req, nil); err != nil || got.Message.Text == "" {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
	}
}

// TestStructuredOutput: the schema of the answer is taken, and the answer comes.
func TestStructuredOutput(t *testing.T) {
	_, providers := startMock(t)
	for _, p := range providers {
		req := newRequest("as JSON")
		req.Schema = `{"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"],"additionalProperties":false}`
		if got, err := p.client.Complete(t.Context(), req, nil); err != nil || got.Message.Text != `{"answer":42}` || got.Stop != model.StopEnd {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
	}
}

// TestChaos: the mock's own faults, each with one request and its class.
func TestChaos(t *testing.T) {
	m, providers := startMock(t)
	set := func(method, rates string) {
		req, err := http.NewRequestWithContext(t.Context(), method, m.URL+"/__aimock/chaos", strings.NewReader(rates))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%+v, %v", res, err)
		}
		res.Body.Close()
	}
	cells := 0
	for _, c := range []struct {
		rates string
		want  model.ErrorClass
	}{
		{`{"dropRate":1}`, model.Overload}, {`{"malformedRate":1}`, model.Misconfigured}, {`{"rateLimitRate":1}`, model.RateLimit}, {`{"disconnectRate":1}`, model.Network},
	} {
		set(http.MethodPost, c.rates)
		for _, p := range providers {
			before, err := m.Journal(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.client.Complete(t.Context(), newRequest("please greet me"), nil)
			var e *model.Error
			if !errors.As(err, &e) || e.Class != c.want {
				t.Errorf("%s %s: %v", p.name, c.rates, err)
			}
			if after, err := m.Journal(t.Context()); err != nil || len(after) != len(before)+1 {
				t.Errorf("%s %s: %d requests for one attempt, %v", p.name, c.rates, len(after)-len(before), err)
			}
			cells++
		}
		set(http.MethodDelete, "")
	}
	t.Logf("%d faults of the mock", cells)
}

func TestAMissingToolIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := mockprovider.Start(t.Context(), mockprovider.Config{Dir: t.TempDir()}); !errors.Is(err, mockprovider.ErrTool) {
		t.Error(err)
	}
}

func TestBrokenFixturesAreNamed(t *testing.T) {
	if _, err := mockprovider.Start(t.Context(), mockprovider.Config{Fixtures: []byte("{"), Dir: t.TempDir()}); !errors.Is(err, mockprovider.ErrStart) {
		t.Error(err)
	}
}
