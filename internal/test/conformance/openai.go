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
	o, err := readDocument(body)
	if err != nil {
		return err
	}
	if err := o.checkFields("body", "model!", "messages!", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "stream",
		"stream_options", "temperature", "reasoning_effort", "parallel_tool_calls", "seed", "stop", "top_p", "response_format"); err != nil {
		return err
	}
	c := &completionRequest{}
	c.ids = map[string]bool{}
	model, err := readField[string](o, "body", "model")
	if err != nil || isBlank(model) {
		return refuseRequest(Shape, "model", "there is none: %v", err)
	}
	for _, check := range []func(jsonObject) error{c.checkLimit, c.checkTools, c.checkChoice, c.checkConversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// completionRequest is a request to Chat Completions as it is judged.
type completionRequest struct{ toolTranscript }

func (c *completionRequest) checkLimit(o jsonObject) error {
	said := 0
	for _, field := range []string{"max_tokens", "max_completion_tokens"} {
		if o[field] == nil {
			continue
		}
		said++
		if most, err := readField[int64](o, "body", field); err != nil || most < 1 {
			return refuseRequest(Limit, field, "%s is no number of tokens", o[field])
		}
	}
	if said != 1 {
		return refuseRequest(Limit, "body", "the limit of the output is said %d times", said)
	}
	return nil
}

func (c *completionRequest) checkTools(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "tools")
	if err != nil {
		return err
	}
	if o["tools"] != nil && len(list) == 0 {
		return refuseRequest(Tools, "tools", "the list is there and empty")
	}
	c.declared = map[string]bool{}
	for i, t := range list {
		where := fmt.Sprintf("tools[%d]", i)
		f, err := readField[jsonObject](t, where, "function")
		if err != nil {
			return err
		}
		if string(t["type"]) != `"function"` {
			return refuseRequest(Shape, where, "type %s", t["type"])
		}
		if err := f.checkFields(where, "name!", "parameters!", "description", "strict"); err != nil {
			return err
		}
		called, err := readField[string](f, where, "name")
		if err != nil {
			return err
		}
		if err := c.declareTool(where, called, f["parameters"]); err != nil {
			return err
		}
	}
	return nil
}

func (c *completionRequest) checkChoice(o jsonObject) error {
	raw, ok := o["tool_choice"]
	if !ok {
		return nil
	}
	if len(c.declared) == 0 {
		return refuseRequest(Choice, "tool_choice", "%s, and there are no tools", raw)
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if word == "none" || word == "auto" || word == "required" {
			return nil
		}
		return refuseRequest(Choice, "tool_choice", "%s", raw)
	}
	var named struct {
		Type     string
		Function struct{ Name string }
	}
	if json.Unmarshal(raw, &named) != nil || named.Type != "function" || !c.declared[named.Function.Name] {
		return refuseRequest(Choice, "tool_choice", "%s", raw)
	}
	return nil
}

func (c *completionRequest) checkConversation(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "messages")
	if err != nil {
		return err
	}
	before, said := "", 0
	for i := 0; i < len(list); i++ {
		m, where := list[i], fmt.Sprintf("messages[%d]", i)
		role, err := readField[string](m, where, "role")
		if err != nil {
			return err
		}
		switch {
		case role == "system" || role == "developer":
			if i > 0 {
				return refuseRequest(System, where, "the system speaks once, and first")
			}
			if text, err := readField[string](m, where, "content"); err != nil || isBlank(text) {
				return refuseRequest(System, where, "it is no text that says something")
			}
			continue
		case role != "user" && role != "assistant" && role != "tool":
			return refuseRequest(Shape, where, "the role is %q", role)
		case said == 0 && role != "user":
			return refuseRequest(First, where, "%s speaks first", role)
		case role == before && role != "tool":
			return refuseRequest(Alternation, where, "two messages of the %s in a row", role)
		}
		said++
		if role == "tool" {
			n, err := c.checkResults(i, list)
			if err != nil {
				return err
			}
			i += n - 1
		} else if err := c.checkMessage(where, role, m); err != nil {
			return err
		}
		before = role
	}
	if before != "user" && before != "tool" {
		return refuseRequest(Last, "messages", "the last message is of %q, so the model has nothing to answer", before)
	}
	return nil
}

// checkMessage judges a message of a user or the model.
func (c *completionRequest) checkMessage(where, role string, m jsonObject) error {
	if role == "user" && len(m["content"]) > 0 && m["content"][0] == '[' {
		return c.checkParts(where, m)
	}
	text, err := readField[string](m, where, "content")
	if err != nil {
		return err
	}
	if err := c.checkAnswers(where, nil); err != nil {
		return err
	}
	if role == "user" {
		if isBlank(text) {
			return refuseRequest(Empty, where, "it says nothing")
		}
		return m.checkFields(where, "role", "content!", "name")
	}
	if err := m.checkFields(where, "role", "content", "tool_calls", "name", "refusal"); err != nil {
		return err
	}
	calls, err := readField[[]jsonObject](m, where, "tool_calls")
	if err != nil {
		return err
	}
	if isBlank(text) && (len(calls) == 0 || m["content"] != nil) {
		return refuseRequest(Empty, where, "it says nothing")
	}
	for i, t := range calls {
		if err := c.checkCall(fmt.Sprintf("%s.tool_calls[%d]", where, i), t); err != nil {
			return err
		}
	}
	return nil
}

func (c *completionRequest) checkCall(where string, t jsonObject) error {
	if err := t.checkFields(where, "id!", "type!", "function!"); err != nil {
		return err
	}
	id, err := readField[string](t, where, "id")
	if err != nil {
		return err
	}
	f, err := readField[jsonObject](t, where, "function")
	if err != nil {
		return err
	}
	if err := f.checkFields(where, "name!", "arguments!"); err != nil {
		return err
	}
	tool, err := readField[string](f, where, "name")
	if err != nil {
		return err
	}
	args, err := readField[string](f, where, "arguments")
	if err != nil {
		return err
	}
	if len(id) > callIDMax {
		return refuseRequest(Identity, where, "the id %q is longer than %d", id, callIDMax)
	}
	c.open = append(c.open, toolCall{id, tool})
	return c.addCall(where, id, tool, []byte(args))
}

// checkResults judges the consecutive results from message i on, and returns their
// number. There is no flag for a failure: a failed result begins with that word.
func (c *completionRequest) checkResults(i int, list []jsonObject) (n int, err error) {
	var got []toolAnswer
	where := fmt.Sprintf("messages[%d]", i)
	for ; i+n < len(list) && string(list[i+n]["role"]) == `"tool"`; n++ {
		where, m := fmt.Sprintf("messages[%d]", i+n), list[i+n]
		if err := m.checkFields(where, "role", "content!", "tool_call_id!"); err != nil {
			return 0, err
		}
		id, err := readField[string](m, where, "tool_call_id")
		if err != nil {
			return 0, err
		}
		text, err := readField[string](m, where, "content")
		if err != nil {
			return 0, err
		}
		if isBlank(text) {
			return 0, refuseRequest(Empty, where, "a result that says nothing")
		}
		got = append(got, toolAnswer{id, strings.HasPrefix(strings.ToLower(text), "error")})
	}
	return n, c.checkAnswers(where, got)
}
