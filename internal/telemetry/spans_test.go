package telemetry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

func TestTraceOfARun(t *testing.T) {
	t.Parallel()
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	whole := "00-" + id + "-" + parent + "-01"
	for given, want := range map[string]bool{
		whole: true, "00-" + id + "-" + parent + "-00": true, "01-" + id + "-" + parent + "-01-more": true, " " + whole + " ": true,
		"": false, "00-" + id + "-" + parent: false, "ff-" + id + "-" + parent + "-01": false, whole + "-more": false, strings.ToUpper(whole): false,
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": false, "00-" + id + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + strings.Replace(id, "4", "x", 1) + "-" + parent + "-01": false, strings.Repeat("-", 60): false, "\xff\x00": false,
	} {
		c := traceOf("run", given)
		if got := c.parent != (spanID{}); got != want || (TraceID("run", given) == id) != want {
			t.Errorf("%q: %v", given, got)
		}
	}
	if a, b := TraceID("a", ""), TraceID("b", ""); a == b || a != TraceID("a", "no traceparent") || len(a) != 32 {
		t.Error(a, b)
	}
	later := "01-" + id + "-" + parent + "-03-" + strings.Repeat("-x", 1<<20)
	for given, want := range map[string]string{whole: whole, later: whole, whole + "-more": "", "x": "", "": ""} {
		if got := CleanTraceparent(given); got != want {
			t.Errorf("%.80q becomes %q", given, got)
		}
	}
}

