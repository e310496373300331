package telemetry

import (
	"cmp"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/metrics"
	"github.com/troupe-run/troupe/model"
)

// Names of attributes: those of the OpenTelemetry semantic conventions for generative AI and MCP, which are still in
// development (semantic-conventions 1.41.1), and troupe's own. docs/telemetry.md describes them.
const (
	keyOperation     = "gen_ai.operation.name"
	keyProvider      = "gen_ai.provider.name"
	keyConversation  = "gen_ai.conversation.id"
	keyWorkflow      = "gen_ai.workflow.name"
	keyAgentName     = "gen_ai.agent.name"
	keyAgentID       = "gen_ai.agent.id"
	keyRequestModel  = "gen_ai.request.model"
	keyFinish        = "gen_ai.response.finish_reasons"
	keyInput         = "gen_ai.usage.input_tokens"
	keyOutput        = "gen_ai.usage.output_tokens"
	keyReasoning     = "gen_ai.usage.reasoning.output_tokens"
	keyCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	keyCacheCreation = "gen_ai.usage.cache_creation.input_tokens"
	keyToolName      = "gen_ai.tool.name"
	keyToolType      = "gen_ai.tool.type"
	keyCallID        = "gen_ai.tool.call.id"
	keyArguments     = "gen_ai.tool.call.arguments"
	keyToolResult    = "gen_ai.tool.call.result"
	keyInputText     = "gen_ai.input.messages"
	keyOutputText    = "gen_ai.output.messages"
	keyErrorType     = "error.type"
	keyMCPMethod     = "mcp.method.name"
	keyMCPServer     = "troupe.mcp.server"
	keyRun           = "troupe.run"
	keyTurn          = "troupe.turn"
	keyTransition    = "troupe.transition"
	keyPurpose       = "troupe.purpose"
	keyCost          = "troupe.cost_usd"
	keyStopReason    = "troupe.stop_reason"
	keyPartial       = "troupe.partial"
	keyTurns         = "troupe.turns"
	keyCalls         = "troupe.tool_calls"
	keyAgents        = "troupe.agents"
	keyChild         = "troupe.child"
	keyAttempts      = "troupe.attempts"
	keyClass         = "troupe.tool.class"
	keyBackground    = "troupe.background"
)

// Values of error.type that are troupe's own; others are classes of model errors and stop reasons.
const (
	errorLost      = "lost" // a crash has taken the outcome
	errorTool      = "tool_error"
	errorDenied    = "denied"    // the call did not run: permissions, hooks or a person
	errorThrottled = "throttled" // the throttle of the model refused the attempt
	errorUnended   = "unended"   // the agent ended first
)

// span is one thing that has ended, before it is encoded.
type span struct {
	run        string
	trace      *traceContext // nil: that of the run
	id, parent spanID        // a zero parent: that of the trace
	name       string
	kind       tracepb.Span_SpanKind
	startMS    int64
	endMS      int64
	attributes []attribute
	errorType  string
	errorText  string // only with content: a provider's error may quote the prompt
}

// attribute has a value of type string, int64, float64, bool or []string.
type attribute struct {
	key   string
	value any
}

// set adds an attribute. A name that a model or a file chose may be long.
func (s *span) set(key string, value any) {
	if name, ok := value.(string); ok {
		value = strings.Clone(clip.Text(name, valueBytesMax))
	}
	s.attributes = append(s.attributes, attribute{key, value})
}

// addText adds a text of people, models or tools, if there is one.
func (s *span) addText(key, text string) {
	if text != "" {
		s.attributes = append(s.attributes, attribute{key, text})
	}
}

// setError marks the span as failed, unless kind is "".
func (s *span) setError(kind, text string) {
	if kind != "" {
		s.errorType, s.errorText = kind, text
	}
}

// setUsage adds the tokens of a span. Input tokens include cached ones, as the conventions demand.
func (s *span) setUsage(u model.Usage) {
	s.set(keyInput, u.Prompt())
	s.set(keyOutput, u.Output)
	optional := []struct { // in one order: all nodes encode a span alike
		key    string
		tokens int64
	}{{keyReasoning, u.Reasoning}, {keyCacheRead, u.CacheRead}, {keyCacheCreation, u.CacheCreation}}
	for _, o := range optional {
		if o.tokens > 0 {
			s.set(o.key, o.tokens)
		}
	}
}

// setModel adds the provider and the model of a route PROVIDER/MODEL.
func (s *span) setModel(route string) {
	provider, name := metrics.ConventionNames(route)
	s.set(keyProvider, provider)
	s.set(keyRequestModel, name)
}

// runSpan makes the span of a run that has ended. Its start and its parent are in the first entry of the run.
func runSpan(e event.Published, d event.Result, texts func(string) string) span {
	s := span{run: e.Run, id: runSpanID(e.Run), kind: tracepb.Span_SPAN_KIND_INTERNAL, endMS: stampOf(e)}
	workflow := ""
	for _, a := range d.Agents {
		if a.ID == spec.Root {
			workflow = a.Name
		}
	}
	s.name = "invoke_workflow " + workflow
	s.set(keyOperation, "invoke_workflow")
	s.set(keyWorkflow, workflow)
	s.set(keyStopReason, string(d.Reason))
	s.set(keyPartial, d.Partial)
	s.set(keyTurns, int64(d.Turns))
	s.set(keyAgents, int64(len(d.Agents)))
	s.setUsage(d.Usage)
	if d.CostKnown {
		s.set(keyCost, d.CostUSD)
	}
	if texts == nil {
		texts = func(string) string { return "" }
	}
	s.addText(keyOutputText, messageJSON("assistant", texts(d.Text)))
	if d.IsError {
		s.setError(cmp.Or(string(d.Reason), d.Subtype), texts(d.Detail))
	}
	return s
}

// stampOf returns the stamp of an event in Unix milliseconds.
func stampOf(e event.Published) int64 {
	at, err := time.Parse(time.RFC3339Nano, e.TS)
	if err != nil {
		return 0 // event.FormatStamp has no such result
	}
	return at.UnixMilli()
}
