package anthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/dialect/messages"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model/anthropic"
)

// Media stand before the text that speaks of them; a text document is text.
func TestMediaOnTheWire(t *testing.T) {
	req := wiretest.Request()
	req.Messages = wiretest.Shown()
	_, body, _ := exchangeWith(t, anthropic.Config{APIKey: wiretest.Key}, req, messages.Dialect().Hello...)
	var want any
	if err := json.Unmarshal([]byte(`[{"role": "user", "content": [
		{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "YQ=="}},
		{"type": "document", "title": "b.pdf", "source": {"type": "base64", "media_type": "application/pdf", "data": "Yg=="}},
		{"type": "text", "text": "[document c.csv]\n1,2\n[end of the document]"}, {"type": "text", "text": "What is this?"}]},
		{"role": "assistant", "content": [{"type": "text", "text": "Three things."}]}, {"role": "user", "content": [{"type": "text", "text": "Really?"}]}]`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, body["messages"]); diff != "" {
		t.Error(diff)
	}
}