func TestSampler(t *testing.T) {
	t.Parallel()
	parent := "00-" + strings.Repeat("1", 32) + "-" + strings.Repeat("2", 16) + "-0"
	for _, c := range []struct {
		name, arg, trace string
		want             bool
	}{{"", "", "", true}, {"", "", parent + "0", false}, {"always_on", "", parent + "0", true}, {"always_off", "", parent + "1", false},
		{"parentbased_always_off", "", parent + "1", true}, {"traceidratio", "0", "", false}, {"parentbased_traceidratio", "1", "", true}} {
		var got target
		env := environment{get: func(key string) string {
			return map[string]string{"OTEL_TRACES_SAMPLER": c.name, "OTEL_TRACES_SAMPLER_ARG": c.arg}[key]
		}}
		if err := env.readSampler(&got); err != nil || got.sampler.isSampled(traceOf("r", c.trace)) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	half := sampler{ratio: 0.5}
	sampled := 0
	for i := range 1000 {
		if half.isSampled(traceOf(fmt.Sprint(i), "")) {
			sampled++
		}
	}
	if sampled < 400 || sampled > 600 {
		t.Errorf("%d of 1000", sampled)
	}
}

func TestWhereSpansGo(t *testing.T) {
	t.Parallel()
	const base, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		settings  Settings
		variables map[string]string
		want      string // "!": an error
	}{
		{want: ""},
		{variables: map[string]string{base: "http://a:4318"}, want: "http://a:4318/v1/traces"},
		{variables: map[string]string{base: "http://a:4318/x/"}, want: "http://a:4318/x/v1/traces"},
		{variables: map[string]string{base: "http://a", traces: "http://b/own"}, want: "http://b/own"},
		{Settings{Endpoint: "https://c"}, map[string]string{base: "http://a", "OTEL_TRACES_EXPORTER": "none"}, "https://c/v1/traces"},
		{variables: map[string]string{base: "http://a", "OTEL_TRACES_EXPORTER": "none"}, want: ""},
		{variables: map[string]string{base: "http://a", "OTEL_SDK_DISABLED": "true"}, want: ""},
		{variables: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, want: "http://localhost:4318/v1/traces"},
		{variables: map[string]string{base: "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: "!"},
		{variables: map[string]string{base: "http://a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, want: "http://a/v1/traces"},
		{Settings{Endpoint: "localhost:4318"}, nil, "!"},
		{Settings{Endpoint: "ftp://a"}, nil, "!"},
		{Settings{Endpoint: "http://a?x=1"}, nil, "!"},
		{Settings{Content: "all"}, nil, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "x"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "ä=secret"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x=secret%01"}, "!"},
		{Settings{Endpoint: "http://user:secret%zz@a"}, nil, "!"},
		{Settings{Endpoint: "user:secret@a:4318"}, nil, "!"},
		{Settings{Endpoint: "http://a?key=secret"}, nil, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/none"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_TRACES_SAMPLER": "some"}, "!"},
		{Settings{Endpoint: "http://a"}, map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "x"}, "!"},
	} {
		got, err := resolveTarget(c.settings, func(key string) string { return c.variables[key] }, ofTraces)
		if c.want == "!" {
			if !errors.Is(err, ErrSettings) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %q %v", c, got.url, err)
			}
		} else if err != nil || got.url != c.want {
			t.Errorf("%+v: %q %v", c, got.url, err)
		}
	}
}

// readAll returns the spans of events, one line each.
func readAll(l *logSpans, events []event.Published) (lines []string) {
	for _, e := range events {
		for _, s := range l.read(e) {
			lines = append(lines, fmt.Sprintf("%s %d-%d %s", s.name, s.startMS, s.endMS, s.errorType))
		}
	}
	return lines
}

// What an agent leaves open ends with it or with the next call, so that every span has its parent; attempts of MCP calls
// have spans of their own.
func TestSpansOfCallsThatFail(t *testing.T) {
	t.Parallel()
	var events []event.Published
	at := int64(0)
	add := func(kind event.Kind, data any) {
		at += 10
		events = append(events, event.Published{ID: fmt.Sprintf("r.root-1-0#%d.0", at), TS: event.FormatStamp(at), Run: "r", Agent: "root-1-0", Seq: uint64(at), Kind: kind, Turn: 1, Data: data})
	}
	add(event.KindAgentStarted, event.AgentStarted{Name: "helper", Parent: "root", Model: "anthropic/claude"}) // 10
	add(event.KindModelStarted, event.ModelStarted{Model: "anthropic/claude", Reservation: 1})                 // 20
	add(event.KindModelStarted, event.ModelStarted{Model: "anthropic/claude", Reservation: 2})                 // 30
	add(event.KindModelRetry, event.ModelFinished{Model: "anthropic/claude", Error: "overloaded", TookMS: 5})  // 40
	add(event.KindModelStarted, event.ModelStarted{Model: "anthropic/claude", Reservation: 3})                 // 50
	add(event.KindModelFinished, event.ModelFinished{Model: "anthropic/claude", Stop: "tools"})                // 60
	add(event.KindToolStarted, event.ToolCall{Call: "1-0", Tool: "mcp__files__read", Attempt: 1})              // 70
	add(event.KindToolRetry, event.ToolRetry{Call: "1-0", Attempt: 1, TookMS: 4})                              // 80
	add(event.KindToolStarted, event.ToolCall{Call: "1-0", Tool: "mcp__files__read", Attempt: 2})              // 90
	add(event.KindToolFinished, event.ToolCall{Call: "1-0", Tool: "mcp__files__read", TookMS: 3})              // 100
	add(event.KindToolDenied, event.ToolDecided{Call: "1-1", Tool: "shell"})                                   // 110
	add(event.KindToolFinished, event.ToolCall{Call: "1-1", Tool: "shell", Error: true})                       // 120
	add(event.KindDelegationRequested, event.ToolCall{Call: "1-2", Tool: "delegate", Child: "root-1-0-1-2"})   // 130
	add(event.KindDelegationBackground, event.ToolCall{Call: "1-2", Tool: "delegate", Child: "root-1-0-1-2"})  // 140
	add(event.KindAgentFinished, event.AgentFinished{Name: "helper", Reason: spec.MaxTurns})                   // 150
	want := []string{"chat claude 20-30 lost", "chat claude 35-40 overloaded", "chat claude 50-60 ", "tools/call read 76-80 tool_error", "tools/call read 97-100 ",
		"execute_tool mcp__files__read 70-100 ", "execute_tool shell 120-120 denied", "execute_tool delegate 130-150 unended", "invoke_agent helper 10-150 max_turns"}
	l := newLogSpans("r", "root-1-0", nil)
	if got := readAll(l, events); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, e := range events {
		if l.isNew(e) {
			t.Errorf("%s is new again", e.ID)
		}
	}
}

// Without content, a span has no text that a model, a tool or a provider wrote: no error text, and no made-up tool name
// that could not be the name of a tool.
//
//behaviour:shows I3
func TestSpansWithoutContentHaveNoTexts(t *testing.T) {
	t.Parallel()
	var events []event.Published
	for i, data := range []any{event.AgentStarted{Name: "a", Goal: "zebra"}, event.ModelStarted{Model: "openai/m", Reservation: 1},
		event.ModelFinished{Error: "bad_request", Detail: "zebra"}, event.ToolCall{Call: "1-0", Tool: "a zebra", Args: "zebra", Text: "zebra", Error: true},
		event.AgentFinished{Name: "a", Reason: spec.ModelError, Detail: "zebra", Text: "zebra"}} {
		kind := []event.Kind{event.KindAgentStarted, event.KindModelStarted, event.KindModelFinished, event.KindToolFinished, event.KindAgentFinished}[i]
		events = append(events, event.Published{ID: fmt.Sprintf("r.root#%d.0", i+1), TS: event.FormatStamp(int64(i)), Run: "r", Seq: uint64(i + 1), Kind: kind, Data: data})
	}
	result := event.Result{Reason: spec.ModelError, IsError: true, Detail: "zebra", Text: "zebra"}
	keep := func(s string) string { return s }
	for _, texts := range []func(string) string{nil, keep} {
		l, f := newLogSpans("r", "root", texts), runFacts{trace: traceOf("r", "")}
		var sent strings.Builder
		for _, e := range events {
			for _, s := range l.read(e) {
				sent.WriteString(f.encode(s, keep).String())
			}
		}
		sent.WriteString(f.encode(runSpan(event.Published{Run: "r"}, result, texts), keep).String())
		if got := strings.Count(sent.String(), "zebra"); (got > 0) != (texts != nil) || strings.Count(sent.String(), "execute_tool "+otherTool) != 1 {
			t.Errorf("%d texts:\n%s", got, &sent)
		}
	}
}

// The usage of a span is encoded in one order, so that two nodes send the same bytes; short attributes are masked.
func TestASpanIsEncodedAlikeEachTime(t *testing.T) {
	t.Parallel()
	f := runFacts{trace: traceOf("r", "")}
	encode := func() string {
		s := span{run: "r", id: runSpanID("r")}
		s.setUsage(model.Usage{Reasoning: 1, CacheRead: 2, CacheCreation: 3})
		s.set(keyToolName, "a-secret")
		var keys []string
		for _, a := range f.encode(s, func(text string) string { return strings.ReplaceAll(text, "secret", "***") }).Attributes {
			keys = append(keys, a.Key+"="+a.Value.GetStringValue())
		}
		return strings.Join(keys, " ")
	}
	first := encode()
	if !strings.HasSuffix(first, " "+keyToolName+"=a-***") {
		t.Error(first)
	}
	for range 20 {
		if again := encode(); again != first {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

// Hostile names and numbers in events make no span that cannot be encoded.
func TestAttackSpansOfHostileEvents(t *testing.T) {
	t.Parallel()
	name := "\xff\x00" + strings.Repeat("x", 1<<20)
	l := newLogSpans("r", "root", nil)
	f := runFacts{trace: traceOf("r", "")}
	events := []event.Published{{ID: "r.root#1.0", Seq: 1, Kind: event.KindAgentStarted, Data: event.AgentStarted{Name: name, Model: name}},
		{ID: "none", Seq: 2, TS: "none", Kind: event.KindToolFinished, Data: event.ToolCall{Call: name, Tool: name}},
		{ID: "r.root#3.0", Seq: 3, TS: event.FormatStamp(-1), Kind: event.KindAgentFinished, Data: event.AgentFinished{Name: name, Reason: spec.Reason(name), Detail: name}}}
	spans := 0
	for _, e := range events {
		for _, s := range l.read(e) {
			spans++
			p := f.encode(s, func(s string) string { return s })
			if n := len(p.String()); n > 64<<10 {
				t.Errorf("a span of %d bytes", n)
			}
		}
	}
	if spans != 2 {
		t.Errorf("%d spans", spans)
	}
}
