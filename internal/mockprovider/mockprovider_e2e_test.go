//go:build e2e

package mockprovider_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/mockprovider"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/model/openai"
)

const key = "sk-e2e-0123456789"

// provider is one of our clients, and how it writes call ids.
type provider struct {
	name   string
	path   string
	prefix string
	client model.Client
}

// start starts the mock and makes both clients of it.
func start(t *testing.T) (*mockprovider.Mock, []provider) {
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
	a, err := anthropic.New(anthropic.Config{BaseURL: m.Anthropic(), APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	o, err := openai.New(openai.Config{BaseURL: m.OpenAI(), APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return m, []provider{{"anthropic", "/v1/messages", "toolu_", a}, {"openai", "/v1/chat/completions", "call_", o}}
}

func request(text string) model.Request {
	tool := func(name string) model.ToolSpec {
		return model.ToolSpec{Name: name, Description: "A tool.", Schema: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`}
	}
	return model.Request{Model: "m-1", System: "Be brief.", MaxOutput: 321,
		Messages: []model.Message{{Role: model.User, Text: text}},
		Tools:    []model.ToolSpec{tool("read_file"), tool("grep"), tool("list_dir")}}
}

// last is the mock's latest entry.
func last(t *testing.T, m *mockprovider.Mock) mockprovider.Entry {
	t.Helper()
	entries, err := m.Journal(t.Context())
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	return entries[len(entries)-1]
}

func TestStreamedText(t *testing.T) {
	m, providers := start(t)
	for _, p := range providers {
		var pieces []string
		got, err := p.client.Complete(t.Context(), request("please greet me"), func(d model.Delta) { pieces = append(pieces, d.Text) })
		if err != nil {
			t.Fatal(p.name, err)
		}
		want := model.Reply{Message: model.Message{Role: model.Assistant, Text: "Hello from the mock, in several pieces."},
			Stop: model.StopEnd, Usage: model.Usage{Input: 21, Output: 9}, UsageKnown: true, Served: "m-1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(p.name, diff)
		}
		if len(pieces) < 3 || strings.Join(pieces, "") != want.Message.Text {
			t.Errorf("%s: deltas %q", p.name, pieces)
		}
		e := last(t, m)
		if e.Path != p.path || !e.Body.Stream || e.Body.Model != "m-1" || e.Body.MaxTokens+e.Body.MaxOutput != 321 || len(e.Body.Tools) != 3 {
			t.Errorf("%s: %+v", p.name, e)
		}
		if diff := cmp.Diff([]mockprovider.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "please greet me"}}, e.Body.Messages); diff != "" {
			t.Error(p.name, diff)
		}
		if string(e.Body.Tools[0].Function.Parameters) != request("").Tools[0].Schema {
			t.Errorf("%s: schema %s", p.name, e.Body.Tools[0].Function.Parameters)
		}
	}
}

// TestToolRound: parallel calls come whole and in order, and their results go
// back under ids of ours.
func TestToolRound(t *testing.T) {
	m, providers := start(t)
	for _, p := range providers {
		req := request("please look")
		got, err := p.client.Complete(t.Context(), req, nil)
		if err != nil {
			t.Fatal(p.name, err)
		}
		want := []model.ToolCall{{Name: "read_file", Args: `{"path":"a.go"}`}, {Name: "grep", Args: `{"pattern":"x y","glob":"*.go"}`}, {Name: "list_dir", Args: "{}"}}
		if diff := cmp.Diff(want, got.Message.Calls); diff != "" {
			t.Fatal(p.name, diff)
		}
		if got.Message.Text != "I look." || got.Stop != model.StopTools || got.Usage != (model.Usage{Input: 40, Output: 17}) || !got.UsageKnown {
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
		messages := last(t, m).Body.Messages
		if len(messages) != 6 || len(messages[2].ToolCalls) != 3 || messages[2].Role != "assistant" {
			t.Fatalf("%s: %+v", p.name, messages)
		}
		for i, id := range ids {
			wire := p.prefix + strings.ReplaceAll(id, "-", "_")
			call, result := messages[2].ToolCalls[i], messages[3+i]
			if call.ID != wire || call.Function.Name != want[i].Name || result.ToolCallID != wire || result.Content != "result "+id || result.Role != "tool" {
				t.Errorf("%s: %+v answered by %+v", p.name, call, result)
			}
		}
	}
}

func TestFaults(t *testing.T) {
	m, providers := start(t)
	for _, p := range providers {
		entries, err := m.Journal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.client.Complete(t.Context(), request("too fast"), nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Class != model.RateLimit || e.RetryAfter != time.Second || e.Message != "Slow down" || !e.Unbilled {
			t.Errorf("%s: %v", p.name, err)
		}
		after, err := m.Journal(t.Context())
		if err != nil || len(after) != len(entries)+1 {
			t.Errorf("%s: %d requests for one attempt", p.name, len(after)-len(entries))
		}
		got, err := p.client.Complete(t.Context(), request("long answer"), nil)
		if err != nil || got.Stop != model.StopMaxOutput || got.Message.Text != "It begins and" {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
		got, err = p.client.Complete(t.Context(), request("break off"), nil)
		if !errors.As(err, &e) || e.Class != model.Network || e.Unbilled || got.UsageKnown ||
			!strings.HasPrefix("A stream that is broken off after a few of its pieces.", got.Message.Text) {
			t.Errorf("%s: %+v, %v", p.name, got, err)
		}
		_, err = p.client.Complete(t.Context(), request("something else"), nil)
		if !errors.As(err, &e) || e.Status != 503 || !strings.Contains(e.Message, "no fixture matched") {
			t.Errorf("%s: %v", p.name, err)
		}
	}
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
