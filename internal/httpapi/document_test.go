package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/client/audit"
	"github.com/troupe-run/troupe/client/report"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

var rewrite = flag.Bool("rewrite", false, "write openapi.json anew")

// operation describes a route: its query parameters, and the Go types of its body and its answers.
type operation struct {
	summary string
	params  []param
	body    any
	loose   bool // the body may have other fields
	answers map[int]any
	stream  string // what the data of the answer as text/event-stream are
}

type param struct{ name, kind, description string }

// metricsText marks an answer that is no JSON.
type metricsText struct{}

// anyDocument marks an answer of which only is said that it is an object.
type anyDocument map[string]any

// operations describe all routes.
var operations = map[string]operation{
	"GET /healthz": {summary: "The node need not be started again", answers: map[int]any{200: Health{}, 503: Health{}}},
	"GET /readyz":  {summary: "The node can take work", answers: map[int]any{200: Health{}, 503: Health{}}},
	"GET /metrics": {summary: "Metrics for Prometheus", answers: map[int]any{200: metricsText{}}},
	"GET /api/v1/runs": {summary: "List the runs, newest first", answers: map[int]any{200: []client.RunInfo{}},
		params: []param{{"limit", "integer", "1 to 1000; 50 by default"}, {"state", "string", "live, queued, parked, finished or interrupted"},
			{"since", "string", "RFC 3339, or a duration such as 36h"}, {"cursor", "string", "of the Link header of the page before"}}},
	"POST /api/v1/runs": {summary: "Start a run", body: client.RunRequest{}, answers: map[int]any{200: client.RunAccepted{}, 201: client.RunAccepted{}}},
	"GET /api/v1/runs/{id}": {summary: "State and result of a run", answers: map[int]any{200: client.RunInfo{}},
		params: []param{{"describe", "boolean", "with its configuration"}, {"brief", "boolean", "of a run that works no result, only some of its live agents: of a run of many agents the answer comes sooner"}}},
	"GET /api/v1/runs/{id}/tree":         {summary: "The result so far, with the agents", answers: map[int]any{200: event.Result{}}},
	"GET /api/v1/runs/{id}/result":       {summary: "The result; 202: what there is so far", params: []param{{"wait", "string", "a duration of at most 1m"}}, answers: map[int]any{200: event.Result{}, 202: event.Result{}}},
	"GET /api/v1/runs/{id}/budget":       {summary: "Limits and usage", answers: map[int]any{200: client.RunBudget{}}},
	"GET /api/v1/runs/{id}/permissions":  {summary: "The permissions of the run, and what was taken from its agents while they worked", answers: map[int]any{200: client.RunPermissions{}}},
	"POST /api/v1/runs/{id}/permissions": {summary: "Take rights from an agent and the agents below it, from their next call on", body: client.PermissionsRequest{}, answers: map[int]any{200: Recorded{}}},
	"GET /api/v1/runs/{id}/policy":       {summary: "The rules of the stop-veto policy that are in force", answers: map[int]any{200: client.RunPolicy{}}},
	"GET /api/v1/runs/{id}/timeline":     {summary: "What each agent did when", answers: map[int]any{200: []term.Span{}}},
	"GET /api/v1/runs/{id}/report":       {summary: "What each step cost, and the sums", answers: map[int]any{200: report.Report{}}},
	"GET /api/v1/runs/{id}/audit":        {summary: "Who allowed which calls, and what changed the rules", answers: map[int]any{200: audit.Audit{}}},
	"GET /api/v1/runs/{id}/transcript": {summary: "The messages of an agent", params: []param{{"agent", "string", "id of the agent; root by default"}},
		answers: map[int]any{200: control.Transcript{}}},
	"GET /api/v1/runs/{id}/questions": {summary: "What the agents of the run ask a person", answers: map[int]any{200: []client.Question{}}},
	"GET /api/v1/runs/{id}/events": {summary: "A page of events, or a stream of them", stream: "one event each; the id is the cursor after it",
		params: []param{{"cursor", "string", "of an earlier page or event, or now for a stream of what follows; the header Last-Event-ID takes precedence"}, {"kind", "string", "kinds or groups of kinds, with commas"},
			{"agent", "string", "an agent and all below it"}, {"limit", "integer", "1 to 10000; 1000 by default"}},
		answers: map[int]any{200: EventList{}, 204: nil}},
	"GET /api/v1/runs/{id}/logs": {summary: "The logs of the run, or entries of one of them as the store holds them", answers: map[int]any{200: RecordedLogs{}},
		params: []param{{"log", "string", "address of a log"}, {"after", "integer", "number (place) of the entry before the first"}, {"limit", "integer", "1 to 1000; 100 by default. A page may have fewer entries: more says whether others follow"},
			{"data", "boolean", "with the bytes, and the bodies of the facts as JSON"}}},
	"GET /api/v1/runs/{id}/comparison": {summary: "The first difference of two runs, with the steps around it", params: []param{{"with", "string", "the other run"}}, answers: map[int]any{200: RunComparison{}}},
	"POST /api/v1/runs/{id}/cancel":    {summary: "Stop a run or an agent", body: client.CancelRequest{}, answers: map[int]any{200: client.CancelReply{}}},
	"POST /api/v1/runs/{id}/steer":     {summary: "Send a message to an agent", body: client.SteerRequest{}, answers: map[int]any{200: Recorded{}}},
	"POST /api/v1/runs/{id}/answer":    {summary: "Answer a question", body: client.AnswerRequest{}, answers: map[int]any{200: Recorded{}}},
	"POST /api/v1/runs/{id}/budget":    {summary: "Change or freeze the limits", body: client.BudgetRequest{}, answers: map[int]any{200: Recorded{}}},
	"GET /api/v1/runs/{id}/context":    {summary: "The system prompt of an agent, as layers, and its tools", params: []param{{"agent", "string", "id of the agent; the one that has the conversation by default"}}, answers: map[int]any{200: client.AgentContext{}}},
	"POST /api/v1/runs/{id}/context":   {summary: "Change the system prompt and the tools of an agent, from its next request on", body: client.ContextRequest{}, answers: map[int]any{200: Recorded{}}},
	"GET /api/v1/runs/{id}/backlog":    {summary: "The tasks that the agents of a run share", params: []param{{"task", "string", "id of a task, to get it alone and in full"}}, answers: map[int]any{200: client.Backlog{}}},
	"POST /api/v1/runs/{id}/backlog":   {summary: "Add a task to the backlog of a run, or drop one", body: client.BacklogRequest{}, answers: map[int]any{200: client.Backlog{}}},
	"POST /api/v1/runs/{id}/policy":    {summary: "Replace the policy", body: client.PolicyRequest{}, answers: map[int]any{200: Recorded{}}},
	"GET /api/v1/conversations": {summary: "List the conversations, the most recent first", answers: map[int]any{200: []client.ConversationInfo{}},
		params: []param{{"busy", "boolean", "those with a run that is active or waits, with these runs"}, {"limit", "integer", "1 to 1000; all by default"}}},
	"GET /api/v1/conversations/{conversation}":       {summary: "The runs of a conversation, and the journal with which it goes on", answers: map[int]any{200: client.ConversationInfo{}}},
	"DELETE /api/v1/conversations/{conversation}":    {summary: "Delete a conversation and its runs, which must have ended", answers: map[int]any{200: client.DeletedConversation{}}},
	"POST /api/v1/conversations/{conversation}/lane": {summary: "Move or drop a run that waits", body: client.LaneRequest{}, answers: map[int]any{200: client.ConversationInfo{}}},
	"GET /api/v1/questions":                          {summary: "What the agents of all runs ask a person", answers: map[int]any{200: []client.Question{}}},
	"GET /api/v1/nodes":                              {summary: "The live nodes", answers: map[int]any{200: []client.NodeInfo{}}},
	"GET /api/v1/cluster":                            {summary: "The nodes, pools, leases, streams and throttles", answers: map[int]any{200: client.ClusterInfo{}}},
	"POST /api/v1/nodes/{node}/drain":                {summary: "Drain all nodes of a name, or with undo let them acquire shards again", body: DrainOptions{}, answers: map[int]any{200: []client.NodeInfo{}}},
	"GET /api/v1/agents":                             {summary: "The agents that a run without a directory may begin with", answers: map[int]any{200: []Agent{}}},
	"POST /api/v1/tickets":                           {summary: "Make a ticket, which can be exchanged once for a session of a page", body: struct{}{}, answers: map[int]any{201: Ticket{}}},
	"POST /api/v1/sessions":                          {summary: "Exchange a ticket, or the token, for a session of a page", body: SessionRequest{}, answers: map[int]any{201: PageSession{}}},
	"GET /api/v1/openapi.json":                       {summary: "This document", answers: map[int]any{200: anyDocument{}}},
	"GET /api/v1/schedules":                          {summary: "The schedules, the one that is due next first", answers: map[int]any{200: []client.ScheduleInfo{}}},
	"GET /api/v1/schedules/{id}":                     {summary: "A schedule, with the request of its runs", answers: map[int]any{200: client.ScheduleInfo{}}},
	"DELETE /api/v1/schedules/{id}":                  {summary: "End a schedule; its runs stay", answers: map[int]any{204: nil}},
	"POST /v1/chat/completions": {summary: "A run of the agent that model names, in the form of OpenAI", body: ChatRequest{}, loose: true, stream: "chat.completion.chunk, then [DONE]",
		answers: map[int]any{200: ChatCompletion{}}},
	"GET /.well-known/agent-card.json":             {summary: "The card of the node's first agent, for programs that speak A2A and know the address of the node only", answers: map[int]any{200: anyDocument{}, 404: Problem{}}},
	"GET /a2a/{agent}/.well-known/agent-card.json": {summary: "The card of an agent, for programs that speak A2A", answers: map[int]any{200: anyDocument{}, 404: Problem{}}},
	"POST /a2a/{agent}":                            {summary: "A request of the Agent2Agent protocol about an agent, JSON-RPC", body: anyDocument{}, stream: "responses of the protocol", answers: map[int]any{200: anyDocument{}}},
	"POST /mcp":                                    {summary: "A message of the Model Context Protocol, streamable HTTP without sessions", body: anyDocument{}, stream: "messages of the protocol", answers: map[int]any{200: anyDocument{}, 202: nil}},
	"GET /v1/models":                               {summary: "The agents that a run without a directory may begin with", answers: map[int]any{200: ChatModels{}}},
	"GET /v1/models/{model}":                       {summary: "One agent", answers: map[int]any{200: ChatModel{}}},
}

