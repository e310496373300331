package node

import (
	"encoding/json"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// Data that another version wrote do not end a stream: the run would go on unattended.
func TestDataOfAnotherVersionStayBytes(t *testing.T) {
	for _, c := range []struct {
		kind, data string
		typed      bool
	}{
		{event.KindToolStarted, `{"call":"1-0","tool":"look"}`, true},
		{event.KindToolStarted, `{"call":{"id":"1-0"}}`, false},
		{event.KindToolStarted, ``, false},
		{"tool.imagined", `{"x":1}`, false},
	} {
		got := TypedEvent(client.Event{Published: event.Published{Kind: c.kind}, Data: json.RawMessage(c.data)})
		raw, isBytes := got.Data.(json.RawMessage)
		call, isCall := got.Data.(event.ToolCall)
		if isBytes == c.typed || isBytes && string(raw) != c.data || isCall != c.typed || isCall && call.Tool != "look" {
			t.Errorf("%s %s: %#v", c.kind, c.data, got.Data)
		}
	}
}
