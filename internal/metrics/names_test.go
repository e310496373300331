package metrics

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

var metricName = regexp.MustCompile(`\b(?:troupe|gen_ai|mcp)_[a-z_]+\b`)

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The page of metrics has each, and the rules and the dashboard use no other.
func TestPageRulesAndDashboardUseTheMetricsThatExist(t *testing.T) {
	page, known := readFile(t, "..", "..", "docs", "metrics.md"), map[string]bool{}
	for _, name := range metricName.FindAllString(readFile(t, "names.go"), -1) {
		if name == labelMCPMethod {
			continue
		}
		known[name] = true
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
	for _, file := range []string{"../../deploy/prometheus/alerts.yml", "../../deploy/prometheus/alerts_test.yml", "../../deploy/grafana/troupe.json"} {
		for _, name := range metricName.FindAllString(readFile(t, file), -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !known[name] && !known[base] {
				t.Errorf("%s uses %s, which is no metric", file, name)
			}
		}
	}
}

// Names that come from models and files are bounded: a hostile one takes no memory and splits no line.
func TestAttackLabelsAreBounded(t *testing.T) {
	r := New(Config{Read: func() Gauges { return Gauges{} }})
	for i := range 5 * valuesMax {
		name := strings.Repeat("x", i) + "\xff\n\"}"
		r.Observe(event.Published{Kind: event.KindToolFinished, Data: event.ToolCall{Tool: name}})
	}
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != toolCalls {
			continue
		}
		if n := len(f.GetMetric()); n > valuesMax+1 {
			t.Errorf("%d values", n)
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if len(l.GetValue()) > valueBytesMax {
					t.Errorf("a value of %d bytes", len(l.GetValue()))
				}
			}
		}
	}
}

