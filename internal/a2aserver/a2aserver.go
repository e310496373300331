// Package a2aserver offers the agents of a node by the Agent2Agent protocol (A2A) 1.0, over its binding for JSON-RPC:
// a card for each agent, and tasks, which are runs. It keeps nothing: the task of an id is the run of that id, so any
// node of a cluster answers.
package a2aserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/telemetry"
)

// Config of a handler.
type Config struct {
	Client  *client.Client
	Version string
	// Agents lists the agents that are offered.
	Agents func() []Agent
	// Spans gets a span of each message, whose run is its child; nil: there are none.
	Spans *telemetry.Exporter
}

// Agent is an agent that is offered.
type Agent struct{ Name, Description string }

// Paths of an agent, and of the card of the node: that of its first agent. The handler serves them.
const (
	Path         = "/a2a/{agent}"
	NodeCardPath = "/.well-known/agent-card.json"
	CardPath     = Path + NodeCardPath
)

const protocolVersion = "1.0"

// Methods that begin runs.
const (
	methodSend   = "SendMessage"
	methodStream = "SendStreamingMessage"
)

// NewHandler returns the handler of the paths. The HTTP API has checked Host, Origin and the token.
func NewHandler(cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("agent")
		for _, a := range cfg.Agents() {
			if a.Name != name && r.URL.Path != NodeCardPath {
				continue
			}
			if r.Method == http.MethodGet {
				writeJSON(w, http.StatusOK, cardOf(a, cfg.Version, addressOf(r, a.Name)))
				return
			}
			(&exchange{cfg: cfg, agent: a, w: w}).serve(r)
			return
		}
		writeJSON(w, http.StatusNotFound, map[string]any{"error": fmt.Sprintf("there is no agent %.80q", name), "code": http.StatusNotFound})
	})
}

// addressOf is the address at which the agent was asked for. A proxy with TLS says so in a header.
func addressOf(r *http.Request, agent string) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/a2a/" + agent
}

// cardOf is the card of an agent. It has no securityRequirements: the official SDKs write them in two forms, and each
// refuses the other's. A client that has read the card has the token.
func cardOf(a Agent, version, url string) map[string]any {
	text := []string{"text/plain"}
	return map[string]any{
		"name": a.Name, "description": a.Description, "version": cmp.Or(version, "0"),
		"supportedInterfaces": []any{map[string]any{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": protocolVersion}},
		"capabilities":        map[string]any{"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
		"securitySchemes":     map[string]any{"token": map[string]any{"httpAuthSecurityScheme": map[string]any{"scheme": "Bearer"}}},
		"defaultInputModes":   text, "defaultOutputModes": text,
		"skills": []any{map[string]any{"id": a.Name, "name": a.Name, "description": a.Description, "tags": []string{"agent"}}},
	}
}

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

// Codes of errors, of JSON-RPC and of the protocol.
const (
	codeParse          = -32700
	codeRequest        = -32600
	codeMethod         = -32601
	codeParams         = -32602
	codeInternal       = -32603
	codeServer         = -32000
	codeNoTask         = -32001
	codeNotCancelable  = -32002
	codeNoPush         = -32003
	codeUnsupported    = -32004
	codeContentType    = -32005
	codeNoExtendedCard = -32007
	codeVersion        = -32009
)

func refusal(code int, format string, args ...any) *rpcError {
	return &rpcError{code, fmt.Sprintf(format, args...)}
}

// explain makes an error of the protocol of one of a node.
func explain(err error) *rpcError {
	var known *rpcError
	var refused *client.Error
	switch {
	case errors.As(err, &known):
		return known
	case !errors.As(err, &refused):
		return refusal(codeInternal, "%v", err)
	}
	text := refused.Text
	if refused.Hint != "" {
		text += " (" + refused.Hint + ")"
	}
	switch refused.Code {
	case client.CodeBad, client.CodeForbidden:
		return refusal(codeParams, "%s", text)
	case client.CodeNotFound, client.CodeGone:
		return refusal(codeNoTask, "%s", text)
	case client.CodeConflict, client.CodeLimit, client.CodeUnavailable, client.CodeLogs:
		return refusal(codeServer, "%s", text)
	}
	return refusal(codeInternal, "%s", text)
}

// exchange is one request and its response.
type exchange struct {
	cfg   Config
	agent Agent
	w     http.ResponseWriter
	id    json.RawMessage    // of the request
	span  *telemetry.Request // of a message; nil: there is none
	// streamed is the error that a stream has sent.
	streamed error
}

// rpcRequest is a request of JSON-RPC.
type rpcRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// serve answers a request.
func (x *exchange) serve(r *http.Request) {
	var q rpcRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		x.fail(refusal(codeParse, "the request is no JSON, or did not arrive whole"))
		return
	}
	if !isID(q.ID) || q.JSONRPC != "2.0" || q.Method == "" {
		x.fail(refusal(codeRequest, "the request is none of JSON-RPC 2.0: it needs jsonrpc, id and method"))
		return
	}
	x.id = q.ID
	if version := cmp.Or(r.Header.Get("A2A-Version"), r.URL.Query().Get("A2A-Version"), "0.3"); version != "1" && !strings.HasPrefix(version, "1.") {
		x.fail(refusal(codeVersion, "troupe speaks version %s of the protocol, and not %.20q; send the header A2A-Version: %s", protocolVersion, version, protocolVersion))
		return
	}
	if err := x.dispatch(r, q); err != nil {
		x.fail(err)
	}
}

// isID reports whether a text is the id of a request: a string or a number.
func isID(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v.(type) {
	case string, float64:
		return true
	}
	return false
}

// dispatch carries out a request. It returns an error that was not sent.
func (x *exchange) dispatch(r *http.Request, q rpcRequest) error {
	switch q.Method {
	case methodSend, methodStream:
		return x.traceMessage(r, q)
	case "GetTask":
		return x.getTask(r.Context(), q.Params)
	case "CancelTask":
		return x.cancelTask(r.Context(), q.Params)
	case "SubscribeToTask":
		return x.subscribe(r.Context(), q.Params)
	case "ListTasks":
		return refusal(codeUnsupported, "tasks are not listed by this protocol; GET /api/v1/runs lists the runs")
	case "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig":
		return errNoPush
	case "GetExtendedAgentCard":
		return refusal(codeNoExtendedCard, "the agent has no other card")
	}
	return refusal(codeMethod, "there is no method %.80q", q.Method)
}

var errNoPush = refusal(codeNoPush, "push notifications are not supported; stream, or ask for the task")

// reply sends a result.
func (x *exchange) reply(result any) {
	writeJSON(x.w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": x.id, "result": result})
}

// fail sends an error.
func (x *exchange) fail(err error) {
	writeJSON(x.w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": x.id, "error": explain(err)})
}

func writeJSON(w http.ResponseWriter, status int, doc any) {
	raw, err := json.Marshal(doc)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":"the answer has no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that is gone reads nothing
}
