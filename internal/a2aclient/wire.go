package a2aclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// dialect is how a version of the protocol writes what this package sends.
type dialect struct {
	stream, send, get, cancel string // the methods
	old                       bool   // 0.3
}

var (
	dialectV1  = dialect{stream: "SendStreamingMessage", send: "SendMessage", get: "GetTask", cancel: "CancelTask"}
	dialectV03 = dialect{
		stream: "message/stream", send: "message/send", get: "tasks/get", cancel: "tasks/cancel", old: true,
	}
)

// historyLength is how many messages of a task's history are asked for: the last one of the agent may be its answer.
const historyLength = 4

// message returns the parameters that send a task: one message of one text. The agent need not wait until it has done
// the task.
// task is the id of the task that it is about; "": it is a new one.
func (t target) message(key, text, task string) map[string]any {
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(key)).String()
	part, m := map[string]any{"text": text}, map[string]any{"messageId": id, "role": "ROLE_USER"}
	options := map[string]any{"returnImmediately": true, "historyLength": historyLength}
	if t.dialect.old {
		part["kind"], m["kind"], m["role"] = "text", "message", "user"
		options = map[string]any{"blocking": false, "historyLength": historyLength}
	}
	if m["parts"] = []any{part}; task != "" {
		m["taskId"] = task
	}
	return t.withTenant(map[string]any{"message": m, "configuration": options})
}

// aboutTask returns the parameters of a request about a task.
func (t target) aboutTask(id string, more map[string]any) map[string]any {
	p := map[string]any{"id": id}
	for k, v := range more {
		p[k] = v
	}
	return t.withTenant(p)
}

func (t target) withTenant(params map[string]any) map[string]any {
	if t.tenant != "" {
		params["tenant"] = t.tenant
	}
	return params
}

// rpcError is the error of a response.
type rpcError struct {
	Code    int
	Message string
}

// rpcResponse is a response of JSON-RPC.
type rpcResponse struct {
	JSONRPC string
	Result  json.RawMessage
	Error   *rpcError
}

// decode returns the result of a response, or its error.
func decode(data []byte) (json.RawMessage, error) {
	var r rpcResponse
	if err := json.Unmarshal(data, &r); err != nil || r.JSONRPC != "2.0" {
		return nil, errMalformed
	}
	switch {
	case r.Error != nil:
		return nil, fmt.Errorf("%w: %d %s", errForeign, r.Error.Code, quoteText(r.Error.Message))
	case len(r.Result) == 0 || string(r.Result) == "null":
		return nil, errMalformed
	}
	return r.Result, nil
}

// event is one event of a stream, or the result of a request: a field of version 1.0, or by Kind the object itself, of
// 0.3.
type event struct {
	Task           *wireTask
	Message        *wireMessage
	StatusUpdate   *statusUpdate
	ArtifactUpdate *artifactUpdate

	Kind string
}

type wireTask struct {
	ID        string
	Status    wireStatus
	Artifacts []wireArtifact
	History   []wireMessage
}

type wireStatus struct {
	State   string
	Message *wireMessage
}

type wireMessage struct {
	TaskID string
	Role   string
	Parts  []wirePart
}

type wireArtifact struct {
	ArtifactID string
	Parts      []wirePart
}

type statusUpdate struct {
	TaskID string
	Status wireStatus
}

type artifactUpdate struct {
	TaskID   string
	Artifact wireArtifact
	Append   bool
}

// wirePart is a part of a message or artifact: its content is the field that is there. Version 0.3 has files in File.
type wirePart struct {
	Text                *string
	Raw                 string
	URL                 string
	Data                json.RawMessage
	Filename, MediaType string

	File *struct{ Name, MimeType, Bytes, URI string }
}

// parseEvent reads an event.
func parseEvent(data json.RawMessage) (e event, err error) {
	if err := json.Unmarshal(data, &e); err != nil {
		return e, errMalformed
	}
	var into any
	switch e.Kind {
	case "":
		if e.Task == nil && e.Message == nil && e.StatusUpdate == nil && e.ArtifactUpdate == nil {
			return e, errMalformed
		}
		return e, nil
	case "task":
		e.Task = &wireTask{}
		into = e.Task
	case "message":
		e.Message = &wireMessage{}
		into = e.Message
	case "status-update":
		e.StatusUpdate = &statusUpdate{}
		into = e.StatusUpdate
	case "artifact-update":
		e.ArtifactUpdate = &artifactUpdate{}
		into = e.ArtifactUpdate
	default:
		return e, nil // a kind of a later version
	}
	if err := json.Unmarshal(data, into); err != nil {
		return e, errMalformed
	}
	return e, nil
}

// taskState is the state of a task, in the words of version 0.3.
type taskState string

// The states of a task. Any other word is errMalformed: what it says of the task cannot be guessed.
const (
	stateCompleted taskState = "completed"
	stateFailed    taskState = "failed"
	stateCanceled  taskState = "canceled"
	stateRejected  taskState = "rejected"
	stateInput     taskState = "input-required"
	stateAuth      taskState = "auth-required"
	stateSubmitted taskState = "submitted"
	stateWorking   taskState = "working"
	// stateUnknown is that of a server that cannot tell now (TASK_STATE_UNSPECIFIED in 1.0). The task may be at work,
	// so the client polls it until the call ends.
	stateUnknown taskState = "unknown"
)

// parseState reads the word of either version.
func parseState(word string) (taskState, bool) {
	s := taskState(strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(word, "TASK_STATE_")), "_", "-"))
	switch s {
	case "unspecified":
		return stateUnknown, true
	case stateCompleted, stateFailed, stateCanceled, stateRejected, stateInput, stateAuth,
		stateSubmitted, stateWorking, stateUnknown:
		return s, true
	}
	return "", false
}

// isOver reports whether nothing more happens to a task.
func (s taskState) isOver() bool {
	return s == stateCompleted || s == stateFailed || s == stateCanceled || s == stateRejected
}

// text returns what the model reads of a part. Files are named, not fetched.
func (p wirePart) text() string {
	file := func(name, kind, where string) string {
		return "[a file that is not shown: " + strings.TrimSpace(clipText(name)+" "+clipText(kind)) + where + "]"
	}
	switch {
	case p.Text != nil:
		return *p.Text
	case len(p.Data) > 0 && string(p.Data) != "null":
		return string(p.Data)
	case p.File != nil && p.File.URI != "":
		return file(p.File.Name, p.File.MimeType, " at "+clipText(p.File.URI))
	case p.File != nil:
		return file(p.File.Name, p.File.MimeType, fmt.Sprintf(" of %d bytes", len(p.File.Bytes)/4*3))
	case p.URL != "":
		return file(p.Filename, p.MediaType, " at "+clipText(p.URL))
	case p.Raw != "":
		return file(p.Filename, p.MediaType, fmt.Sprintf(" of %d bytes", len(p.Raw)/4*3))
	}
	return ""
}

// joinParts returns the text of parts. The parts of an artifact may be pieces of one text, those of a message are not.
func joinParts(parts []wirePart, separator string) string {
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		if t := p.text(); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, separator)
}
