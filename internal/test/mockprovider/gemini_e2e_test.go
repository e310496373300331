//go:build e2e

package mockprovider_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/mockprovider"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/gemini"
)

const geminiPath = "/v1beta/models/gemini-3.8-flash:streamGenerateContent"

// newGeminiClient is our client of Gemini at the mock.
func newGeminiClient(t *testing.T, url string) model.Client {
	t.Helper()
	c, err := gemini.New(gemini.Config{BaseURL: url, APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func geminiRequest(text string) model.Request {
	r := newRequest(text)
	r.Model = "gemini-3.8-flash"
	return r
}

func TestGeminiStreamsText(t *testing.T) {
	m, _ := startMock(t)
	var pieces []string
	got, err := newGeminiClient(t, m.URL).Complete(t.Context(), geminiRequest("please greet me"), func(d model.Delta) { pieces = append(pieces, d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	if got.Message.Text != "Hello from the mock, in several pieces." || strings.Join(pieces, "") != got.Message.Text || len(pieces) < 2 || got.Stop != model.StopEnd {
		t.Errorf("%+v in %q", got, pieces)
	}
	if !got.UsageKnown || got.Usage.Input != 21 || got.Usage.Output != 9 {
		t.Errorf("usage %+v, known %v", got.Usage, got.UsageKnown)
	}
	if e := lastEntry(t, m); !strings.HasPrefix(e.Path, geminiPath) {
		t.Errorf("asked %s", e.Path)
	}
}

func TestGeminiCallsToolsSideBySide(t *testing.T) {
	m, _ := startMock(t)
	c, req := newGeminiClient(t, m.URL), geminiRequest("please look")
	got, err := c.Complete(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []model.ToolCall{{Name: "read_file", Args: `{"path":"a.go"}`}, {Name: "grep", Args: `{"pattern":"x y","glob":"*.go"}`}, {Name: "list_dir", Args: "{}"}}
	if diff := cmp.Diff(want, got.Message.Calls); diff != "" {
		t.Fatal(diff)
	}
	results := model.Message{Role: model.ToolRole}
	for i, id := range []string{"1-0", "1-1", "1-2"} {
		got.Message.Calls[i].ID = id
		results.Results = append(results.Results, model.ToolResult{Call: id, Text: "result " + id})
	}
	req.Messages = append(req.Messages, got.Message, results)
	if got, err = c.Complete(t.Context(), req, nil); err != nil || got.Message.Text != "Found." {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGeminiIsCutAndRefused(t *testing.T) {
	m, _ := startMock(t)
	c := newGeminiClient(t, m.URL)
	got, err := c.Complete(t.Context(), geminiRequest("long answer"), nil)
	if err != nil || got.Stop != model.StopMaxOutput || got.Message.Text != "It begins and" {
		t.Errorf("%+v, %v", got, err)
	}
	var e *model.Error
	if got, err = c.Complete(t.Context(), geminiRequest("break off"), nil); !errors.As(err, &e) || e.Class != model.Network || e.Unbilled || got.UsageKnown {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = c.Complete(t.Context(), geminiRequest("too fast"), nil); !errors.As(err, &e) || e.Class != model.RateLimit || !e.Unbilled {
		t.Errorf("%v", err)
	}
}

const geminiFixtures = `{"fixtures": [
 {"match": {"userMessage": "think"}, "response": {"content": "Four.", "reasoning": "Two and two.", "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}}},
 {"match": {"userMessage": "picture"}, "response": {"content": "A cat."}},
 {"match": {"userMessage": "as JSON"}, "response": {"content": "{\"answer\": 4}"}}]}`

// Reasoning is told as it comes and is no part of the answer; an image and the schema of
// an answer are taken with a request.
func TestGeminiThinksSeesAndKeepsASchema(t *testing.T) {
	m, err := mockprovider.Start(t.Context(), mockprovider.Config{Fixtures: []byte(geminiFixtures), Dir: t.TempDir(), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	c, thought := newGeminiClient(t, m.URL), ""
	got, err := c.Complete(t.Context(), geminiRequest("please think"), func(d model.Delta) {
		if d.Kind == model.ReasoningDelta {
			thought += d.Text
		}
	})
	if err != nil || got.Message.Text != "Four." || thought != "Two and two." || got.Usage.Total() != 19 {
		t.Errorf("%+v thought %q, %v", got, thought, err)
	}
	req := geminiRequest("what is in the picture")
	req.Messages[0].Media = []model.Media{{Kind: model.Image, Type: model.PNG, Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}}
	if got, err = c.Complete(t.Context(), req, nil); err != nil || got.Message.Text != "A cat." {
		t.Errorf("%+v, %v", got, err)
	}
	req = geminiRequest("as JSON please")
	req.Tools, req.Schema = nil, `{"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]}`
	if got, err = c.Complete(t.Context(), req, nil); err != nil || got.Message.Text != `{"answer": 4}` {
		t.Errorf("%+v, %v", got, err)
	}
}
