package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
)

// breakpointsMax is how many places of a request may be marked for the cache.
const breakpointsMax = 4

// Anthropic judges the body of a request to the Messages API. signed returns the
// model that issued a signature (or the data of a redacted block), or "" if no
// model issued it; a nil signed allows no signatures.
func Anthropic(body []byte, signed func(signature string) string) error {
	o, err := readDocument(body)
	if err != nil {
		return err
	}
	if err := o.checkFields("body", "model!", "max_tokens!", "messages!", "system", "tools", "tool_choice", "stream", "temperature",
		"output_config", "cache_control", "metadata", "thinking", "stop_sequences", "top_p", "top_k"); err != nil {
		return err
	}
	a := &messagesRequest{signed: signed}
	a.ids = map[string]bool{}
	a.model, err = readField[string](o, "body", "model")
	if err != nil || isBlank(a.model) {
		return refuseRequest(Shape, "model", "there is none: %v", err)
	}
	if most, err := readField[int64](o, "body", "max_tokens"); err != nil || most < 1 {
		return refuseRequest(Limit, "max_tokens", "%s is no number of tokens", o["max_tokens"])
	}
	for _, check := range []func(jsonObject) error{a.checkSystem, a.checkTools, a.checkChoice, a.checkConversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	if o["cache_control"] != nil {
		a.marks++
	}
	if a.marks > breakpointsMax {
		return refuseRequest(System, "cache_control", "%d breakpoints, at most %d are allowed", a.marks, breakpointsMax)
	}
	return nil
}

// messagesRequest is a request to the Messages API as it is judged.
type messagesRequest struct {
	toolTranscript
	signed func(string) string
	model  string
	marks  int // breakpoints of the cache
}

// countBreakpoint checks and counts a breakpoint.
func (a *messagesRequest) countBreakpoint(o jsonObject, where string) error {
	raw, ok := o["cache_control"]
	if !ok {
		return nil
	}
	var c jsonObject
	if json.Unmarshal(raw, &c) != nil || string(c["type"]) != `"ephemeral"` {
		return refuseRequest(Shape, where, "cache_control %s", raw)
	}
	a.marks++
	return c.checkFields(where, "type", "ttl")
}

func (a *messagesRequest) checkSystem(o jsonObject) error {
	raw, ok := o["system"]
	if !ok {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if isBlank(text) {
			return refuseRequest(System, "system", "it is empty")
		}
		return nil
	}
	var blocks []jsonObject
	if json.Unmarshal(raw, &blocks) != nil || len(blocks) == 0 {
		return refuseRequest(System, "system", "it is neither a text nor a list of blocks")
	}
	for i, b := range blocks {
		where := fmt.Sprintf("system[%d]", i)
		text, err := readField[string](b, where, "text")
		if err != nil || isBlank(text) || string(b["type"]) != `"text"` {
			return refuseRequest(System, where, "it is no text that says something")
		}
		if err := b.checkFields(where, "type", "text", "cache_control"); err != nil {
			return err
		}
		if err := a.countBreakpoint(b, where); err != nil {
			return err
		}
	}
	return nil
}

func (a *messagesRequest) checkTools(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "tools")
	if err != nil {
		return err
	}
	a.declared = map[string]bool{}
	for i, t := range list {
		where := fmt.Sprintf("tools[%d]", i)
		if err := t.checkFields(where, "name!", "input_schema!", "description", "type", "cache_control"); err != nil {
			return err
		}
		called, err := readField[string](t, where, "name")
		if err != nil {
			return err
		}
		if err := a.declareTool(where, called, t["input_schema"]); err != nil {
			return err
		}
		if err := a.countBreakpoint(t, where); err != nil {
			return err
		}
	}
	return nil
}

// declareTool takes a tool: its name is well formed, its schema that of an object
// whose properties are named, without a choice at its root.
func (t *toolTranscript) declareTool(where, called string, schema json.RawMessage) error {
	var s struct {
		Type       string
		Properties map[string]json.RawMessage
	}
	var root jsonObject
	chooses := func(key string) bool { return root[key] != nil }
	switch {
	case json.Unmarshal(schema, &root) == nil && slices.ContainsFunc([]string{"anyOf", "oneOf", "allOf", "not", "enum"}, chooses):
		return refuseRequest(Tools, where, "the schema of %s has a choice at its root: %s", called, schema)
	case !name.MatchString(called):
		return refuseRequest(Tools, where, "the name %q is not well formed", called)
	case t.declared[called]:
		return refuseRequest(Tools, where, "%s is declared twice", called)
	case json.Unmarshal(schema, &s) != nil || s.Type != "object" || s.Properties == nil:
		return refuseRequest(Tools, where, "the schema of %s is not that of an object with properties: %s", called, schema)
	}
	t.declared[called] = true
	return nil
}

func (a *messagesRequest) checkChoice(o jsonObject) error {
	raw, ok := o["tool_choice"]
	if !ok {
		return nil
	}
	var c struct {
		Type string
		Name string
	}
	if json.Unmarshal(raw, &c) != nil {
		return refuseRequest(Choice, "tool_choice", "%s", raw)
	}
	switch {
	case len(a.declared) == 0:
		return refuseRequest(Choice, "tool_choice", "%s, and there are no tools", raw)
	case c.Type == "tool" && a.declared[c.Name], (c.Type == "auto" || c.Type == "any" || c.Type == "none") && c.Name == "":
		return nil
	}
	return refuseRequest(Choice, "tool_choice", "%s", raw)
}

