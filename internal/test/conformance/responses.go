package conformance

import (
	"fmt"
	"strings"
)

// Responses judges the body of a request to OpenAI's Responses API. signed
// returns the model that issued an encrypted content, or "" if no model issued
// it; a nil signed allows no encrypted content.
func Responses(body []byte, signed func(encrypted string) string) error {
	o, err := readDocument(body)
	if err != nil {
		return err
	}
	if err := o.checkFields("body", "model!", "input!", "max_output_tokens!", "store!", "instructions", "tools", "tool_choice", "stream", "include",
		"reasoning", "text", "temperature", "parallel_tool_calls"); err != nil {
		return err
	}
	r := &responsesRequest{signed: signed}
	r.ids = map[string]bool{}
	if r.model, err = readField[string](o, "body", "model"); err != nil || isBlank(r.model) {
		return refuseRequest(Shape, "model", "there is none: %v", err)
	}
	if kept, err := readField[bool](o, "body", "store"); err != nil || kept {
		return refuseRequest(Shape, "store", "%s: nothing is to be kept", o["store"])
	}
	if most, err := readField[int64](o, "body", "max_output_tokens"); err != nil || most < 1 {
		return refuseRequest(Limit, "max_output_tokens", "%s is no number of tokens", o["max_output_tokens"])
	}
	if text, err := readField[string](o, "body", "instructions"); err != nil || o["instructions"] != nil && isBlank(text) {
		return refuseRequest(System, "instructions", "they say nothing")
	}
	for _, check := range []func(jsonObject) error{r.checkTools, r.checkChoice, r.checkConversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// responsesRequest is a request to the Responses API as it is judged.
type responsesRequest struct {
	toolTranscript
	signed  func(string) string
	model   string
	side    string // whose item was the last
	thought bool   // it was a reasoning item
	results []toolAnswer
}

func (r *responsesRequest) checkTools(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "tools")
	if err != nil {
		return err
	}
	if o["tools"] != nil && len(list) == 0 {
		return refuseRequest(Tools, "tools", "the list is there and empty")
	}
	r.declared = map[string]bool{}
	for i, t := range list {
		where := fmt.Sprintf("tools[%d]", i)
		if err := t.checkFields(where, "type!", "name!", "parameters!", "strict!", "description"); err != nil {
			return err
		}
		called, err := readField[string](t, where, "name")
		if err != nil {
			return err
		}
		if string(t["type"]) != `"function"` {
			return refuseRequest(Shape, where, "type %s", t["type"])
		}
		if err := r.declareTool(where, called, t["parameters"]); err != nil {
			return err
		}
	}
	return nil
}

func (r *responsesRequest) checkChoice(o jsonObject) error {
	raw, ok := o["tool_choice"]
	if !ok {
		return nil
	}
	if word, err := readField[string](o, "body", "tool_choice"); err == nil {
		if len(r.declared) > 0 && (word == "none" || word == "auto" || word == "required") {
			return nil
		}
		return refuseRequest(Choice, "tool_choice", "%s", raw)
	}
	named, err := readField[jsonObject](o, "body", "tool_choice")
	if err != nil {
		return refuseRequest(Choice, "tool_choice", "%s", raw)
	}
	called, err := readField[string](named, "tool_choice", "name")
	if err != nil || string(named["type"]) != `"function"` || !r.declared[called] {
		return refuseRequest(Choice, "tool_choice", "%s", raw)
	}
	return named.checkFields("tool_choice", "type", "name")
}

func (r *responsesRequest) checkConversation(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "input")
	if err != nil {
		return err
	}
	for i, item := range list {
		where := fmt.Sprintf("input[%d]", i)
		kind, err := readField[string](item, where, "type")
		if err != nil {
			return err
		}
		role, err := readField[string](item, where, "role")
		if err != nil {
			return err
		}
		if err := r.turnOf(where, kind, role); err != nil {
			return err
		}
		switch {
		case kind == "" || kind == "message":
			err = r.checkMessage(where, role, item)
		case kind == "reasoning":
			err = r.checkReasoning(where, item)
		case kind == "function_call":
			err = r.checkCall(where, item)
		default:
			err = r.checkOutput(where, item)
		}
		if err != nil {
			return err
		}
	}
	if err := r.settleResults("input"); err != nil {
		return err
	}
	if r.side != "user" && r.side != "tool" {
		return refuseRequest(Last, "input", "the last item is of %q, so the model has nothing to answer", r.side)
	}
	return nil
}

