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
	o, err := document(body)
	if err != nil {
		return err
	}
	if err := o.fields("body", "model!", "max_tokens!", "messages!", "system", "tools", "tool_choice", "stream", "temperature",
		"output_config", "cache_control", "metadata", "thinking", "stop_sequences", "top_p", "top_k"); err != nil {
		return err
	}
	a := &messages{signed: signed}
	a.ids = map[string]bool{}
	a.model, err = read[string](o, "body", "model")
	if err != nil || blank(a.model) {
		return refuse(Shape, "model", "there is none: %v", err)
	}
	if most, err := read[int64](o, "body", "max_tokens"); err != nil || most < 1 {
		return refuse(Limit, "max_tokens", "%s is no number of tokens", o["max_tokens"])
	}
	for _, check := range []func(object) error{a.system, a.tools, a.choice, a.conversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	if o["cache_control"] != nil {
		a.marks++
	}
	if a.marks > breakpointsMax {
		return refuse(System, "cache_control", "%d breakpoints, at most %d are allowed", a.marks, breakpointsMax)
	}
	return nil
}

// messages is a request to the Messages API as it is judged.
type messages struct {
	transcript
	signed func(string) string
	model  string
	marks  int // breakpoints of the cache
}

// mark checks and counts a breakpoint.
func (a *messages) mark(o object, where string) error {
	raw, ok := o["cache_control"]
	if !ok {
		return nil
	}
	var c object
	if json.Unmarshal(raw, &c) != nil || string(c["type"]) != `"ephemeral"` {
		return refuse(Shape, where, "cache_control %s", raw)
	}
	a.marks++
	return c.fields(where, "type", "ttl")
}

func (a *messages) system(o object) error {
	raw, ok := o["system"]
	if !ok {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if blank(text) {
			return refuse(System, "system", "it is empty")
		}
		return nil
	}
	var blocks []object
	if json.Unmarshal(raw, &blocks) != nil || len(blocks) == 0 {
		return refuse(System, "system", "it is neither a text nor a list of blocks")
	}
	for i, b := range blocks {
		where := fmt.Sprintf("system[%d]", i)
		text, err := read[string](b, where, "text")
		if err != nil || blank(text) || string(b["type"]) != `"text"` {
			return refuse(System, where, "it is no text that says something")
		}
		if err := b.fields(where, "type", "text", "cache_control"); err != nil {
			return err
		}
		if err := a.mark(b, where); err != nil {
			return err
		}
	}
	return nil
}

func (a *messages) tools(o object) error {
	list, err := read[[]object](o, "body", "tools")
	if err != nil {
		return err
	}
	a.declared = map[string]bool{}
	for i, t := range list {
		where := fmt.Sprintf("tools[%d]", i)
		if err := t.fields(where, "name!", "input_schema!", "description", "type", "cache_control"); err != nil {
			return err
		}
		called, err := read[string](t, where, "name")
		if err != nil {
			return err
		}
		if err := a.declare(where, called, t["input_schema"]); err != nil {
			return err
		}
		if err := a.mark(t, where); err != nil {
			return err
		}
	}
	return nil
}

// declare takes a tool: its name is well formed, its schema that of an object
// whose properties are named, without a choice at its root.
func (t *transcript) declare(where, called string, schema json.RawMessage) error {
	var s struct {
		Type       string
		Properties map[string]json.RawMessage
	}
	var root object
	chooses := func(key string) bool { return root[key] != nil }
	switch {
	case json.Unmarshal(schema, &root) == nil && slices.ContainsFunc([]string{"anyOf", "oneOf", "allOf", "not", "enum"}, chooses):
		return refuse(Tools, where, "the schema of %s has a choice at its root: %s", called, schema)
	case !name.MatchString(called):
		return refuse(Tools, where, "the name %q is not well formed", called)
	case t.declared[called]:
		return refuse(Tools, where, "%s is declared twice", called)
	case json.Unmarshal(schema, &s) != nil || s.Type != "object" || s.Properties == nil:
		return refuse(Tools, where, "the schema of %s is not that of an object with properties: %s", called, schema)
	}
	t.declared[called] = true
	return nil
}

func (a *messages) choice(o object) error {
	raw, ok := o["tool_choice"]
	if !ok {
		return nil
	}
	var c struct {
		Type string
		Name string
	}
	if json.Unmarshal(raw, &c) != nil {
		return refuse(Choice, "tool_choice", "%s", raw)
	}
	switch {
	case len(a.declared) == 0:
		return refuse(Choice, "tool_choice", "%s, and there are no tools", raw)
	case c.Type == "tool" && a.declared[c.Name], (c.Type == "auto" || c.Type == "any" || c.Type == "none") && c.Name == "":
		return nil
	}
	return refuse(Choice, "tool_choice", "%s", raw)
}

