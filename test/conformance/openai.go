package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
)

// callIDMax is the longest id of a call that OpenAI takes.
const callIDMax = 40

// OpenAI judges the body of a request to Chat Completions.
func OpenAI(body []byte) error {
	o, err := document(body)
	if err != nil {
		return err
	}
	if err := o.fields("body", "model!", "messages!", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "stream",
		"stream_options", "temperature", "reasoning_effort", "parallel_tool_calls", "seed", "stop", "top_p", "response_format"); err != nil {
		return err
	}
	c := &completion{}
	c.ids = map[string]bool{}
	model, err := read[string](o, "body", "model")
	if err != nil || blank(model) {
		return refuse(Shape, "model", "there is none: %v", err)
	}
	for _, check := range []func(object) error{c.limit, c.tools, c.choice, c.conversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// completion is a request to Chat Completions as it is judged.
type completion struct{ transcript }

func (c *completion) limit(o object) error {
	said := 0
	for _, field := range []string{"max_tokens", "max_completion_tokens"} {
		if o[field] == nil {
			continue
		}
		said++
		if most, err := read[int64](o, "body", field); err != nil || most < 1 {
			return refuse(Limit, field, "%s is no number of tokens", o[field])
		}
	}
	if said != 1 {
		return refuse(Limit, "body", "the limit of the output is said %d times", said)
	}
	return nil
}

func (c *completion) tools(o object) error {
	list, err := read[[]object](o, "body", "tools")
	if err != nil {
		return err
	}
	if o["tools"] != nil && len(list) == 0 {
		return refuse(Tools, "tools", "the list is there and empty")
	}
	c.declared = map[string]bool{}
	for i, t := range list {
		where := fmt.Sprintf("tools[%d]", i)
		f, err := read[object](t, where, "function")
		if err != nil {
			return err
		}
		if string(t["type"]) != `"function"` {
			return refuse(Shape, where, "type %s", t["type"])
		}
		if err := f.fields(where, "name!", "parameters!", "description", "strict"); err != nil {
			return err
		}
		called, err := read[string](f, where, "name")
		if err != nil {
			return err
		}
		if err := c.declare(where, called, f["parameters"]); err != nil {
			return err
		}
	}
	return nil
}

func (c *completion) choice(o object) error {
	raw, ok := o["tool_choice"]
	if !ok {
		return nil
	}
	if len(c.declared) == 0 {
		return refuse(Choice, "tool_choice", "%s, and there are no tools", raw)
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if word == "none" || word == "auto" || word == "required" {
			return nil
		}
		return refuse(Choice, "tool_choice", "%s", raw)
	}
	var named struct {
		Type     string
		Function struct{ Name string }
	}
	if json.Unmarshal(raw, &named) != nil || named.Type != "function" || !c.declared[named.Function.Name] {
		return refuse(Choice, "tool_choice", "%s", raw)
	}
	return nil
}

func (c *completion) conversation(o object) error {
	list, err := read[[]object](o, "body", "messages")
	if err != nil {
		return err
	}
	before, said := "", 0
	for i := 0; i < len(list); i++ {
		m, where := list[i], fmt.Sprintf("messages[%d]", i)
		role, err := read[string](m, where, "role")
		if err != nil {
			return err
		}
		switch {
		case role == "system" || role == "developer":
			if i > 0 {
				return refuse(System, where, "the system speaks once, and first")
			}
			if text, err := read[string](m, where, "content"); err != nil || blank(text) {
				return refuse(System, where, "it is no text that says something")
			}
			continue
		case role != "user" && role != "assistant" && role != "tool":
			return refuse(Shape, where, "the role is %q", role)
		case said == 0 && role != "user":
			return refuse(First, where, "%s speaks first", role)
		case role == before && role != "tool":
			return refuse(Alternation, where, "two messages of the %s in a row", role)
		}
		said++
		if role == "tool" {
			n, err := c.results(i, list)
			if err != nil {
				return err
			}
			i += n - 1
		} else if err := c.message(where, role, m); err != nil {
			return err
		}
		before = role
	}
	if before != "user" && before != "tool" {
		return refuse(Last, "messages", "the last message is of %q, so the model has nothing to answer", before)
	}
	return nil
}

// message judges a message of a user or the model.
func (c *completion) message(where, role string, m object) error {
	if role == "user" && len(m["content"]) > 0 && m["content"][0] == '[' {
		return c.shown(where, m)
	}
	text, err := read[string](m, where, "content")
	if err != nil {
		return err
	}
	if err := c.answer(where, nil); err != nil {
		return err
	}
	if role == "user" {
		if blank(text) {
			return refuse(Empty, where, "it says nothing")
		}
		return m.fields(where, "role", "content!", "name")
	}
	if err := m.fields(where, "role", "content", "tool_calls", "name", "refusal"); err != nil {
		return err
	}
	calls, err := read[[]object](m, where, "tool_calls")
	if err != nil {
		return err
	}
	if blank(text) && (len(calls) == 0 || m["content"] != nil) {
		return refuse(Empty, where, "it says nothing")
	}
	for i, t := range calls {
		if err := c.use(fmt.Sprintf("%s.tool_calls[%d]", where, i), t); err != nil {
			return err
		}
	}
	return nil
}

func (c *completion) use(where string, t object) error {
	if err := t.fields(where, "id!", "type!", "function!"); err != nil {
		return err
	}
	id, err := read[string](t, where, "id")
	if err != nil {
		return err
	}
	f, err := read[object](t, where, "function")
	if err != nil {
		return err
	}
	if err := f.fields(where, "name!", "arguments!"); err != nil {
		return err
	}
	tool, err := read[string](f, where, "name")
	if err != nil {
		return err
	}
	args, err := read[string](f, where, "arguments")
	if err != nil {
		return err
	}
	if len(id) > callIDMax {
		return refuse(Identity, where, "the id %q is longer than %d", id, callIDMax)
	}
	c.open = append(c.open, call{id, tool})
	return c.ask(where, id, tool, []byte(args))
}

// results judges the consecutive results from message i on, and returns their
// number. There is no flag for a failure: a failed result begins with that word.
func (c *completion) results(i int, list []object) (n int, err error) {
	var got []answer
	where := fmt.Sprintf("messages[%d]", i)
	for ; i+n < len(list) && string(list[i+n]["role"]) == `"tool"`; n++ {
		where, m := fmt.Sprintf("messages[%d]", i+n), list[i+n]
		if err := m.fields(where, "role", "content!", "tool_call_id!"); err != nil {
			return 0, err
		}
		id, err := read[string](m, where, "tool_call_id")
		if err != nil {
			return 0, err
		}
		text, err := read[string](m, where, "content")
		if err != nil {
			return 0, err
		}
		if blank(text) {
			return 0, refuse(Empty, where, "a result that says nothing")
		}
		got = append(got, answer{id, strings.HasPrefix(strings.ToLower(text), "error")})
	}
	return n, c.answer(where, got)
}
