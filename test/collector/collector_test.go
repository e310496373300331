package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

// patience is how long a process may take on a busy machine.
const patience = 2 * time.Minute

// sink is the exporter of the Collector's pipelines.
type sink struct {
	component.StartFunc
	component.ShutdownFunc
	mu      sync.Mutex
	spans   map[string]ptrace.Span        // by id: after a takeover a span may come twice
	nodes   map[string]bool               // that sent them
	metrics map[string]map[string]float64 // the newest value or count, by the name of the metric and the node
	came    chan struct{}                 // each time some came
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range md.ResourceMetrics().All() {
		node, _ := resource.Resource().Attributes().Get("service.instance.id")
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				if s.metrics[m.Name()] == nil {
					s.metrics[m.Name()] = map[string]float64{}
				}
				s.metrics[m.Name()][node.AsString()] = sumPoints(m)
			}
		}
	}
	s.announce()
	return nil
}

// sumPoints adds the values of a metric; of a histogram, its counts.
func sumPoints(m pmetric.Metric) (sum float64) {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			sum += p.DoubleValue()
		}
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			sum += p.DoubleValue()
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			sum += float64(p.Count())
		}
	}
	return sum
}

// total is the value of a metric on all nodes.
func (s *sink) total(name string) (sum float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.metrics[name] {
		sum += v
	}
	return sum
}

// announce says that some came. The caller holds mu.
func (s *sink) announce() {
	select {
	case s.came <- struct{}{}:
	default:
	}
}

func (s *sink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range td.ResourceSpans().All() {
		if id, ok := resource.Resource().Attributes().Get("service.instance.id"); ok {
			s.nodes[id.Str()] = true
		}
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				kept := ptrace.NewSpan()
				span.CopyTo(kept)
				s.spans[span.SpanID().String()] = kept
			}
		}
	}
	s.announce()
	return nil
}

// startCollector starts a Collector with a receiver of OTLP over HTTP, and returns what it receives and its address.
func startCollector(t *testing.T) (*sink, string) {
	t.Helper()
	got := &sink{spans: map[string]ptrace.Span{}, nodes: map[string]bool{}, metrics: map[string]map[string]float64{}, came: make(chan struct{}, 1)}
	kind := component.MustNewType("sink")
	out := exporter.NewFactory(kind, func() component.Config { return &struct{}{} },
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) { return got, nil }, component.StabilityLevelStable),
		exporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) { return got, nil }, component.StabilityLevelStable))
	in := otlpreceiver.NewFactory()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(), DisableGracefulShutdown: true, SkipSettingGRPCLogger: true,
		Factories: func() (otelcol.Factories, error) {
			return otelcol.Factories{Receivers: map[component.Type]receiver.Factory{in.Type(): in}, Exporters: map[component.Type]exporter.Factory{kind: out}, Telemetry: telemetry.NewFactory(func() component.Config { return &struct{}{} })}, nil
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
			URIs: []string{"yaml:" + fmt.Sprintf(`{receivers: {otlp: {protocols: {http: {endpoint: %q}}}}, exporters: {sink: {}},
 service: {pipelines: {traces: {receivers: [otlp], exporters: [sink]}, metrics: {receivers: [otlp], exporters: [sink]}}}}`, address)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- collector.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		collector.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return got, "http://" + address
		}
		if time.Now().After(end) {
			t.Fatal("the Collector does not listen")
		}
	}
}

// home is a user's account with the programs of this tree.
type home struct {
	t    *testing.T
	bin  string
	path string
	env  []string
}

func newHome(t *testing.T, endpoint string) home {
	t.Helper()
	h := home{t: t, bin: t.TempDir(), path: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", h.bin+"/", "./cmd/troupe", "./cmd/troupe-node")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.env = []string{"HOME=" + h.path, "PATH=" + os.Getenv("PATH"), "OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_SERVICE_NAME=troupe", "OTEL_METRIC_EXPORT_INTERVAL=1000"}
	return h
}

func (h home) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(h.t.Context(), filepath.Join(h.bin, "troupe"), args...)
	c.Dir, c.Env = h.path, h.env
	return c
}

