// Package messages is how the Messages API of Anthropic speaks: its events, and the streams that
// the suite of package wiretest plays.
package messages

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/anthropic"
)

// Event renders one event of the Messages API.
func Event(kind, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
}

// Begin renders the event that begins block i.
func Begin(i int, block string) string {
	return Event("content_block_start", fmt.Sprintf(`"index":%d,"content_block":%s`, i, block))
}

// Delta renders a piece of block i.
func Delta(i int, d string) string {
	return Event("content_block_delta", fmt.Sprintf(`"index":%d,"delta":%s`, i, d))
}

// Text renders a piece of text of block i.
func Text(i int, s string) string {
	return Delta(i, fmt.Sprintf(`{"type":"text_delta","text":%q}`, s))
}

// Args renders a piece of arguments of block i.
func Args(i int, s string) string {
	return Delta(i, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, s))
}

// End renders the event that ends block i.
func End(i int) string { return Event("content_block_stop", fmt.Sprintf(`"index":%d`, i)) }

// Finish renders the event with the stop reason and the final usage.
func Finish(reason string) string {
	return Event("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15}`, reason))
}

// Usage is the usage in the event that begins a message.
const Usage = `,"usage":{"input_tokens":25,"cache_read_input_tokens":7,"cache_creation_input_tokens":3,"output_tokens":1}`

// Start renders the event that begins a message.
func Start(usage string) string {
	return Event("message_start", `"message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1-served","content":[],"stop_reason":null`+usage+`}`)
}

// TextBlock is a block of text that begins.
const TextBlock = `{"type":"text","text":""}`

// ToolBlock is a call of a tool that begins.
func ToolBlock(name string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":"toolu_x%s","name":%q,"input":{}}`, name, name)
}

// Dialect is the Messages API.
func Dialect() wiretest.Dialect {
	ping, stop := Event("ping", ""), Event("message_stop", "")
	hello := []string{Begin(0, TextBlock), ping, Text(0, "Hello, "), Text(0, "wörld"), End(0)}
	open := []string{Start(Usage), Begin(0, TextBlock), Text(0, "I look."), End(0), Begin(1, ToolBlock("read_file")), Args(1, ""), Args(1, `{"pa`)}
	calls := append(open, Begin(2, ToolBlock("grep")), Args(2, `{"pattern":"x y"`), Args(1, `th":"a.go"}`))
	marked := append(append([]string{}, calls...), End(1), Args(2, `,"glob":"*.go"}`), End(2), Finish("tool_use"), stop)
	return wiretest.Dialect{
		New: func(root string, t modelhttp.Timeouts) (model.Client, error) {
			return anthropic.New(anthropic.Config{BaseURL: root, APIKey: wiretest.Key, Timeouts: t})
		},
		Hello:      append(append([]string{Start(Usage)}, hello...), Finish("end_turn"), stop),
		HelloUsage: model.Usage{Input: 25, Output: 15, CacheRead: 7, CacheCreation: 3},
		NoUsage:    append(append([]string{Start("")}, hello...), Event("message_delta", `"delta":{"stop_reason":"end_turn"}`), stop),
		Calls:      marked,
		NoMarks:    append(append([]string{}, calls...), Args(2, `,"glob":"*.go"}`)),
		Limit:      append(append([]string{}, open...), Args(1, `th":"a`), End(1), Finish("max_tokens"), stop),
		Refusal:    []string{Start(Usage), Finish("refusal"), stop},
		Overload:   []string{Start(Usage), Begin(0, TextBlock), Text(0, "Hello, "), Event("error", `"error":{"type":"overloaded_error","message":"busy"}`)},
		ErrorBody: func(kind, message string) string {
			m, _ := json.Marshal(message)
			return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_1"}`, kind, m)
		},
		Thinking: []string{Start(Usage), Begin(0, `{"type":"thinking","thinking":"","signature":""}`), Delta(0, `{"type":"thinking_delta","thinking":"hm"}`),
			Delta(0, `{"type":"signature_delta","signature":"sig"}`), End(0), Begin(1, TextBlock), Text(1, "I look."), End(1),
			Begin(2, `{"type":"redacted_thinking","data":"xyz"}`), End(2), Begin(3, ToolBlock("read_file")), Args(3, `{"path":"a.go"}`), End(3), Finish("tool_use"), stop},
		ErrorEvent: func(kind, message string) string {
			return Event("error", fmt.Sprintf(`"error":{"type":%q,"message":%q}`, kind, message))
		},
		Judge:      func(body []byte) error { return conformance.Anthropic(body, func(string) string { return "m-1" }) },
		TooLong:    `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
		BadRequest: `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate"}}`,
	}
}