func (a *messages) conversation(o object) error {
	list, err := read[[]object](o, "body", "messages")
	if err != nil {
		return err
	}
	before := ""
	for i, m := range list {
		where := fmt.Sprintf("messages[%d]", i)
		if err := m.fields(where, "role!", "content!"); err != nil {
			return err
		}
		role, err := read[string](m, where, "role")
		switch {
		case err != nil || role != "user" && role != "assistant":
			return refuse(Shape, where, "the role is %s", m["role"])
		case before == "" && role != "user":
			return refuse(First, where, "%s speaks first", role)
		case role == before:
			return refuse(Alternation, where, "two messages of the %s in a row", role)
		}
		if err := a.message(where, role, m["content"]); err != nil {
			return err
		}
		before = role
	}
	if before != "user" {
		return refuse(Last, "messages", "the last message is of %q, so the model has nothing to answer", before)
	}
	return nil
}

// message judges one message: its text, calls and results.
func (a *messages) message(where, role string, content json.RawMessage) error {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if blank(text) {
			return refuse(Empty, where, "it says nothing")
		}
		return a.answer(where, nil)
	}
	var blocks []object
	if json.Unmarshal(content, &blocks) != nil {
		return refuse(Shape, where, "its content is neither a text nor a list of blocks")
	}
	if len(blocks) == 0 {
		return refuse(Empty, where, "it has no blocks")
	}
	m := &message{messages: a, role: role}
	for i, b := range blocks {
		if err := m.block(fmt.Sprintf("%s.content[%d]", where, i), b); err != nil {
			return err
		}
	}
	if m.last == "thinking" || m.last == "redacted_thinking" {
		return refuse(Order, where, "it ends in thoughts")
	}
	if err := a.answer(where, m.results); err != nil {
		return err
	}
	a.open = m.calls
	return nil
}

// message is one message as it is judged.
type message struct {
	*messages
	role    string
	calls   []call
	results []answer
	last    string // type of the block before
}

// sides maps the type of a block to the only role that may send it; "" allows both roles.
var sides = map[string]string{"text": "", "image": "user", "document": "user", "tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant",
	"tool_result": "user"}

func (m *message) block(where string, b object) error {
	kind, err := read[string](b, where, "type")
	if err != nil {
		return err
	}
	side, known := sides[kind]
	if !known || side != "" && side != m.role {
		return refuse(Shape, where, "a block of type %q from the %s", kind, m.role)
	}
	if err := m.mark(b, where); err != nil {
		return err
	}
	before := m.last
	m.last = kind
	switch kind {
	case "tool_use":
		return m.use(where, b)
	case "tool_result":
		if before != "" && before != "tool_result" {
			return refuse(Order, where, "a result behind a %s: results come first", before)
		}
		return m.result(where, b)
	case "image":
		return m.shown(where, b, "image/jpeg", "image/png", "image/gif", "image/webp")
	case "document":
		return m.shown(where, b, "application/pdf")
	case "thinking":
		return m.thought(where, b, "signature", "thinking!")
	case "redacted_thinking":
		return m.thought(where, b, "data")
	}
	if before == "tool_use" {
		return refuse(Order, where, "text behind a call")
	}
	text, err := read[string](b, where, "text")
	if err != nil {
		return err
	}
	if blank(text) {
		return refuse(Empty, where, "a text that says nothing")
	}
	return b.fields(where, "type", "text!", "cache_control")
}

func (m *message) use(where string, b object) error {
	if err := b.fields(where, "type", "id!", "name!", "input!", "cache_control"); err != nil {
		return err
	}
	id, err := read[string](b, where, "id")
	if err != nil {
		return err
	}
	tool, err := read[string](b, where, "name")
	if err != nil {
		return err
	}
	m.calls = append(m.calls, call{id, tool})
	return m.ask(where, id, tool, b["input"])
}

func (m *message) result(where string, b object) error {
	if err := b.fields(where, "type", "tool_use_id!", "content", "is_error", "cache_control"); err != nil {
		return err
	}
	id, err := read[string](b, where, "tool_use_id")
	if err != nil {
		return err
	}
	failed, err := read[bool](b, where, "is_error")
	if err != nil {
		return err
	}
	m.results = append(m.results, answer{id, failed})
	content, ok := b["content"]
	if !ok {
		return nil // a tool may have nothing to say
	}
	var text string
	var parts []struct{ Type, Text string }
	if json.Unmarshal(content, &text) == nil {
		parts = append(parts, struct{ Type, Text string }{"text", text})
	} else if json.Unmarshal(content, &parts) != nil {
		return refuse(Shape, where, "the content of a result is neither a text nor a list of blocks")
	}
	for _, p := range parts {
		if p.Type != "text" || blank(p.Text) {
			return refuse(Empty, where, "a result with a %q that says nothing", p.Type)
		}
	}
	return nil
}

// thought judges a block that a model has signed.
func (m *message) thought(where string, b object, signature string, more ...string) error {
	if err := b.fields(where, append([]string{"type", signature + "!"}, more...)...); err != nil {
		return err
	}
	sign, err := read[string](b, where, signature)
	if err != nil {
		return err
	}
	issuer := ""
	if m.signed != nil {
		issuer = m.signed(sign)
	}
	if issuer == "" || issuer != m.model {
		return refuse(Signature, where, "%q was issued by %q, and goes to %q", sign, issuer, m.model)
	}
	return nil
}
