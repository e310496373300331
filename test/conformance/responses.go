package conformance

import (
	"fmt"
	"strings"
)

// Responses judges the body of a request to OpenAI's Responses API. signed
// returns the model that issued an encrypted content, or "" if no model issued
// it; a nil signed allows no encrypted content.
func Responses(body []byte, signed func(encrypted string) string) error {
	o, err := document(body)
	if err != nil {
		return err
	}
	if err := o.fields("body", "model!", "input!", "max_output_tokens!", "store!", "instructions", "tools", "tool_choice", "stream", "include",
		"reasoning", "text", "temperature", "parallel_tool_calls"); err != nil {
		return err
	}
	r := &items{signed: signed}
	r.ids = map[string]bool{}
	if r.model, err = read[string](o, "body", "model"); err != nil || blank(r.model) {
		return refuse(Shape, "model", "there is none: %v", err)
	}
	if kept, err := read[bool](o, "body", "store"); err != nil || kept {
		return refuse(Shape, "store", "%s: nothing is to be kept", o["store"])
	}
	if most, err := read[int64](o, "body", "max_output_tokens"); err != nil || most < 1 {
		return refuse(Limit, "max_output_tokens", "%s is no number of tokens", o["max_output_tokens"])
	}
	if text, err := read[string](o, "body", "instructions"); err != nil || o["instructions"] != nil && blank(text) {
		return refuse(System, "instructions", "they say nothing")
	}
	for _, check := range []func(object) error{r.tools, r.choose, r.conversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// items is a request to the Responses API as it is judged.
type items struct {
	transcript
	signed  func(string) string
	model   string
	side    string // whose item was the last
	thought bool   // it was a reasoning item
	results []answer
}

func (r *items) tools(o object) error {
	list, err := read[[]object](o, "body", "tools")
	if err != nil {
		return err
	}
	if o["tools"] != nil && len(list) == 0 {
		return refuse(Tools, "tools", "the list is there and empty")
	}
	r.declared = map[string]bool{}
	for i, t := range list {
		where := fmt.Sprintf("tools[%d]", i)
		if err := t.fields(where, "type!", "name!", "parameters!", "strict!", "description"); err != nil {
			return err
		}
		called, err := read[string](t, where, "name")
		if err != nil {
			return err
		}
		if string(t["type"]) != `"function"` {
			return refuse(Shape, where, "type %s", t["type"])
		}
		if err := r.declare(where, called, t["parameters"]); err != nil {
			return err
		}
	}
	return nil
}

func (r *items) choose(o object) error {
	raw, ok := o["tool_choice"]
	if !ok {
		return nil
	}
	if word, err := read[string](o, "body", "tool_choice"); err == nil {
		if len(r.declared) > 0 && (word == "none" || word == "auto" || word == "required") {
			return nil
		}
		return refuse(Choice, "tool_choice", "%s", raw)
	}
	named, err := read[object](o, "body", "tool_choice")
	if err != nil {
		return refuse(Choice, "tool_choice", "%s", raw)
	}
	called, err := read[string](named, "tool_choice", "name")
	if err != nil || string(named["type"]) != `"function"` || !r.declared[called] {
		return refuse(Choice, "tool_choice", "%s", raw)
	}
	return named.fields("tool_choice", "type", "name")
}

func (r *items) conversation(o object) error {
	list, err := read[[]object](o, "body", "input")
	if err != nil {
		return err
	}
	for i, item := range list {
		where := fmt.Sprintf("input[%d]", i)
		kind, err := read[string](item, where, "type")
		if err != nil {
			return err
		}
		role, err := read[string](item, where, "role")
		if err != nil {
			return err
		}
		if err := r.turn(where, kind, role); err != nil {
			return err
		}
		switch {
		case kind == "" || kind == "message":
			err = r.message(where, role, item)
		case kind == "reasoning":
			err = r.reasoning(where, item)
		case kind == "function_call":
			err = r.use(where, item)
		default:
			err = r.output(where, item)
		}
		if err != nil {
			return err
		}
	}
	if err := r.settle("input"); err != nil {
		return err
	}
	if r.side != "user" && r.side != "tool" {
		return refuse(Last, "input", "the last item is of %q, so the model has nothing to answer", r.side)
	}
	return nil
}

// turn returns the side whose turn an item is, and judges whether it may be.
func (r *items) turn(where, kind, role string) error {
	side := map[string]string{"reasoning": "assistant", "function_call": "assistant", "function_call_output": "tool", "message": role, "": role}[kind]
	switch {
	case side != "user" && side != "assistant" && side != "tool" || kind != "" && kind != "message" && role != "":
		return refuse(Shape, where, "an item of type %q and role %q", kind, role)
	case r.side == "" && side != "user":
		return refuse(First, where, "%s speaks first", side)
	case side == "user" && r.side == "user":
		return refuse(Alternation, where, "two messages of the user in a row")
	case r.thought && side != "assistant":
		return refuse(Order, where, "a thought before it led to nothing")
	}
	if side != r.side && side != "tool" {
		if err := r.settle(where); err != nil {
			return err
		}
	}
	r.side, r.thought = side, kind == "reasoning"
	return nil
}

// settle holds the results that came against the calls before them.
func (r *items) settle(where string) error {
	got := r.results
	r.results = nil
	return r.answer(where, got)
}

func (r *items) message(where, role string, item object) error {
	if raw := item["content"]; role == "user" && len(raw) > 0 && raw[0] == '[' {
		return r.shown(where, item)
	}
	text, err := read[string](item, where, "content")
	if err != nil {
		return err
	}
	if blank(text) {
		return refuse(Empty, where, "it says nothing")
	}
	if role == "user" {
		return item.fields(where, "role", "type", "content!")
	}
	return item.fields(where, "role", "type", "content!", "phase")
}

// reasoning judges a thought: it goes to who thought it.
func (r *items) reasoning(where string, item object) error {
	if err := item.fields(where, "type", "id!", "summary!", "encrypted_content!"); err != nil {
		return err
	}
	sign, err := read[string](item, where, "encrypted_content")
	if err != nil {
		return err
	}
	if _, err := read[[]object](item, where, "summary"); err != nil {
		return err
	}
	issuer := ""
	if r.signed != nil {
		issuer = r.signed(sign)
	}
	if issuer == "" || issuer != r.model {
		return refuse(Signature, where, "%q was issued by %q, and goes to %q", sign, issuer, r.model)
	}
	return nil
}

func (r *items) use(where string, item object) error {
	if err := item.fields(where, "type", "call_id!", "name!", "arguments!"); err != nil {
		return err
	}
	id, err := read[string](item, where, "call_id")
	if err != nil {
		return err
	}
	tool, err := read[string](item, where, "name")
	if err != nil {
		return err
	}
	args, err := read[string](item, where, "arguments")
	if err != nil {
		return err
	}
	r.open = append(r.open, call{id, tool})
	return r.ask(where, id, tool, []byte(args))
}

// output judges a result. There is no flag for a failure: it begins with the word.
func (r *items) output(where string, item object) error {
	if err := item.fields(where, "type", "call_id!", "output!"); err != nil {
		return err
	}
	id, err := read[string](item, where, "call_id")
	if err != nil {
		return err
	}
	text, err := read[string](item, where, "output")
	if err != nil {
		return err
	}
	if blank(text) {
		return refuse(Empty, where, "a result that says nothing")
	}
	r.results = append(r.results, answer{id, strings.HasPrefix(strings.ToLower(text), "error")})
	return nil
}
