package agentprotocol

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/model"
)

// envelope is a prompt, or the reply to a query.
type envelope struct {
	Prompt      string
	Attachments []attachment
	// Run holds further fields of the run, which the caller gave under runKey.
	Run client.RunRequest
}

// attachment is a file of an envelope.
type attachment struct {
	Name, Type string
	Data       []byte
}

// runKey is the field of an envelope that holds further fields of the run, as of the verb run.
const runKey = "troupe"

// badEnvelope is the error of bytes that are no envelope.
func badEnvelope(hint, format string, args ...any) error {
	return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf(format, args...), Hint: hint}
}

// decodeEnvelope reads an envelope: JSON if it begins with a brace, plain text otherwise. Unknown fields have no
// effect. task has the fields of the run that the agent decides.
func decodeEnvelope(data []byte, task client.RunRequest) (e envelope, err error) {
	const hint = `send text, or {"prompt": "text"}`
	switch rest := bytes.TrimLeft(data, "\t\n\r "); {
	case len(data) == 0:
		return e, badEnvelope(hint, "the payload is empty")
	case !utf8.Valid(data):
		return e, badEnvelope(hint, "the payload is not UTF-8")
	case len(rest) == 0:
		return e, badEnvelope(hint, "the prompt is empty")
	case rest[0] != '{':
		return envelope{Prompt: string(data), Run: task}, nil
	default:
		data = rest
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return e, badEnvelope(hint, "the payload begins with a brace and is not JSON: %v", err)
	}
	prompt, ok := readString(fields["prompt"])
	switch {
	case !ok:
		return e, badEnvelope(hint, "the envelope has no prompt that is a string")
	case strings.TrimSpace(prompt) == "":
		return e, badEnvelope(hint, "the prompt is empty")
	}
	e.Prompt = prompt
	if e.Attachments, err = decodeAttachments(fields["attachments"]); err != nil {
		return e, err
	}
	e.Run, err = decodeRunFields(fields[runKey], task)
	return e, err
}

// readString reads a JSON string; ok is false if raw is anything else.
func readString(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return text, json.Unmarshal(raw, &text) == nil
}

func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func decodeAttachments(raw json.RawMessage) (list []attachment, err error) {
	const hint = `write [{"filename": "a.png", "content": "BASE64"}]`
	if isAbsent(raw) {
		return nil, nil
	}
	var fields []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, badEnvelope(hint, "attachments is not a list of objects")
	}
	if len(fields) > model.MediaMax {
		return nil, badEnvelope("send fewer", "%d files are attached, at most %d can be", len(fields), model.MediaMax)
	}
	for i, f := range fields {
		name, named := readString(f["filename"])
		content, filled := readString(f["content"])
		if !named || !filled || name == "" {
			return nil, badEnvelope(hint, "attachment %d needs filename and content, both strings", i)
		}
		if strings.ContainsAny(content, "\r\n") { // the decoder would skip these
			return nil, badEnvelope("use padded base64 of the standard alphabet, without whitespace",
				"the content of attachment %d has whitespace", i)
		}
		data, err := base64.StdEncoding.Strict().DecodeString(content)
		if err != nil {
			return nil, badEnvelope("use padded base64 of the standard alphabet, without whitespace",
				"the content of attachment %d is not base64: %v", i, err)
		}
		if len(data) == 0 || len(data) > model.MediaBytesMax {
			return nil, badEnvelope("", "attachment %d has %d bytes, 1 to %d are accepted", i, len(data), model.MediaBytesMax)
		}
		list = append(list, attachment{name, runspec.MediaType(name, data), data})
	}
	return list, nil
}

// decodeRunFields reads the fields of a run. Those that the rest of the envelope or the subject decide are refused. The
// fields of a prompt precede those of task.
func decodeRunFields(raw json.RawMessage, task client.RunRequest) (r client.RunRequest, err error) {
	if isAbsent(raw) {
		return task, nil
	}
	r = task
	r.Agent, r.Conversation, r.AllowedTools = "", "", slices.Clone(task.AllowedTools) // which Decode writes to
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(&r)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("it is not one object")
	}
	if err != nil {
		return r, badEnvelope("its fields are those of the request run in docs/control.md",
			"%s does not decode: %v", runKey, err)
	}
	if r.Prompt != "" || r.Agent != "" || r.Resume || len(r.Attach) > 0 || r.History != nil {
		return r, badEnvelope("the subject names the agent, and the envelope has prompt and attachments",
			"%s must not have prompt, agent, attach, history or resume", runKey)
	}
	if r.Owner != "" {
		return r, badEnvelope("owners use the request run", "%s must not have owner", runKey)
	}
	if r.At != "" || r.Every != "" || r.On != "" {
		return r, badEnvelope("the request run makes schedules", "%s must not have at, every or on: one run answers a prompt", runKey)
	}
	if task.Conversation != "" && r.Conversation != "" && r.Conversation != task.Conversation {
		return r, badEnvelope("leave it out", "the session has the conversation %s; %s names %.80q", task.Conversation, runKey, r.Conversation)
	}
	r.Agent, r.Conversation = task.Agent, cmp.Or(task.Conversation, r.Conversation)
	if r.RunID != "" && names.CheckToken(r.RunID) != nil {
		return r, badEnvelope("leave it out, or write a lower-case ULID", "run_id of %s is %.80q", runKey, r.RunID)
	}
	return r, nil
}