func (a *messagesRequest) checkConversation(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "messages")
	if err != nil {
		return err
	}
	before := ""
	for i, m := range list {
		where := fmt.Sprintf("messages[%d]", i)
		if err := m.checkFields(where, "role!", "content!"); err != nil {
			return err
		}
		role, err := readField[string](m, where, "role")
		switch {
		case err != nil || role != "user" && role != "assistant":
			return refuseRequest(Shape, where, "the role is %s", m["role"])
		case before == "" && role != "user":
			return refuseRequest(First, where, "%s speaks first", role)
		case role == before:
			return refuseRequest(Alternation, where, "two messages of the %s in a row", role)
		}
		if err := a.checkMessage(where, role, m["content"]); err != nil {
			return err
		}
		before = role
	}
	if before != "user" {
		return refuseRequest(Last, "messages", "the last message is of %q, so the model has nothing to answer", before)
	}
	return nil
}

// checkMessage judges one message: its text, calls and results.
func (a *messagesRequest) checkMessage(where, role string, content json.RawMessage) error {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if isBlank(text) {
			return refuseRequest(Empty, where, "it says nothing")
		}
		return a.checkAnswers(where, nil)
	}
	var blocks []jsonObject
	if json.Unmarshal(content, &blocks) != nil {
		return refuseRequest(Shape, where, "its content is neither a text nor a list of blocks")
	}
	if len(blocks) == 0 {
		return refuseRequest(Empty, where, "it has no blocks")
	}
	m := &judgedMessage{messagesRequest: a, role: role}
	for i, b := range blocks {
		if err := m.checkBlock(fmt.Sprintf("%s.content[%d]", where, i), b); err != nil {
			return err
		}
	}
	if m.last == "thinking" || m.last == "redacted_thinking" {
		return refuseRequest(Order, where, "it ends in thoughts")
	}
	if err := a.checkAnswers(where, m.results); err != nil {
		return err
	}
	a.open = m.calls
	return nil
}

// judgedMessage is one message as it is judged.
type judgedMessage struct {
	*messagesRequest
	role    string
	calls   []toolCall
	results []toolAnswer
	last    string // type of the block before
}

// sides maps the type of a block to the only role that may send it; "" allows both roles.
var sides = map[string]string{"text": "", "image": "user", "document": "user", "tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant",
	"tool_result": "user"}

func (m *judgedMessage) checkBlock(where string, b jsonObject) error {
	kind, err := readField[string](b, where, "type")
	if err != nil {
		return err
	}
	side, known := sides[kind]
	if !known || side != "" && side != m.role {
		return refuseRequest(Shape, where, "a block of type %q from the %s", kind, m.role)
	}
	if err := m.countBreakpoint(b, where); err != nil {
		return err
	}
	before := m.last
	m.last = kind
	switch kind {
	case "tool_use":
		return m.checkToolUse(where, b)
	case "tool_result":
		if before != "" && before != "tool_result" {
			return refuseRequest(Order, where, "a result behind a %s: results come first", before)
		}
		return m.checkResult(where, b)
	case "image":
		return m.checkMedia(where, b, "image/jpeg", "image/png", "image/gif", "image/webp")
	case "document":
		return m.checkMedia(where, b, "application/pdf")
	case "thinking":
		return m.checkThought(where, b, "signature", "thinking!")
	case "redacted_thinking":
		return m.checkThought(where, b, "data")
	}
	if before == "tool_use" {
		return refuseRequest(Order, where, "text behind a call")
	}
	text, err := readField[string](b, where, "text")
	if err != nil {
		return err
	}
	if isBlank(text) {
		return refuseRequest(Empty, where, "a text that says nothing")
	}
	return b.checkFields(where, "type", "text!", "cache_control")
}

func (m *judgedMessage) checkToolUse(where string, b jsonObject) error {
	if err := b.checkFields(where, "type", "id!", "name!", "input!", "cache_control"); err != nil {
		return err
	}
	id, err := readField[string](b, where, "id")
	if err != nil {
		return err
	}
	tool, err := readField[string](b, where, "name")
	if err != nil {
		return err
	}
	m.calls = append(m.calls, toolCall{id, tool})
	return m.addCall(where, id, tool, b["input"])
}

func (m *judgedMessage) checkResult(where string, b jsonObject) error {
	if err := b.checkFields(where, "type", "tool_use_id!", "content", "is_error", "cache_control"); err != nil {
		return err
	}
	id, err := readField[string](b, where, "tool_use_id")
	if err != nil {
		return err
	}
	failed, err := readField[bool](b, where, "is_error")
	if err != nil {
		return err
	}
	m.results = append(m.results, toolAnswer{id, failed})
	content, ok := b["content"]
	if !ok {
		return nil // a tool may have nothing to say
	}
	var text string
	var parts []struct{ Type, Text string }
	if json.Unmarshal(content, &text) == nil {
		parts = append(parts, struct{ Type, Text string }{"text", text})
	} else if json.Unmarshal(content, &parts) != nil {
		return refuseRequest(Shape, where, "the content of a result is neither a text nor a list of blocks")
	}
	for _, p := range parts {
		if p.Type != "text" || isBlank(p.Text) {
			return refuseRequest(Empty, where, "a result with a %q that says nothing", p.Type)
		}
	}
	return nil
}

// checkThought judges a block that a model has signed.
func (m *judgedMessage) checkThought(where string, b jsonObject, signature string, more ...string) error {
	if err := b.checkFields(where, append([]string{"type", signature + "!"}, more...)...); err != nil {
		return err
	}
	sign, err := readField[string](b, where, signature)
	if err != nil {
		return err
	}
	issuer := ""
	if m.signed != nil {
		issuer = m.signed(sign)
	}
	if issuer == "" || issuer != m.model {
		return refuseRequest(Signature, where, "%q was issued by %q, and goes to %q", sign, issuer, m.model)
	}
	return nil
}
