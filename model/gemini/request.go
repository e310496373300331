package gemini

import (
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// callPrefix begins the ids of calls on the wire.
const callPrefix = "call_"

// Roles on the wire; results are the user's.
const (
	roleUser  = "user"
	roleModel = "model"
)

// Modes of calling on the wire.
const (
	modeAny  = "ANY"
	modeNone = "NONE"
)

// renderRequest renders a request for the wire.
func renderRequest(req model.Request) ([]byte, error) {
	messages, err := modelhttp.SendableWithMedia(req)
	if err != nil {
		return nil, err
	}
	b := requestBody{SystemInstruction: systemContent(req), Contents: chatContents(messages, req.Model), ToolConfig: toolChoice(req),
		Generation: generationConfig{MaxOutput: req.MaxOutput, Temperature: req.Temperature, Thinking: renderEffort(req), Resolution: mediaResolution(messages)}}
	if takesSchema(req) {
		b.Generation.Type, b.Generation.Schema = "application/json", json.RawMessage(req.Schema)
	}
	if len(b.Contents) == 0 {
		return nil, modelhttp.UnsentError("every message is empty")
	}
	if len(req.Tools) > 0 {
		t := toolDeclarations{}
		for _, spec := range req.Tools {
			f, err := declareTool(spec)
			if err != nil {
				return nil, err
			}
			t.Functions = append(t.Functions, f)
		}
		b.Tools = []toolDeclarations{t}
	}
	return modelhttp.EncodeBody(b)
}

// systemContent renders the stable part of the system prompt first: Google caches by
// the longest prefix.
func systemContent(req model.Request) *messageContent {
	var c messageContent
	for _, text := range []string{req.System, req.Dynamic} {
		if !modelhttp.IsBlank(text) {
			c.Parts = append(c.Parts, contentPart{Text: &text})
		}
	}
	if len(c.Parts) == 0 {
		return nil
	}
	return &c
}

// declareTool renders a tool. The API demands a description, and takes a function
// without parameters only without a schema.
func declareTool(t model.ToolSpec) (functionDeclaration, error) {
	f := functionDeclaration{Name: t.Name, Description: t.Description}
	if modelhttp.IsBlank(f.Description) {
		f.Description = t.Name
	}
	if modelhttp.IsBlank(t.Schema) {
		return f, nil
	}
	schema, err := modelhttp.ToolSchema(t)
	f.Schema = schema
	return f, err
}

// toolChoice renders the tool choice.
func toolChoice(req model.Request) *toolConfig {
	switch forced := modelhttp.ToolChoice(req); {
	case req.NoTools && len(req.Tools) > 0:
		return &toolConfig{callingConfig{Mode: modeNone}}
	case forced == model.ChoiceAny:
		return &toolConfig{callingConfig{Mode: modeAny}}
	case forced != "":
		return &toolConfig{callingConfig{Mode: modeAny, Allowed: []string{forced}}}
	}
	return nil
}

// takesSchema reports whether the model can be held to the schema of the answer.
// Before Gemini 3 a request with tools is refused then, before 2.5 any is.
func takesSchema(req model.Request) bool {
	return modelhttp.IsObject(req.Schema) && modelhttp.ToolChoice(req) == "" &&
		(requiresSignatures(req.Model) || strings.HasPrefix(req.Model, "gemini-2.5") && len(req.Tools) == 0)
}

// chatContents renders messages; consecutive ones of a side become one.
func chatContents(messages []model.Message, name string) []messageContent {
	var out []messageContent
	var calls []model.ToolCall // of the message before
	for _, m := range messages {
		role, parts := roleUser, userParts(m, calls)
		if m.Role == model.Assistant {
			role, parts = roleModel, assistantParts(m, name)
		}
		calls = m.Calls
		if len(parts) == 0 {
			continue // the API rejects an empty message, which has no content anyway
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Parts = append(out[n-1].Parts, parts...)
			continue
		}
		out = append(out, messageContent{Role: role, Parts: parts})
	}
	return out
}

// Keys of a result on the wire: the API knows a failed one by its key.
const (
	keyOutput = "output"
	keyError  = "error"
)

// userParts renders a user message, or the results of the calls before it.
func userParts(m model.Message, calls []model.ToolCall) []contentPart {
	var parts []contentPart
	for i, r := range m.Results {
		if i >= len(calls) {
			break // modelhttp.Messages lets no such transcript through
		}
		key := keyOutput
		if r.Error {
			key = keyError
		}
		parts = append(parts, contentPart{Response: &functionResponse{ID: modelhttp.CallID(callPrefix, r.Call), Name: callName(calls[i].Name),
			Response: map[string]string{key: r.Text}}})
	}
	parts = append(parts, mediaParts(m)...)
	if !modelhttp.IsBlank(m.Text) {
		parts = append(parts, contentPart{Text: &m.Text})
	}
	return parts
}

// callName turns the name of a call in a transcript into one that this API accepts: it
// begins with a letter or an underscore.
func callName(name string) string {
	name = modelhttp.CallName(name)
	if c := name[0]; c == '-' || c >= '0' && c <= '9' {
		name = "_" + name
	}
	return name[:min(len(name), modelhttp.MaxName)]
}