// makeDocument makes the OpenAPI document from the routes, their descriptions and the Go types.
func makeDocument(t *testing.T) []byte {
	t.Helper()
	d := documentMaker{t: t, schemas: map[string]any{}}
	paths := map[string]map[string]any{}
	s := tokenAPI{cfg: Config{Metrics: http.NotFoundHandler(), MCP: http.NotFoundHandler(), A2A: http.NotFoundHandler()}}
	described := map[string]bool{}
	for _, r := range s.routes() {
		key := r.method + " " + r.path
		op, ok := operations[key]
		if !ok {
			t.Fatalf("the route %s has no description", key)
		}
		described[key] = true
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = d.operation(r, op)
	}
	for key := range operations {
		if !described[key] {
			t.Errorf("%s is described, and no route", key)
		}
	}
	doc := map[string]any{
		"openapi":  "3.1.0",
		"info":     map[string]any{"title": "troupe", "version": "1", "description": "Control verbs and events of a troupe node. docs/http.md explains them.", "license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"security": []any{map[string]any{"token": []any{}}},
		"paths":    paths,
		"components": map[string]any{"schemas": d.schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
	}
	raw, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

type documentMaker struct {
	t       *testing.T
	schemas map[string]any
}

func (d documentMaker) operation(r route, op operation) map[string]any {
	params := []any{}
	for _, part := range strings.Split(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, map[string]any{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
	}
	for _, p := range op.params {
		params = append(params, map[string]any{"name": p.name, "in": "query", "description": p.description, "schema": map[string]any{"type": p.kind}})
	}
	answers := map[string]any{}
	for code, v := range op.answers {
		answers[fmt.Sprint(code)] = d.answer(code, v, op.stream)
	}
	problem := any(Problem{})
	if strings.HasPrefix(r.path, "/v1/") {
		problem = ChatProblem{}
	}
	answers["default"] = d.answer(400, problem, "")
	doc := map[string]any{"summary": op.summary, "parameters": params, "responses": answers}
	if op.body != nil {
		name := d.ref(op.body, op.loose, true)
		doc["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": name}}}
	}
	return doc
}

func (d documentMaker) answer(code int, v any, stream string) map[string]any {
	doc := map[string]any{"description": http.StatusText(code)}
	if code == 400 {
		doc["description"] = "An error"
	}
	content := map[string]any{}
	switch v.(type) {
	case nil:
		return doc
	case metricsText:
		content["text/plain"] = map[string]any{"schema": map[string]any{"type": "string"}}
	default:
		content["application/json"] = map[string]any{"schema": d.ref(v, true, false)}
	}
	if stream != "" {
		content["text/event-stream"] = map[string]any{"schema": map[string]any{"type": "string", "description": stream}}
	}
	doc["content"] = content
	return doc
}

// ref returns a reference to the schema of a type, which it adds. A request lists its required fields
// nowhere: zero is the default.
func (d documentMaker) ref(v any, loose, request bool) map[string]any {
	typ := reflect.TypeOf(v)
	if typ.Kind() == reflect.Slice {
		return map[string]any{"type": "array", "items": d.ref(reflect.Zero(typ.Elem()).Interface(), loose, request)}
	}
	if typ.Kind() == reflect.Map {
		return map[string]any{"type": "object"}
	}
	s, err := jsonschema.ForType(typ, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[supervisor.Rule](): ruleSchema(d.t)}})
	if err != nil {
		d.t.Fatalf("%s: %v", typ, err)
	}
	if typ == reflect.TypeFor[EventList]() {
		s.Properties["events"] = &jsonschema.Schema{Type: "array", Items: eventSchema(d.t)}
	}
	soften(s, loose, request)
	d.schemas[typ.Name()] = s
	return map[string]any{"$ref": "#/components/schemas/" + typ.Name()}
}

