package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// batchMax is how many messages a batch may have. All of them are served at once, and take one place among the calls that
// a client may have under way.
const batchMax = 16

// MessageProblem says what is wrong with valid JSON as a message of JSON-RPC or a batch of them; "": nothing.
func MessageProblem(text []byte) string {
	messages := []json.RawMessage{text}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		_ = json.Unmarshal(text, &messages) // it is valid JSON, and an array
		if len(messages) > batchMax {
			return fmt.Sprintf("a batch has at most %d messages, and this one has %d", batchMax, len(messages))
		}
	}
	isBad := func(m json.RawMessage) bool { _, err := jsonrpc.DecodeMessage(m); return err != nil }
	if len(messages) == 0 || slices.ContainsFunc(messages, isBad) {
		return "it is not a JSON-RPC message"
	}
	if i := slices.IndexFunc(messages, hasOddID); i >= 0 {
		return "the id is neither a text nor a whole number of 64 bits"
	}
	return ""
}

// hasOddID reports whether the id of a message is a number that its answer would not repeat.
func hasOddID(message json.RawMessage) bool {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(message, &m) != nil || len(m.ID) == 0 || m.ID[0] == '"' || string(m.ID) == "null" {
		return false
	}
	_, err := strconv.ParseInt(string(m.ID), 10, 64)
	return err != nil
}

// errorAnswer is the answer to what has no id.
func errorAnswer(code int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`, code, text)
}
