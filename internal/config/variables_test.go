package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
)

var update = flag.Bool("update", false, "write the table of variables into docs/cli.md")

// The variables of other programs and of providers that troupe reads.
var foreignVariables = []Variable{
	{"ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL", "how to reach Anthropic, or a gateway that speaks its API"},
	{"OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_API", "how to reach OpenAI, or a gateway; OPENAI_API is responses or chat"},
	{"GEMINI_API_KEY, GOOGLE_API_KEY, GOOGLE_GEMINI_BASE_URL", "how to reach Gemini"},
	{"OLLAMA_HOST", "where Ollama answers (default 127.0.0.1:11434)"},
	{"NATS_URL, NATS_CONTEXT, NATS_CREDS, NATS_NKEY, NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CERT, NATS_KEY, NATS_CA, NATS_INBOX_PREFIX", "the server, as for the nats CLI"},
	{"CLAUDE_CONFIG_DIR", "where Claude Code keeps its user's own agents, rules, hooks and skills (default ~/.claude)"},
	{"NO_COLOR, CLICOLOR_FORCE, TERM", "colours of a terminal"},
	{"XDG_STATE_HOME, XDG_CONFIG_HOME", "the state directory, and the directory of the user's settings"},
	{"TRACEPARENT", "the trace that a run belongs to"},
	{"OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "the receiver of spans and metrics, if no setting names one; the first gets `/v1/traces` and `/v1/metrics` appended ([telemetry.md](telemetry.md))"},
	{"OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "`http/protobuf` only"},
	{"OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_METRICS_HEADERS", "headers (masked everywhere), milliseconds, `gzip` or `none`; each also with `OTLP_TRACES_` or `OTLP_METRICS_`"},
	{"OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY", "files for TLS with the receiver"},
	{"OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG", "which traces are sent"},
	{"OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES", "what describes the node in spans and metrics"},
	{"OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "milliseconds between requests, spans that wait, spans of a request"},
	{"OTEL_METRIC_EXPORT_INTERVAL", "milliseconds between two requests with metrics"},
	{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true: spans have the texts of people, models and tools"},
	{"OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_SDK_DISABLED", "`none`, `none` or `prometheus`, `true`: no spans, no metrics, neither are sent"},
}

// The table has each variable of OpenTelemetry that the telemetry of a node reads.
func TestVariablesOfTelemetryAreDocumented(t *testing.T) {
	sources, err := filepath.Glob("../telemetry/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	var names string
	for _, v := range foreignVariables {
		names += v.Name + ", "
	}
	for _, file := range sources {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`"(OTEL_[A-Z_]*[A-Z])"`).FindAllStringSubmatch(string(raw), -1) {
			if !strings.Contains(names, found[1]+", ") {
				t.Errorf("%s reads %s, which docs/cli.md does not name", file, found[1])
			}
		}
	}
}

// A variable that bus.Options reads can be set: checkVariables knows it.
func TestVariablesOfConnectionsAreKnown(t *testing.T) {
	bus.Options{}.FromEnv(func(name string) string {
		if err := checkVariables([]string{name + "=x"}); err != nil {
			t.Error(err)
		}
		return ""
	})
}

// Every variable stands in the table of docs/cli.md; -update writes it.
func TestVariablesAreDocumented(t *testing.T) {
	const file, begin, end = "../../docs/cli.md", "<!-- variables: begin (checked by internal/config) -->\n", "<!-- variables: end -->"
	var b strings.Builder
	b.WriteString("| variable | meaning |\n|---|---|\n")
	for _, v := range append(foreignVariables, Variables()...) {
		if v.Meaning == "" {
			t.Errorf("%s has no description", v.Name)
		}
		if strings.Contains(v.Meaning, "this file") || strings.Contains(v.Meaning, "own file") || strings.Contains(v.Meaning, FileName) {
			t.Errorf("%s: the description is about a settings file: %s", v.Name, v.Meaning)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(v.Name, ", ", "` `"), strings.ReplaceAll(v.Meaning, "|", "\\|"))
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	if table == b.String() {
		return
	}
	if !*update {
		t.Fatalf("%s: the table of variables is not fresh: run this test with -update", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+b.String()+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A misspelled variable is an error with what was probably meant; those of commands and connections are none.
func TestUnknownVariablesAreRefused(t *testing.T) {
	load := func(environ ...string) error {
		_, err := Load(SettingSources{User: t.TempDir() + "/none", Getenv: func(string) string { return "" }, Environ: func() []string { return environ }})
		return err
	}
	for _, fine := range []string{"TROUPE_MODEL=x", "TROUPE_RUN=r", "TROUPE_SERVICE_PASSWORD=p", "TROUPE_MODLE=", "OTHER=1"} {
		if err := load(fine); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
	for wrong, meant := range map[string]string{"TROUPE_MAXTURNS=5": "TROUPE_MAX_TURNS", "TROUPE_MODLE=x": "TROUPE_MODEL", "TROUPE_STOREDIR=/x": "TROUPE_STORE_DIR"} {
		if err := load(wrong); err == nil || !strings.Contains(err.Error(), "did you mean "+meant+"?") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
