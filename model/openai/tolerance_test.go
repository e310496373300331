package openai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
	"github.com/troupe-run/troupe/test/dialect/chat"
	"github.com/troupe-run/troupe/test/wiretest"
)

// TestServersThatWriteOtherTypes: what they mean is read all the same.
func TestServersThatWriteOtherTypes(t *testing.T) {
	call := func(fields string) string { return chat.Chunk(`{"tool_calls":[`+fields+`]}`, "tool_calls") }
	counts := `data: {"model":7,"choices":[],"usage":{"prompt_tokens":"35","completion_tokens":15.0,"total_tokens":null,"prompt_tokens_details":null}}` + "\n\n"
	for name, c := range map[string]struct {
		events []string
		want   model.Reply
	}{
		"arguments are an object": {[]string{call(`{"index":0,"id":5,"function":{"name":"a","arguments":{"x":1}}}`), chat.Done},
			model.Reply{Message: model.Message{Calls: []model.ToolCall{{Name: "a", Args: `{"x":1}`}}}, Stop: model.StopTools, Served: "m-1-served"}},
		"an index is null": {[]string{call(`{"index":null,"function":{"name":"a","arguments":"{}"}}`), chat.Done},
			model.Reply{Message: model.Message{Calls: []model.ToolCall{{Name: "a", Args: `{}`}}}, Stop: model.StopTools, Served: "m-1-served"}},
		"counts are texts and fractions": {[]string{chat.Text("a"), chat.Chunk("{}", "stop"), counts, chat.Done},
			model.Reply{Message: model.Message{Text: "a"}, Stop: model.StopEnd, Usage: model.Usage{Input: 35, Output: 15}, UsageKnown: true, Served: "7"}},
		"an error that is none": {[]string{strings.Replace(chat.Text("a"), `{"id"`, `{"error":null,"id"`, 1), chat.Chunk("{}", "stop"), chat.Done},
			model.Reply{Message: model.Message{Text: "a"}, Stop: model.StopEnd, Served: "m-1-served"}},
		"an empty event": {[]string{chat.Text("a"), "data:\n\n", chat.Chunk("{}", "stop"), chat.Done},
			model.Reply{Message: model.Message{Text: "a"}, Stop: model.StopEnd, Served: "m-1-served"}},
		"lines end in CRLF, no reason": {[]string{strings.ReplaceAll(chat.Text("a")+chat.Done, "\n", "\r\n")},
			model.Reply{Message: model.Message{Text: "a"}, Stop: model.StopUnknown, Served: "m-1-served"}},
	} {
		c.want.Message.Role = model.Assistant
		got, _, _ := completeWith(t, openai.Config{}, wiretest.Request(), c.events...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
