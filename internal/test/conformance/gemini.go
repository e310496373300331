package conformance

import (
	"encoding/json"
	"fmt"
)

// Gemini judges the body of a request to Google's generateContent for the given
// model, which the path names. signed returns the model that issued a signature,
// or "" if no model issued it; a nil signed allows no signatures.
func Gemini(body []byte, model string, signed func(signature string) string) error {
	o, err := readDocument(body)
	if err != nil {
		return err
	}
	if err := o.checkFields("body", "contents!", "generationConfig!", "systemInstruction", "tools", "toolConfig"); err != nil {
		return err
	}
	g := &contentsRequest{model: model, signed: signed}
	g.ids = map[string]bool{}
	for _, check := range []func(jsonObject) error{g.checkGeneration, g.checkSystem, g.checkTools, g.checkChoice, g.checkConversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// contentsRequest is a request to Gemini as it is judged.
type contentsRequest struct {
	toolTranscript
	signed func(string) string
	model  string
}

func (g *contentsRequest) checkGeneration(o jsonObject) error {
	c, err := readField[jsonObject](o, "body", "generationConfig")
	if err != nil {
		return err
	}
	if most, err := readField[int64](c, "generationConfig", "maxOutputTokens"); err != nil || most < 1 {
		return refuseRequest(Limit, "generationConfig", "%s is no number of tokens", c["maxOutputTokens"])
	}
	return c.checkFields("generationConfig", "maxOutputTokens", "temperature", "thinkingConfig", "responseMimeType", "responseJsonSchema", "mediaResolution")
}

func (g *contentsRequest) checkSystem(o jsonObject) error {
	if o["systemInstruction"] == nil {
		return nil
	}
	c, err := readField[jsonObject](o, "body", "systemInstruction")
	if err != nil {
		return err
	}
	parts, err := readField[[]jsonObject](c, "systemInstruction", "parts")
	if err != nil {
		return err
	}
	for _, p := range parts {
		if text, err := readField[string](p, "systemInstruction", "text"); err != nil || isBlank(text) {
			return refuseRequest(System, "systemInstruction", "it has a part that says nothing")
		}
	}
	if len(parts) == 0 {
		return refuseRequest(System, "systemInstruction", "it is empty")
	}
	return c.checkFields("systemInstruction", "parts", "role")
}

func (g *contentsRequest) checkTools(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "tools")
	if err != nil {
		return err
	}
	g.declared = map[string]bool{}
	for _, t := range list {
		functions, err := readField[[]jsonObject](t, "tools", "functionDeclarations")
		if err != nil {
			return err
		}
		for i, f := range functions {
			where := fmt.Sprintf("functionDeclarations[%d]", i)
			if err := f.checkFields(where, "name!", "description!", "parametersJsonSchema"); err != nil {
				return err
			}
			called, err := readField[string](f, where, "name")
			if err != nil {
				return err
			}
			schema := f["parametersJsonSchema"]
			if schema == nil {
				schema = json.RawMessage(`{"type":"object","properties":{}}`) // it takes no arguments
			}
			if err := g.declareTool(where, called, schema); err != nil {
				return err
			}
		}
	}
	if o["tools"] != nil && len(g.declared) == 0 {
		return refuseRequest(Tools, "tools", "the list is there and declares nothing")
	}
	return nil
}

func (g *contentsRequest) checkChoice(o jsonObject) error {
	if o["toolConfig"] == nil {
		return nil
	}
	var c struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	}
	if json.Unmarshal(o["toolConfig"], &c) != nil || len(g.declared) == 0 {
		return refuseRequest(Choice, "toolConfig", "%s", o["toolConfig"])
	}
	switch mode := c.Calling.Mode; {
	case mode == "ANY", (mode == "NONE" || mode == "AUTO") && len(c.Calling.Allowed) == 0:
	default:
		return refuseRequest(Choice, "toolConfig", "%s", o["toolConfig"])
	}
	for _, n := range c.Calling.Allowed {
		if !g.declared[n] {
			return refuseRequest(Choice, "toolConfig", "there is no %s", n)
		}
	}
	return nil
}

