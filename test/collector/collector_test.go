package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

// patience is how long a process may take on a busy machine.
const patience = 2 * time.Minute

// spanSink is the exporter of the Collector's pipeline.
type spanSink struct {
	component.StartFunc
	component.ShutdownFunc
	mu    sync.Mutex
	spans map[string]ptrace.Span // by id: after a takeover a span may come twice
	nodes map[string]bool        // that sent them
	came  chan struct{}          // each time some came
}

func (s *spanSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *spanSink) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
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
	select {
	case s.came <- struct{}{}:
	default:
	}
	return nil
}

// startCollector starts a Collector with a receiver of OTLP over HTTP, and returns what it receives and its address.
func startCollector(t *testing.T) (*spanSink, string) {
	t.Helper()
	sink := &spanSink{spans: map[string]ptrace.Span{}, nodes: map[string]bool{}, came: make(chan struct{}, 1)}
	kind := component.MustNewType("sink")
	out := exporter.NewFactory(kind, func() component.Config { return &struct{}{} },
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) { return sink, nil }, component.StabilityLevelStable))
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
 service: {pipelines: {traces: {receivers: [otlp], exporters: [sink]}}}}`, address)},
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
			return sink, "http://" + address
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
	h.env = []string{"HOME=" + h.path, "PATH=" + os.Getenv("PATH"), "OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_SERVICE_NAME=troupe"}
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
// parent there.
//
//behaviour:shows I3
func TestTheCollectorReceivesOneConnectedTrace(t *testing.T) {
	sink, endpoint := startCollector(t)
	h := newHome(t, endpoint)
	h.write("agents/boss.md", "---\nname: boss\ndescription: leads\ntools: delegate\n---\nYou lead.\n")
	h.write("agents/hand.md", "---\nname: hand\ndescription: works\n---\nYou work.\n")
	h.write("tree.yaml", "agents:\n  boss:\n    - calls: ["+strings.Repeat("{name: delegate, args: {agent: hand, task: work}}, ", children)+"]\n    - text: all done\n  hand: [{text: done}]\n")
	h.startNodes()
	run := h.command("run", "-q", "--max-children", fmt.Sprint(children), "--agents", "agents", "--agent", "boss", "-m", "script/tree.yaml", "go")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for end := time.After(patience); ; {
		sink.mu.Lock()
		n := len(sink.spans)
		sink.mu.Unlock()
		if n >= spans {
			break
		}
		select {
		case <-sink.came:
		case <-end:
			t.Fatalf("%d spans came, expected %d", n, spans)
		}
	}
	sink.checkTrace(t)
}

func (s *spanSink) checkTrace(t *testing.T) {
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
