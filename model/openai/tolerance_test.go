package openai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/dialect/responses"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
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
		"errors that are none": {[]string{strings.Replace(chat.Text("a"), `{"id"`, `{"error":null,"id"`, 1), `data: {"error":""}` + "\n\n", `data: {"error":{ }}` + "\n\n", `data: {"error":false}` + "\n\n", chat.Chunk("{}", "stop"), chat.Done},
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

// TestServersOfResponsesThatWriteOtherTypes: the same of the other API.
func TestServersOfResponsesThatWriteOtherTypes(t *testing.T) {
	item := func(kind, index, fields string) string {
		return responses.Event("response.output_item."+kind, `"output_index":`+index+`,"item":{`+fields+`}`)
	}
	end := responses.State("completed", "")
	reply := func(text string, stop model.Stop, calls ...model.ToolCall) model.Reply {
		return model.Reply{Message: model.Message{Text: text, Calls: calls}, Stop: stop, Served: "m-1-served"}
	}
	counted := reply("a", model.StopEnd)
	counted.Usage, counted.UsageKnown = model.Usage{Input: 28, Output: 15, CacheRead: 7, Reasoning: 4}, true
	called := reply("", model.StopTools, model.ToolCall{Name: "7", Args: `{"x":1}`})
	for name, c := range map[string]struct {
		events []string
		want   model.Reply
	}{
		"content is a text":              {[]string{item("done", "0", `"type":"message","content":"a"`), end}, reply("a", model.StopEnd)},
		"content is a number":            {[]string{responses.Text(0, "a"), item("done", "0", `"type":"message","content":7`), end}, reply("a", model.StopEnd)},
		"the text of a part is a number": {[]string{item("done", "0", `"type":"message","content":[{"text":7.0}]`), end}, reply("7.0", model.StopEnd)},
		"an index is a fraction":         {[]string{item("added", "1.0", `"type":"function_call","name":7,"arguments":null`), item("done", "1", `"type":"function_call","arguments":{"x":1}`), end}, called},
		"a piece is an object":           {[]string{item("added", "0", `"type":"function_call","name":7`), responses.Event("response.function_call_arguments.delta", `"output_index":0,"delta":{"x":1}`), end}, called},
		"states of other types":          {[]string{responses.Text(0, "a"), responses.Event("response.in_progress", `"response":"m"`), responses.State("completed", `,"output":"","error":"","incomplete_details":"","usage":[]`)}, reply("a", model.StopEnd)},
		"counts are texts and fractions": {[]string{responses.Text(0, "a"), responses.State("completed", `,"usage":{"input_tokens":"35","input_tokens_details":{"cached_tokens":7.0},"output_tokens":15.0,"output_tokens_details":{"reasoning_tokens":"4"},"total_tokens":null}`)}, counted},
		"an error that is none":          {[]string{responses.Event("response.output_text.delta", `"output_index":0,"delta":"a","error":{}`), end}, reply("a", model.StopEnd)},
	} {
		got, _ := respondWith(t, openai.Config{}, wiretest.Request(), c.events...)
		c.want.Message.Role, got.Message.Opaque = model.Assistant, nil
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
