// Package responses is how the Responses API of OpenAI speaks: its events, and the streams that
// the suite of package wiretest plays.
package responses

import (
	"fmt"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/internal/test/conformance"
	"github.com/troupe-run/troupe/internal/test/dialect/chat"
	"github.com/troupe-run/troupe/internal/test/wiretest"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
)

// Event renders one event of the Responses API.
func Event(kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":1%s}\n\n", kind, kind, fields)
}

// State renders an event about the whole: its status, and more fields or "".
func State(kind, more string) string {
	return Event("response."+kind, fmt.Sprintf(`"response":{"id":"resp_1","object":"response","model":"m-1-served","status":%q,"output":[]%s}`, kind, more))
}

// Added renders the event that begins an item.
func Added(index int, item string) string {
	return Event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

// Done renders the event that ends an item.
func Done(index int, item string) string {
	return Event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

// Text renders the event of a piece of text.
func Text(index int, text string) string {
	return Event("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_%d","output_index":%d,"content_index":0,"delta":%q,"logprobs":[]`, index, index, text))
}

// Args renders the event of a piece of arguments.
func Args(index int, text string) string {
	return Event("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%d","output_index":%d,"delta":%q`, index, index, text))
}

// Message is a message item.
func Message(text, phase string) string {
	return fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":%q,"content":[{"type":"output_text","text":%q,"annotations":[]}]}`, phase, text)
}

// Call is a function call.
func Call(name, args, status string) string {
	return fmt.Sprintf(`{"id":"fc_1","type":"function_call","status":%q,"call_id":"call_x","name":%q,"arguments":%q}`, status, name, args)
}

// Thought is a reasoning item.
func Thought(id, encrypted, summary string) string {
	return fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":%q}],"encrypted_content":%q,"status":"completed"}`, id, summary, encrypted)
}

// An item that begins, and the usage in the event of a state.
const (
	EmptyMessage = `{"id":"msg_0","type":"message","status":"in_progress","role":"assistant","content":[]}`
	Usage        = `,"usage":{"input_tokens":35,"input_tokens_details":{"cached_tokens":7,"cache_write_tokens":3},"output_tokens":15,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":50}`
)

// Dialect is the Responses API.
func Dialect() wiretest.Dialect {
	head := []string{State("created", `,"usage":null,"error":null`), State("in_progress", "")}
	hello := append(head[:2:2], Added(0, EmptyMessage), Text(0, "Hello, "), ": keep-alive\n\n", Text(0, "wörld"), Done(0, Message("Hello, wörld", "")))
	open := append(head[:2:2], Added(0, EmptyMessage), Text(0, "I look."), Done(0, Message("I look.", "")),
		Added(1, Call("read_file", "", "in_progress")), Args(1, `{"pa`))
	calls := append(open[:len(open):len(open)], Added(2, Call("grep", "", "in_progress")), Args(2, `{"pattern":"x y"`), Args(1, `th":"a.go"}`), Args(2, `,"glob":"*.go"}`))
	return wiretest.Dialect{
		New: func(root string, t modelhttp.Timeouts) (model.Client, error) {
			return openai.New(openai.Config{BaseURL: root + "/v1", APIKey: wiretest.Key, Timeouts: t, API: openai.APIResponses})
		},
		Hello:      append(hello[:len(hello):len(hello)], State("completed", Usage)),
		HelloUsage: model.Usage{Input: 25, Output: 15, CacheRead: 7, CacheCreation: 3, Reasoning: 4},
		NoUsage:    append(hello[:len(hello):len(hello)], State("completed", "")),
		Calls: append(calls[:len(calls):len(calls)], Done(1, Call("read_file", `{"path":"a.go"}`, "completed")),
			Done(2, Call("grep", `{"pattern":"x y","glob":"*.go"}`, "completed")), State("completed", Usage)),
		NoMarks: calls,
		Limit: append(open[:len(open):len(open)], Args(1, `th":"a`), Done(1, Call("read_file", `{"path":"a`, "incomplete")),
			State("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`+Usage)),
		Refusal: append(head[:2:2], Added(0, EmptyMessage), Event("response.refusal.delta", `"output_index":0,"content_index":0,"delta":"No."`),
			Done(0, `{"id":"m","type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`), State("completed", Usage)),
		Overload: append(head[:2:2], Added(0, EmptyMessage), Text(0, "Hello, "),
			State("failed", `,"error":{"code":"server_error","message":"busy"},"usage":null`)),
		ErrorBody: chat.Dialect().ErrorBody,
		ErrorEvent: func(kind, message string) string {
			return Event("error", fmt.Sprintf(`"code":%q,"message":%q,"param":null`, kind, message))
		},
		Judge:      func(body []byte) error { return conformance.Responses(body, func(string) string { return "m-1" }) },
		TooLong:    chat.Dialect().TooLong,
		BadRequest: chat.Dialect().BadRequest,
	}
}
