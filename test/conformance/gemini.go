package conformance

import (
	"encoding/json"
	"fmt"
)

// Gemini judges the body of a request to Google's generateContent for the given
// model, which the path names. signed returns the model that issued a signature,
// or "" if no model issued it; a nil signed allows no signatures.
func Gemini(body []byte, model string, signed func(signature string) string) error {
	o, err := document(body)
	if err != nil {
		return err
	}
	if err := o.fields("body", "contents!", "generationConfig!", "systemInstruction", "tools", "toolConfig"); err != nil {
		return err
	}
	g := &contents{model: model, signed: signed}
	g.ids = map[string]bool{}
	for _, check := range []func(object) error{g.generation, g.system, g.tools, g.choose, g.conversation} {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// contents is a request to Gemini as it is judged.
type contents struct {
	transcript
	signed func(string) string
	model  string
}

func (g *contents) generation(o object) error {
	c, err := read[object](o, "body", "generationConfig")
	if err != nil {
		return err
	}
	if most, err := read[int64](c, "generationConfig", "maxOutputTokens"); err != nil || most < 1 {
		return refuse(Limit, "generationConfig", "%s is no number of tokens", c["maxOutputTokens"])
	}
	return c.fields("generationConfig", "maxOutputTokens", "temperature", "thinkingConfig", "responseMimeType", "responseJsonSchema", "mediaResolution")
}

func (g *contents) system(o object) error {
	if o["systemInstruction"] == nil {
		return nil
	}
	c, err := read[object](o, "body", "systemInstruction")
	if err != nil {
		return err
	}
	parts, err := read[[]object](c, "systemInstruction", "parts")
	if err != nil {
		return err
	}
	for _, p := range parts {
		if text, err := read[string](p, "systemInstruction", "text"); err != nil || blank(text) {
			return refuse(System, "systemInstruction", "it has a part that says nothing")
		}
	}
	if len(parts) == 0 {
		return refuse(System, "systemInstruction", "it is empty")
	}
	return c.fields("systemInstruction", "parts", "role")
}

func (g *contents) tools(o object) error {
	list, err := read[[]object](o, "body", "tools")
	if err != nil {
		return err
	}
	g.declared = map[string]bool{}
	for _, t := range list {
		functions, err := read[[]object](t, "tools", "functionDeclarations")
		if err != nil {
			return err
		}
		for i, f := range functions {
			where := fmt.Sprintf("functionDeclarations[%d]", i)
			if err := f.fields(where, "name!", "description!", "parametersJsonSchema"); err != nil {
				return err
			}
			called, err := read[string](f, where, "name")
			if err != nil {
				return err
			}
			schema := f["parametersJsonSchema"]
			if schema == nil {
				schema = json.RawMessage(`{"type":"object","properties":{}}`) // it takes no arguments
			}
			if err := g.declare(where, called, schema); err != nil {
				return err
			}
		}
	}
	if o["tools"] != nil && len(g.declared) == 0 {
		return refuse(Tools, "tools", "the list is there and declares nothing")
	}
	return nil
}

func (g *contents) choose(o object) error {
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
		return refuse(Choice, "toolConfig", "%s", o["toolConfig"])
	}
	switch mode := c.Calling.Mode; {
	case mode == "ANY", (mode == "NONE" || mode == "AUTO") && len(c.Calling.Allowed) == 0:
	default:
		return refuse(Choice, "toolConfig", "%s", o["toolConfig"])
	}
	for _, n := range c.Calling.Allowed {
		if !g.declared[n] {
			return refuse(Choice, "toolConfig", "there is no %s", n)
		}
	}
	return nil
}

func (g *contents) conversation(o object) error {
	list, err := read[[]object](o, "body", "contents")
	if err != nil {
		return err
	}
	before := ""
	for i, c := range list {
		where := fmt.Sprintf("contents[%d]", i)
		if err := c.fields(where, "role!", "parts!"); err != nil {
			return err
		}
		role, err := read[string](c, where, "role")
		switch {
		case err != nil || role != "user" && role != "model":
			return refuse(Shape, where, "the role is %s", c["role"])
		case before == "" && role != "user":
			return refuse(First, where, "the model speaks first")
		case role == before:
			return refuse(Alternation, where, "two contents of the %s in a row", role)
		}
		parts, err := read[[]object](c, where, "parts")
		if err != nil {
			return err
		}
		if err := g.content(where, role, parts); err != nil {
			return err
		}
		before = role
	}
	if before != "user" {
		return refuse(Last, "contents", "the last content is of %q, so the model has nothing to answer", before)
	}
	return nil
}

// content judges one message: its text, calls and results.
func (g *contents) content(where, role string, parts []object) error {
	if len(parts) == 0 {
		return refuse(Empty, where, "it has no parts")
	}
	var calls []call
	var results []answer
	said := false
	for i, p := range parts {
		at := fmt.Sprintf("%s.parts[%d]", where, i)
		if err := p.fields(at, "text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData"); err != nil {
			return err
		}
		var err error
		switch {
		case p["functionCall"] != nil && role == "model":
			calls, err = g.use(at, p, calls)
		case p["functionResponse"] != nil && role == "user" && said:
			return refuse(Order, at, "a result behind a text: results come first")
		case p["functionResponse"] != nil && role == "user":
			results, err = g.result(at, p, results)
		case p["inlineData"] != nil && role == "user" && p["functionResponse"] == nil && p["functionCall"] == nil && p["text"] == nil:
			said = true
			err = inline(at, p)
		case p["functionCall"] == nil && p["functionResponse"] == nil && p["inlineData"] == nil:
			said = true
			err = g.text(at, p)
		default:
			return refuse(Shape, at, "the %s says what only the other side does", role)
		}
		if err == nil {
			err = g.sign(at, p)
		}
		if err != nil {
			return err
		}
	}
	if err := g.answer(where, results); err != nil {
		return err
	}
	g.open = calls
	return nil
}

func (g *contents) text(where string, p object) error {
	text, err := read[string](p, where, "text")
	if err != nil {
		return err
	}
	if blank(text) && p["thoughtSignature"] == nil {
		return refuse(Empty, where, "a part that says nothing")
	}
	return nil
}

// sign judges a signature: it goes to who signed.
func (g *contents) sign(where string, p object) error {
	if p["thoughtSignature"] == nil {
		return nil
	}
	sign, err := read[string](p, where, "thoughtSignature")
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
		return refuse(Signature, where, "%q was issued by %q, and goes to %q", sign, issuer, g.model)
	}
	return nil
}

