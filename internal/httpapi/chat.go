package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/abandon"
	"github.com/troupe-run/troupe/model"
)

// ChatRequest is the request of /v1/chat/completions in the form of OpenAI. Fields that are not listed
// have no effect.
type ChatRequest struct {
	// Model is the name of an agent; "" is the default one.
	Model    string        `json:"model"`
	Messages []ChatMessage `json:"messages"`
	Stream   bool          `json:"stream,omitempty"`
	// StreamOptions say whether a stream ends with the usage.
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options,omitempty"`
	Temperature    *float64          `json:"temperature,omitempty"`
	N              *int              `json:"n,omitempty"`
	Tools          []json.RawMessage `json:"tools,omitempty"`
	ResponseFormat *struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format,omitempty"`
	// Troupe are further fields of a run, as of POST /api/v1/runs.
	Troupe client.RunRequest `json:"troupe,omitzero"`
}

// UnmarshalJSON refuses unknown fields of a run; those of OpenAI's API that are not listed have no effect.
func (q *ChatRequest) UnmarshalJSON(raw []byte) error {
	type plain ChatRequest
	var doc struct {
		plain
		Troupe json.RawMessage `json:"troupe"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return err
	}
	*q = ChatRequest(doc.plain)
	if doc.Troupe == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(doc.Troupe))
	d.DisallowUnknownFields()
	if err := d.Decode(&q.Troupe); err != nil {
		return fmt.Errorf("troupe: %w", err)
	}
	return nil
}

// unusableField is a field of troupe that a chat cannot have, because the request or the server decides it; "": there is none.
func unusableField(r client.RunRequest) string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"run_id", r.RunID != ""}, {"prompt", r.Prompt != ""}, {"agent", r.Agent != ""}, {"history", r.History != nil}, {"resume", r.Resume},
		{"at", r.At != ""}, {"every", r.Every != ""}, {"on", r.On != ""}, {"dry_run", r.DryRun},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// ChatMessage is one message of a conversation. Its content is a text, or a list of texts.
type ChatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// text is the content of a message.
func (m ChatMessage) text() (string, error) {
	var text string
	if len(m.Content) == 0 || string(m.Content) == "null" {
		return "", nil
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return "", errors.New("the content of a message is neither a text nor a list of parts")
	}
	for _, p := range parts {
		if p.Type != "text" && p.Type != "input_text" {
			return "", fmt.Errorf("a part of a message is of the type %q; only text is passed on", p.Type)
		}
		text += p.Text
	}
	return text, nil
}

// chatRun is the run that a ChatRequest asks for.
type chatRun struct {
	request client.RunRequest
	past    []model.Message
}

// newChatRun makes the request of a run: the last message is the prompt, and those before it are the
// history.
func newChatRun(q ChatRequest) (c chatRun, err error) {
	switch {
	case q.N != nil && *q.N != 1:
		return c, errors.New("n must be 1")
	case len(q.Tools) > 0:
		return c, errors.New("an agent has its own tools: leave tools out")
	case len(q.Messages) == 0 || q.Messages[len(q.Messages)-1].Role != "user":
		return c, errors.New("the last message must be one of the user")
	}
	if field := unusableField(q.Troupe); field != "" {
		return c, fmt.Errorf("troupe.%s has no effect in a chat: leave it out, or start a run with POST /api/v1/runs", field)
	}
	c.request = q.Troupe
	c.request.Agent, c.request.RunID = q.Model, client.NewID()
	if q.Temperature != nil {
		c.request.Temperature = q.Temperature
	}
	if f := q.ResponseFormat; f != nil && f.Type == "json_schema" {
		c.request.JSONSchema = f.JSONSchema.Schema
	}
	var system []string
	for _, m := range q.Messages {
		text, err := m.text()
		switch role := m.Role; {
		case err != nil:
			return c, err
		case role == "system" || role == "developer":
			system = append(system, text)
		case role == "user" || role == "assistant":
			c.past = appendTurn(c.past, model.Role(role), text)
		default:
			return c, fmt.Errorf("a message has the role %q; known are system, developer, user and assistant", role)
		}
	}
	last := c.past[len(c.past)-1]
	c.past = c.past[:len(c.past)-1]
	c.request.Prompt = strings.Join(append(system, last.Text), "\n\n")
	return c, nil
}

// appendTurn adds a message; two of one role become one, because providers want turns.
func appendTurn(list []model.Message, role model.Role, text string) []model.Message {
	if n := len(list); n > 0 && list[n-1].Role == role {
		list[n-1].Text += "\n\n" + text
		return list
	}
	return append(list, model.Message{Role: role, Text: text})
}

// start starts the run, with the history of the conversation. The request for the run is not given up with
// ctx: a run that was accepted although its client has gone away must be known, so that it is canceled.
func (c *chatRun) start(ctx context.Context, to *client.Client) error {
	for len(c.past) > 0 && c.past[0].Role != model.User { // a history begins with the user
		c.past = c.past[1:]
	}
	if n := len(c.past); n > 0 && c.past[n-1].Role == model.User {
		c.request.Prompt = c.past[n-1].Text + "\n\n" + c.request.Prompt
		c.past = c.past[:n-1]
	}
	if len(c.past) > 0 {
		past := history.Transcript{Form: history.Form, Messages: c.past}
		if err := past.Check(); err != nil {
			return &client.Error{Code: client.CodeBad, Text: "the conversation cannot be continued: " + err.Error()}
		}
		h, err := to.Recall(ctx, c.request.RunID, past)
		if err != nil {
			return err
		}
		c.request.History = &h
	}
	_, err := to.Run(context.WithoutCancel(ctx), c.request)
	return err
}

// chatPaths is the API in the form of OpenAI: its models are the agents, and a completion is a run.
type chatPaths struct {
	client  *client.Client
	agents  func(context.Context) []Agent
	streams slotShare
	logger  *slog.Logger
}

// completeChat is POST /v1/chat/completions: a run of the agent that model names. If the client goes away,
// the run is canceled.
func (p chatPaths) completeChat(w http.ResponseWriter, r *http.Request) {
	var q ChatRequest
	if err := readBody(r, &q, false); err != nil {
		refuseChat(w, err)
		return
	}
	q.Troupe.Trace = cmp.Or(q.Troupe.Trace, r.Header.Get(client.TraceHeader))
	run, err := newChatRun(q)
	if err != nil {
		refuseChat(w, &client.Error{Code: client.CodeBad, Text: err.Error()})
		return
	}
	release, ok := p.streams.take()
	if !ok {
		refuseChat(w, &client.Error{Code: client.CodeLimit, Text: "the server has as many conversations and streams as it serves at once", Retry: 5 * time.Second})
		return
	}
	defer release()
	id := run.request.RunID
	reply := newChatReply(w, q, id)
	watch, err := p.client.NewRunWatch(id)
	if err != nil {
		refuseChat(w, err)
		return
	}
	defer watch.Close()
	stop, err := p.client.WatchRun(id, reply.hear)
	if err != nil {
		refuseChat(w, err)
		return
	}
	defer stop()
	if err := run.start(r.Context(), p.client); err != nil {
		if !client.IsRefused(err) {
			p.abandon(id) // a node may have accepted it
		}
		refuseChat(w, err)
		return
	}
	w.Header().Set("Troupe-Run", id)
	cancel := sync.OnceFunc(func() { p.abandon(id) })
	done := context.AfterFunc(r.Context(), cancel)
	reply.begin()
	info, err := watch.WaitNew(r.Context())
	if err == nil {
		reply.awaitEvents(r.Context())
	}
	stop()
	if done(); r.Context().Err() != nil { // the wait may have ended before the cancel began
		cancel()
	}
	reply.end(info, err)
}

// abandon cancels the run of a client that has gone away.
func (p chatPaths) abandon(run string) {
	err := abandon.Run(context.Background(), p.client, run, "the HTTP client has gone away")
	if err != nil {
		p.logger.Debug("a run of an HTTP client that has gone away was not canceled", "run", run, "error", err)
	}
}

// chatPrefix is where the paths of the API in the form of OpenAI begin.
const chatPrefix = "/v1/"

// ChatProblem is an error in the form of OpenAI.
type ChatProblem struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func newChatProblem(err error) (p ChatProblem, code int, retry time.Duration) {
	known, retry := explain(err)
	var bad *errBody
	if errors.As(err, &bad) {
		known = Problem{bad.text, bad.hint, bad.code}
	}
	p.Error.Message, p.Error.Type = known.Error, "invalid_request_error"
	if known.Hint != "" {
		p.Error.Message += " (" + known.Hint + ")"
	}
	if known.Code >= http.StatusInternalServerError {
		p.Error.Type = "server_error"
	}
	var refused *client.Error
	if errors.As(err, &refused) && refused.Reason == client.ReasonUnknownAgent {
		notFound := "model_not_found"
		known.Code, p.Error.Code = http.StatusNotFound, &notFound
	}
	return p, known.Code, retry
}

func refuseChat(w http.ResponseWriter, err error) {
	p, code, retry := newChatProblem(err)
	if retry > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int((retry+time.Second-1)/time.Second)))
	}
	writeJSON(w, code, p)
}

// ChatModel is one entry of /v1/models.
type ChatModel struct {
	ID          string `json:"id"`
	Object      string `json:"object"` // model
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Description string `json:"description"`
}

// ChatModels is the answer of /v1/models.
type ChatModels struct {
	Object string      `json:"object"` // list
	Data   []ChatModel `json:"data"`
}

func (p chatPaths) chatModels(ctx context.Context) ChatModels {
	list := ChatModels{Object: "list", Data: []ChatModel{}}
	for _, a := range p.agents(ctx) {
		list.Data = append(list.Data, ChatModel{ID: a.Name, Object: "model", OwnedBy: "troupe", Description: a.Description})
	}
	return list
}

// listModels is GET /v1/models: the agents that a run without a directory may begin with.
func (p chatPaths) listModels(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, p.chatModels(r.Context()))
}

// getModel is GET /v1/models/{model}.
func (p chatPaths) getModel(w http.ResponseWriter, r *http.Request) {
	for _, m := range p.chatModels(r.Context()).Data {
		if m.ID == r.PathValue("model") {
			writeJSON(w, http.StatusOK, m)
			return
		}
	}
	refuseChat(w, &client.Error{Code: client.CodeNotFound, Text: "there is no agent " + quoteShort(r.PathValue("model"))})
}

// finishReason is the word of OpenAI for the end of a run.
func finishReason(r event.Result) string {
	switch event.Subtype(r.Reason) {
	case "error_max_tokens", "error_max_budget_usd", "error_max_turns", "error_max_tool_calls", "error_timeout":
		return "length"
	case "error_refused":
		return "content_filter"
	}
	return "stop"
}