// startNodes starts two nodes that share the shards. They end with the test.
func (h home) startNodes() {
	h.t.Helper()
	up := h.command("up", "--nodes", "2", "--lazy", "--root", h.path)
	log, err := os.Create(filepath.Join(h.path, "up.log"))
	if err != nil {
		h.t.Fatal(err)
	}
	up.Stdout, up.Stderr = log, log
	up.Cancel = func() error { return up.Process.Signal(syscall.SIGTERM) }
	if err := up.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = up.Wait()                          // a signal ends it
	})
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		out, _ := h.command("nodes", "list", "-o", "json").Output() // nobody may answer yet
		var nodes []struct {
			Shards []int `json:"shards"`
		}
		if json.Unmarshal(out, &nodes) == nil && len(nodes) == 2 && len(nodes[0].Shards) > 0 && len(nodes[0].Shards)+len(nodes[1].Shards) == 64 {
			return
		}
	}
	text, _ := os.ReadFile(log.Name()) // for the message only
	h.t.Fatalf("no two nodes:\n%s", text)
}

// write writes a file of the user.
func (h home) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.path, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

const (
	children = 12
	spans    = 1 + 1 + children + (2 + children) + children // the run, its agents, their model calls, the calls of delegate
)

// TestTheCollectorReceivesOneConnectedTrace: all spans of a run with children on two nodes have one trace, and each has its
// parent there. The metrics of both nodes come to the same receiver, and together they count the run.
//
//behaviour:shows I3
func TestTheCollectorReceivesOneConnectedTrace(t *testing.T) {
	got, endpoint := startCollector(t)
	h := newHome(t, endpoint)
	h.write("agents/boss.md", "---\nname: boss\ndescription: leads\ntools: delegate\n---\nYou lead.\n")
	h.write("agents/hand.md", "---\nname: hand\ndescription: works\n---\nYou work.\n")
	h.write("tree.yaml", "agents:\n  boss:\n    - calls: ["+strings.Repeat("{name: delegate, args: {agent: hand, task: work}}, ", children)+"]\n    - text: all done\n  hand: [{text: done}]\n")
	h.startNodes()
	run := h.command("run", "-q", "--max-children", fmt.Sprint(children), "--agents", "agents", "--agent", "boss", "-m", "script/tree.yaml", "go")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got.await(t, fmt.Sprintf("%d spans", spans), func() bool { return got.countSpans() >= spans })
	got.checkTrace(t)
	got.checkMetrics(t)
}

// await waits until what came satisfies a condition.
func (s *sink) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.After(patience); !holds(); {
		select {
		case <-s.came:
		case <-end:
			t.Fatalf("the Collector did not receive %s: %d spans, metrics %v", what, s.countSpans(), s.metricNames())
		}
	}
}

func (s *sink) countSpans() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spans)
}

// checkMetrics compares the metrics of both nodes with the run.
func (s *sink) checkMetrics(t *testing.T) {
	t.Helper()
	for name, want := range map[string]float64{
		"troupe_runs_finished_total":          1,
		"troupe_delegations_total":            children,
		"gen_ai.client.operation.duration":    2 + children,
		"gen_ai.client.token.usage":           2 * (2 + children),
		"gen_ai.invoke_agent.duration":        1 + children,
		"gen_ai.invoke_agent.inference_calls": 1 + children,
		"gen_ai.workflow.duration":            1,
		"troupe_build_info":                   2,
		"troupe_logs_writable":                2,
	} {
		s.await(t, fmt.Sprintf("%s %v", name, want), func() bool { return s.total(name) >= want })
		if got := s.total(name); got != want {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
	t.Logf("metrics: %v", s.metricNames())
}

func (s *sink) metricNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.metrics))
}

func (s *sink) checkTrace(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	traces, names, roots := map[string]bool{}, map[string]int{}, 0
	for id, span := range s.spans {
		traces[span.TraceID().String()] = true
		kind, _, _ := strings.Cut(span.Name(), " ")
		names[kind]++
		if span.ParentSpanID().IsEmpty() {
			roots++
		} else if _, ok := s.spans[span.ParentSpanID().String()]; !ok {
			t.Errorf("span %s (%s) has no parent here", id, span.Name())
		}
	}
	t.Logf("%d spans of %d nodes in %d traces: %v", len(s.spans), len(s.nodes), len(traces), names)
	if len(traces) != 1 || roots != 1 || len(s.nodes) != 2 {
		t.Errorf("%d traces, %d roots, nodes %v", len(traces), roots, s.nodes)
	}
	if names["invoke_workflow"] != 1 || names["invoke_agent"] != 1+children || names["chat"] != 2+children || names["execute_tool"] != children {
		t.Errorf("spans: %v", names)
	}
}
