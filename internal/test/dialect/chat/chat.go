// Package chat is how Chat Completions of OpenAI speaks: its events, and the streams that the
// suite of package wiretest plays.
package chat

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

// Chunk renders one chunk with a choice.
func Chunk(delta, reason string) string {
	finish := "null"
	if reason != "" {
		finish = fmt.Sprintf("%q", reason)
	}
	return fmt.Sprintf("data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1-served\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
}

// Text renders a chunk with a piece of text.
func Text(s string) string { return Chunk(fmt.Sprintf(`{"content":%q}`, s), "") }

// Call renders one piece of a tool call; id and name are left out when empty.
func Call(index int, id, name, args string) string {
	if id != "" {
		id = fmt.Sprintf(`"id":%q,"type":"function",`, id)
	}
	if name != "" {
		name = fmt.Sprintf(`"name":%q,`, name)
	}
	return Chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s"function":{%s"arguments":%q}}]}`, index, id, name, args), "")
}

// The ends of a stream: the last line, and the chunk with the usage.
const (
	Done  = "data: [DONE]\n\n"
	Usage = "data: {\"id\":\"c1\",\"model\":\"m-1-served\",\"choices\":[],\"usage\":{\"prompt_tokens\":35,\"completion_tokens\":15,\"total_tokens\":50," +
		"\"prompt_tokens_details\":{\"cached_tokens\":7,\"cache_write_tokens\":3}}}\n\n"
)

// Dialect is Chat Completions.
func Dialect() wiretest.Dialect {
	role := Chunk(`{"role":"assistant","content":"","refusal":null}`, "")
	open := []string{role, Text("I look."), Call(0, "call_a", "read_file", ""), Call(0, "", "", `{"pa`)}
	calls := append(append([]string{}, open...), Call(1, "call_b", "grep", `{"pattern":"x y"`), ": keep-alive\n\n", Call(0, "", "", `th":"a.go"}`))
	all := append(append([]string{}, calls...), Call(1, "", "", `,"glob":"*.go"}`))
	return wiretest.Dialect{
		New: func(root string, t modelhttp.Timeouts) (model.Client, error) {
			return openai.New(openai.Config{BaseURL: root + "/v1", APIKey: wiretest.Key, Timeouts: t})
		},
		Hello:      []string{role, Text("Hello, "), Text("wörld"), Chunk("{}", "stop"), Usage, Done},
		HelloUsage: model.Usage{Input: 25, Output: 15, CacheRead: 7, CacheCreation: 3},
		NoUsage:    []string{role, Text("Hello, "), Text("wörld"), Chunk("{}", "stop"), Done},
		Calls:      append(append([]string{}, all...), Chunk("{}", "tool_calls"), Usage, Done),
		NoMarks:    all,
		Limit:      append(append([]string{}, open...), Call(0, "", "", `th":"a`), Chunk("{}", "length"), Usage, Done),
		Refusal:    []string{role, Chunk(`{"refusal":"No."}`, ""), Chunk("{}", "stop"), Usage, Done},
		Overload:   []string{role, Text("Hello, "), "data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\",\"code\":null}}\n\n"},
		ErrorBody: func(kind, message string) string {
			m, _ := json.Marshal(message)
			return fmt.Sprintf(`{"error":{"message":%s,"type":"some_type","param":null,"code":%q}}`, m, kind)
		},
		ErrorEvent: func(kind, message string) string {
			return fmt.Sprintf("data: {\"error\":{\"type\":\"some\",\"code\":%q,\"message\":%q}}\n\n", kind, message)
		},
		Judge:      conformance.OpenAI,
		TooLong:    `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
		BadRequest: `{"error":{"message":"Invalid value","type":"invalid_request_error","code":null}}`,
	}
}
