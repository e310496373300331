package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model/openai"
)

func jsonList(t *testing.T, text string) (want any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	return want
}

// Media stand before the text that speaks of them, and how finely an image is seen
// is said, because it is what it costs.
func TestMediaOnTheWire(t *testing.T) {
	req := wiretest.Request()
	req.System, req.Messages = "", wiretest.Shown()
	_, body, _ := completeWith(t, openai.Config{APIKey: wiretest.Key}, req, chat.Dialect().Hello...)
	if diff := cmp.Diff(jsonList(t, `[{"role": "user", "content": [
		{"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ==", "detail": "high"}},
		{"type": "file", "file": {"filename": "b.pdf", "file_data": "data:application/pdf;base64,Yg=="}},
		{"type": "text", "text": "[document c.csv]\n1,2\n[end of the document]"}, {"type": "text", "text": "What is this?"}]},
		{"role": "assistant", "content": "Three things."}, {"role": "user", "content": "Really?"}]`), body["messages"]); diff != "" {
		t.Error(diff)
	}
}

func TestMediaInResponses(t *testing.T) {
	req := wiretest.Request()
	req.Messages = wiretest.Shown()[:1]
	_, body := respondWith(t, openai.Config{APIKey: wiretest.Key}, req, responses.Dialect().Hello...)
	if diff := cmp.Diff(jsonList(t, `[{"role": "user", "content": [
		{"type": "input_image", "image_url": "data:image/png;base64,YQ==", "detail": "high"},
		{"type": "input_file", "filename": "b.pdf", "file_data": "data:application/pdf;base64,Yg=="},
		{"type": "input_text", "text": "[document c.csv]\n1,2\n[end of the document]"}, {"type": "input_text", "text": "What is this?"}]}]`), body["input"]); diff != "" {
		t.Error(diff)
	}
}
