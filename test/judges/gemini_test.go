package judges_test

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/gemini"
	"github.com/troupe-run/troupe/test/judges/internal/sdktypes"
)

// body is the request of generateContent in the words of Google's SDK.
type body struct {
	Contents          []*genai.Content        `json:"contents"`
	Tools             []*genai.Tool           `json:"tools"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig"`
	SystemInstruction *genai.Content          `json:"systemInstruction"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
}

// wiretap takes a request and sends nothing.
type wiretap struct{ body []byte }

var errTapped = errors.New("the request was taken from the wire")

func (w *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	if w.body, err = io.ReadAll(r.Body); err != nil {
		return nil, err
	}
	return nil, errTapped
}

// requests are of every kind that troupe makes.
func requests() map[string]model.Request {
	const schema = `{"type":"object","properties":{"path":{"type":"string","minLength":1}},"required":["path"]}`
	user := model.Message{Role: model.User, Text: "Hello?"}
	call := model.Message{Role: model.Assistant, Text: "I look.",
		Calls:  []model.ToolCall{{ID: "1-0", Name: "read_file", Args: `{"path":"a.go"}`}, {ID: "1-1", Name: "7 zip", Args: `{"pa`, Cut: true}},
		Opaque: []model.Opaque{{Issuer: "gemini/gemini-3.8-flash", Kind: "parts", Data: []byte(`[{"thought":"hm","is_thought":true,"thoughtSignature":"c2ln"},{"text":7},{"call":true,"thoughtSignature":"c2lnMg=="},{"call":true}]`)}}}
	results := model.Message{Role: model.ToolRole, Results: []model.ToolResult{{Call: "1-0", Text: "package a"}, {Call: "1-1", Text: "cut", Error: true}}}
	warm := 0.5
	tools := []model.ToolSpec{{Name: "read_file", Description: "Reads.", Schema: schema}, {Name: "now"}}
	whole := model.Request{Model: "gemini-3.8-flash", System: "Be brief.", Dynamic: "It is Monday.", MaxOutput: 100, Temperature: &warm, Effort: "low",
		Messages: []model.Message{user, call, results, {Role: model.User, Text: "Hurry."}}, Tools: tools}
	out := map[string]model.Request{"whole": whole, "smallest": {Model: "gemini-2.0-flash", MaxOutput: 1, Messages: []model.Message{user}}}
	add := func(name string, change func(*model.Request)) {
		r := whole
		change(&r)
		out[name] = r
	}
	add("forced", func(r *model.Request) { r.Choice = "read_file" })
	add("forced to any", func(r *model.Request) { r.Choice = model.ChoiceAny })
	add("closing", func(r *model.Request) { r.NoTools = true })
	add("structured", func(r *model.Request) { r.Schema = schema })
	add("a budget to think", func(r *model.Request) { r.Model, r.Effort, r.MaxOutput = "gemini-2.5-pro", "high", 30000 })
	add("of another model", func(r *model.Request) { r.Model = "gemini-4-argon" })
	return out
}

// TestRequestsMatchGooglesSDKTypes: every field of every kind of request is one of
// its types, and of their kind.
func TestRequestsMatchGooglesSDKTypes(t *testing.T) {
	for name, req := range requests() {
		w := &wiretap{}
		c, err := gemini.New(gemini.Config{Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Complete(t.Context(), req, nil); w.body == nil {
			t.Errorf("%s: not sent: %v", name, err)
			continue
		}
		signed := func(s string) string { return "gemini-3.8-flash" }
		if err := errors.Join(sdktypes.CheckShape(w.body, reflect.TypeFor[body]()), conformance.Gemini(w.body, req.Model, signed)); err != nil {
			t.Errorf("%s: %s: %v", name, w.body, err)
		}
		spoiled := strings.Replace(string(w.body), `"parts":[{`, `"parts":[{"txet":"x",`, 1)
		if err := sdktypes.CheckShape([]byte(spoiled), reflect.TypeFor[body]()); !errors.Is(err, sdktypes.ErrShape) {
			t.Errorf("%s: a field that there is none is taken: %v", name, err)
		}
	}
}