// ruleSchema is the schema of a rule of a policy as people write it: docs/policy.md.
func ruleSchema(t *testing.T) *jsonschema.Schema {
	conditions, err := jsonschema.For[[]supervisor.Condition](nil)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := jsonschema.For[[][]supervisor.Condition](nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		Properties: map[string]*jsonschema.Schema{"when": {AnyOf: []*jsonschema.Schema{{Type: "string"}, conditions}}, "any": lists,
			"percent": {Type: "number"}, "times": {Type: "integer"}, "tools": {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}}
	for _, name := range []string{"name", "use", "on", "agent", "why", "after", "means", "source"} {
		s.Properties[name] = &jsonschema.Schema{Type: "string"}
	}
	return s
}

// eventSchema is the schema of the events of every kind. internal/control/schemas has those of the data.
func eventSchema(t *testing.T) *jsonschema.Schema {
	s, err := jsonschema.For[event.Published](nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// soften lets a later version add fields to answers, and leaves out of requests which fields are required.
func soften(s *jsonschema.Schema, loose, request bool) {
	if s == nil {
		return
	}
	if loose && s.Properties != nil {
		s.AdditionalProperties = nil
	}
	if request {
		s.Required = nil
	}
	for _, p := range s.Properties {
		soften(p, loose, request)
	}
	soften(s.Items, loose, request)
	if !loose || s.Properties == nil {
		soften(s.AdditionalProperties, loose, request)
	}
}

// The document that is served describes all routes and the Go types of today.
func TestDocumentIsThatOfTheRoutes(t *testing.T) {
	want := makeDocument(t)
	if *rewrite {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, Document()) {
		t.Error("openapi.json is not what the routes and types say: go test ./internal/httpapi -rewrite")
	}
}