// Names of tools and models that were made up, and of which no call succeeded, take no place from real ones.
func TestAttackInventedNamesTakeNoPlace(t *testing.T) {
	r := New(Config{Read: func() Gauges { return Gauges{} }})
	for i := range 2 * valuesMax {
		name := "invented" + strconv.Itoa(i)
		r.Observe(event.Published{Kind: event.KindToolFinished, Data: event.ToolCall{Tool: name, Error: true}})
		r.Observe(event.Published{Kind: event.KindToolDenied, Data: event.ToolDecided{Tool: name}})
		r.Observe(event.Published{Kind: event.KindModelRetry, Data: event.ModelFinished{Model: "ollama/" + name, Error: "network"}})
	}
	for range 2 { // the second fails, and is counted under its name too
		r.Observe(event.Published{Kind: event.KindToolFinished, Data: event.ToolCall{Tool: "shell"}})
		r.Observe(event.Published{Kind: event.KindModelFinished, Data: event.ModelFinished{Model: "openai/m"}})
	}
	r.Observe(event.Published{Kind: event.KindToolFinished, Data: event.ToolCall{Tool: "shell", Error: true}})
	long := strings.Repeat("x", 2*valueBytesMax)
	r.Observe(event.Published{Kind: event.KindToolFinished, Data: event.ToolCall{Tool: long}})
	r.Observe(event.Published{Kind: event.KindToolDenied, Data: event.ToolDecided{Tool: long}})
	written := httptest.NewRecorder()
	r.ServeHTTP(written, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		`troupe_tool_calls_total{outcome="ok",tool="shell"} 2`, `troupe_tool_calls_total{outcome="error",tool="shell"} 1`,
		`troupe_tool_calls_total{outcome="denied",tool="` + long[:valueBytesMax] + `"} 1`,
		`troupe_provider_requests_total{code="ok",model="m",provider="openai"} 2`, `troupe_provider_requests_total{code="network",model="other",provider="ollama"} 400`,
	} {
		if !strings.Contains(written.Body.String(), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if strings.Contains(written.Body.String(), "invented") {
		t.Error("an invented name is a value")
	}
}

// What two events tell together: how long a delegation waited, how a text streamed, and which actors began again.
func TestTimesBetweenEvents(t *testing.T) {
	r := New(Config{Read: func() Gauges { return Gauges{} }})
	see := func(agent string, kind event.Kind, at string, data any) {
		r.Observe(event.Published{Run: "r", Agent: agent, TS: at, Kind: kind, Data: data})
	}
	see("root", event.KindAgentStarted, "2026-01-01T00:00:00Z", event.AgentStarted{Name: "boss"})
	see("root", event.KindDelegationRequested, "2026-01-01T00:00:01Z", event.ToolCall{Child: "root-1-0"})
	see("root-1-0", event.KindAgentStarted, "2026-01-01T00:00:04Z", event.AgentStarted{Name: "hand"})
	see("root", event.KindDelegationRequested, "2026-01-01T00:00:01Z", event.ToolCall{Child: "root-1-1"}) // it starts on another node
	see("root", event.KindDelegationFinished, "2026-01-01T00:00:02Z", event.ToolCall{Child: "root-1-1"})
	see("root-1-1", event.KindAgentStarted, "2026-01-01T00:00:04Z", event.AgentStarted{Name: "hand"}) // read again after a takeover
	see("root", event.KindModelStarted, "2026-01-01T00:00:05Z", event.ModelStarted{Model: "openai/m"})
	for range 3 {
		see("root", event.KindMessageDelta, "2026-01-01T00:00:06Z", event.Delta{Text: "x"})
	}
	see("root", event.KindModelFinished, "2026-01-01T00:00:07Z", event.ModelFinished{Model: "openai/m", TookMS: 3_600_000})
	see("root", event.KindAgentResumed, "2026-01-01T00:00:08Z", event.AgentResumed{Phase: "calling"})
	see("root", event.KindAgentRestarted, "2026-01-01T00:00:08Z", event.AgentResumed{Phase: "calling"})
	see("root", event.KindToolFinished, "2026-01-01T00:00:09Z", event.ToolCall{Tool: "mcp__files__read_resource", TookMS: 250})
	r.ObserveMCPRequest("tools/call", "run", time.Second, true)
	written := httptest.NewRecorder()
	r.ServeHTTP(written, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		"troupe_delegation_queue_wait_seconds_sum 3\n", `troupe_actor_restarts_total{phase="calling"} 1`,
		`gen_ai_client_operation_time_to_first_chunk_seconds_sum{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="m"} 3`,
		`gen_ai_client_operation_time_per_output_chunk_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="m"} 2`,
		`mcp_client_operation_duration_seconds_sum{error_type="",gen_ai_tool_name="mcp__files__read_resource",mcp_method_name="resources/read"} 0.25`,
		`mcp_server_operation_duration_seconds_sum{error_type="tool_error",gen_ai_tool_name="run",mcp_method_name="tools/call"} 1`,
	} {
		if !strings.Contains(written.Body.String(), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// Actors are counted by the name of the agent as long as they are in memory, and a tree of many names has no more series
// than other labels: those of a hostile tree are added.
func TestAttackActorsInMemoryAreCountedByFewNames(t *testing.T) {
	r := New(Config{Read: func() Gauges { return Gauges{} }})
	for i := range 5 * valuesMax {
		at := mailbox.At("r", "root-"+strconv.Itoa(i))
		r.ActorAlive(at, 1)
		r.AgentNamed(at, "name "+strconv.Itoa(i))
	}
	r.ActorAlive(mailbox.At("r", mailbox.Super), 1)
	counts := r.countActors()
	if len(counts) != valuesMax+2 || counts[valueOfTooMany] != 4*valuesMax || counts[""] != 1 {
		t.Errorf("%d names, %d of others, %d without", len(counts), counts[valueOfTooMany], counts[""])
	}
	for i := range 5 * valuesMax {
		at := mailbox.At("r", "root-"+strconv.Itoa(i))
		r.ActorAlive(at, 1) // another shell, after a crash or a new claim
		r.ActorAlive(at, -1)
		r.ActorAlive(at, -1)
		r.AgentNamed(at, "late")
	}
	if counts = r.countActors(); len(counts) != 1 || counts[""] != 1 || len(r.actors) != 1 {
		t.Errorf("%v", counts)
	}
}