func (g *contents) use(where string, p object, calls []call) ([]call, error) {
	f, c, err := named(where, p, "functionCall", "args!")
	if err != nil {
		return nil, err
	}
	return append(calls, c), g.ask(where, c.id, c.tool, f["args"])
}

// named reads the part that holds a call or a result: both have an id, the name
// of the tool, and one more field.
func named(where string, p object, field, more string) (f object, c call, err error) {
	if f, err = read[object](p, where, field); err != nil {
		return nil, c, err
	}
	if err = f.fields(where, "id!", "name!", more); err != nil {
		return nil, c, err
	}
	if c.id, err = read[string](f, where, "id"); err != nil {
		return nil, c, err
	}
	c.tool, err = read[string](f, where, "name")
	return f, c, err
}

// result judges a result, which names the tool of its call once more.
func (g *contents) result(where string, p object, results []answer) ([]answer, error) {
	f, to, err := named(where, p, "functionResponse", "response!")
	if err != nil {
		return nil, err
	}
	response, err := read[object](f, where, "response")
	if err != nil {
		return nil, err
	}
	for _, c := range g.open {
		if c.id == to.id && c.tool != to.tool {
			return nil, refuse(Pairing, where, "the result of %s names %s", c.tool, to.tool)
		}
	}
	return append(results, answer{to.id, response["error"] != nil}), response.fields(where, "output", "error")
}