// turnOf returns the side whose turn an item is, and judges whether it may be.
func (r *responsesRequest) turnOf(where, kind, role string) error {
	side := map[string]string{"reasoning": "assistant", "function_call": "assistant", "function_call_output": "tool", "message": role, "": role}[kind]
	switch {
	case side != "user" && side != "assistant" && side != "tool" || kind != "" && kind != "message" && role != "":
		return refuseRequest(Shape, where, "an item of type %q and role %q", kind, role)
	case r.side == "" && side != "user":
		return refuseRequest(First, where, "%s speaks first", side)
	case side == "user" && r.side == "user":
		return refuseRequest(Alternation, where, "two messages of the user in a row")
	case r.thought && side != "assistant":
		return refuseRequest(Order, where, "a thought before it led to nothing")
	}
	if side != r.side && side != "tool" {
		if err := r.settleResults(where); err != nil {
			return err
		}
	}
	r.side, r.thought = side, kind == "reasoning"
	return nil
}

// settleResults holds the results that came against the calls before them.
func (r *responsesRequest) settleResults(where string) error {
	got := r.results
	r.results = nil
	return r.checkAnswers(where, got)
}

func (r *responsesRequest) checkMessage(where, role string, item jsonObject) error {
	if raw := item["content"]; role == "user" && len(raw) > 0 && raw[0] == '[' {
		return r.checkParts(where, item)
	}
	text, err := readField[string](item, where, "content")
	if err != nil {
		return err
	}
	if isBlank(text) {
		return refuseRequest(Empty, where, "it says nothing")
	}
	if role == "user" {
		return item.checkFields(where, "role", "type", "content!")
	}
	return item.checkFields(where, "role", "type", "content!", "phase")
}

// checkReasoning judges a thought: it goes to who thought it.
func (r *responsesRequest) checkReasoning(where string, item jsonObject) error {
	if err := item.checkFields(where, "type", "id!", "summary!", "encrypted_content!"); err != nil {
		return err
	}
	sign, err := readField[string](item, where, "encrypted_content")
	if err != nil {
		return err
	}
	if _, err := readField[[]jsonObject](item, where, "summary"); err != nil {
		return err
	}
	issuer := ""
	if r.signed != nil {
		issuer = r.signed(sign)
	}
	if issuer == "" || issuer != r.model {
		return refuseRequest(Signature, where, "%q was issued by %q, and goes to %q", sign, issuer, r.model)
	}
	return nil
}

func (r *responsesRequest) checkCall(where string, item jsonObject) error {
	if err := item.checkFields(where, "type", "call_id!", "name!", "arguments!"); err != nil {
		return err
	}
	id, err := readField[string](item, where, "call_id")
	if err != nil {
		return err
	}
	tool, err := readField[string](item, where, "name")
	if err != nil {
		return err
	}
	args, err := readField[string](item, where, "arguments")
	if err != nil {
		return err
	}
	r.open = append(r.open, toolCall{id, tool})
	return r.addCall(where, id, tool, []byte(args))
}

// checkOutput judges a result. There is no flag for a failure: it begins with the word.
func (r *responsesRequest) checkOutput(where string, item jsonObject) error {
	if err := item.checkFields(where, "type", "call_id!", "output!"); err != nil {
		return err
	}
	id, err := readField[string](item, where, "call_id")
	if err != nil {
		return err
	}
	text, err := readField[string](item, where, "output")
	if err != nil {
		return err
	}
	if isBlank(text) {
		return refuseRequest(Empty, where, "a result that says nothing")
	}
	r.results = append(r.results, toolAnswer{id, strings.HasPrefix(strings.ToLower(text), "error")})
	return nil
}