func (g *contentsRequest) checkConversation(o jsonObject) error {
	list, err := readField[[]jsonObject](o, "body", "contents")
	if err != nil {
		return err
	}
	before := ""
	for i, c := range list {
		where := fmt.Sprintf("contents[%d]", i)
		if err := c.checkFields(where, "role!", "parts!"); err != nil {
			return err
		}
		role, err := readField[string](c, where, "role")
		switch {
		case err != nil || role != "user" && role != "model":
			return refuseRequest(Shape, where, "the role is %s", c["role"])
		case before == "" && role != "user":
			return refuseRequest(First, where, "the model speaks first")
		case role == before:
			return refuseRequest(Alternation, where, "two contents of the %s in a row", role)
		}
		parts, err := readField[[]jsonObject](c, where, "parts")
		if err != nil {
			return err
		}
		if err := g.checkContent(where, role, parts); err != nil {
			return err
		}
		before = role
	}
	if before != "user" {
		return refuseRequest(Last, "contents", "the last content is of %q, so the model has nothing to answer", before)
	}
	return nil
}

// checkContent judges one message: its text, calls and results.
func (g *contentsRequest) checkContent(where, role string, parts []jsonObject) error {
	if len(parts) == 0 {
		return refuseRequest(Empty, where, "it has no parts")
	}
	var calls []toolCall
	var results []toolAnswer
	said := false
	for i, p := range parts {
		at := fmt.Sprintf("%s.parts[%d]", where, i)
		if err := p.checkFields(at, "text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData"); err != nil {
			return err
		}
		var err error
		switch {
		case p["functionCall"] != nil && role == "model":
			calls, err = g.checkCall(at, p, calls)
		case p["functionResponse"] != nil && role == "user" && said:
			return refuseRequest(Order, at, "a result behind a text: results come first")
		case p["functionResponse"] != nil && role == "user":
			results, err = g.checkResult(at, p, results)
		case p["inlineData"] != nil && role == "user" && p["functionResponse"] == nil && p["functionCall"] == nil && p["text"] == nil:
			said = true
			err = checkInline(at, p)
		case p["functionCall"] == nil && p["functionResponse"] == nil && p["inlineData"] == nil:
			said = true
			err = g.checkText(at, p)
		default:
			return refuseRequest(Shape, at, "the %s says what only the other side does", role)
		}
		if err == nil {
			err = g.checkSignature(at, p)
		}
		if err != nil {
			return err
		}
	}
	if err := g.checkAnswers(where, results); err != nil {
		return err
	}
	g.open = calls
	return nil
}

func (g *contentsRequest) checkText(where string, p jsonObject) error {
	text, err := readField[string](p, where, "text")
	if err != nil {
		return err
	}
	if isBlank(text) && p["thoughtSignature"] == nil {
		return refuseRequest(Empty, where, "a part that says nothing")
	}
	return nil
}

// checkSignature judges a signature: it goes to who signed.
func (g *contentsRequest) checkSignature(where string, p jsonObject) error {
	if p["thoughtSignature"] == nil {
		return nil
	}
	sign, err := readField[string](p, where, "thoughtSignature")
	if err != nil {
		return err
	}
	// What Google documents for calls of other models.
	if sign == "skip_thought_signature_validator" && p["functionCall"] != nil {
		return nil
	}
	issuer := ""
	if g.signed != nil {
		issuer = g.signed(sign)
	}
	if issuer == "" || issuer != g.model {
		return refuseRequest(Signature, where, "%q was issued by %q, and goes to %q", sign, issuer, g.model)
	}
	return nil
}

func (g *contentsRequest) checkCall(where string, p jsonObject, calls []toolCall) ([]toolCall, error) {
	f, c, err := readNamed(where, p, "functionCall", "args!")
	if err != nil {
		return nil, err
	}
	return append(calls, c), g.addCall(where, c.id, c.tool, f["args"])
}

// readNamed reads the part that holds a call or a result: both have an id, the name
// of the tool, and one more field.
func readNamed(where string, p jsonObject, field, more string) (f jsonObject, c toolCall, err error) {
	if f, err = readField[jsonObject](p, where, field); err != nil {
		return nil, c, err
	}
	if err = f.checkFields(where, "id!", "name!", more); err != nil {
		return nil, c, err
	}
	if c.id, err = readField[string](f, where, "id"); err != nil {
		return nil, c, err
	}
	c.tool, err = readField[string](f, where, "name")
	return f, c, err
}

// checkResult judges a result, which names the tool of its call once more.
func (g *contentsRequest) checkResult(where string, p jsonObject, results []toolAnswer) ([]toolAnswer, error) {
	f, to, err := readNamed(where, p, "functionResponse", "response!")
	if err != nil {
		return nil, err
	}
	response, err := readField[jsonObject](f, where, "response")
	if err != nil {
		return nil, err
	}
	for _, c := range g.open {
		if c.id == to.id && c.tool != to.tool {
			return nil, refuseRequest(Pairing, where, "the result of %s names %s", c.tool, to.tool)
		}
	}
	return append(results, toolAnswer{to.id, response["error"] != nil}), response.checkFields(where, "output", "error")
}
