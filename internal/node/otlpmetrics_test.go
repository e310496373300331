package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// The receiver of OTLP gets the metrics of a node that serves no HTTP, under the names of the semantic conventions, at
// the end of the node too.
//
//behaviour:shows I3
func TestMetricsGoToTheReceiverOfSpans(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	receiver := newSpanReceiver(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Telemetry.Endpoint = receiver.URL })
	c := connectClient(t, h)
	waitFinished(t, c, beginRun(t, c, client.RunRequest{Model: writeScript(t, family)}), spec.Completed)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if len(receiver.metrics) != 1 {
		t.Fatalf("%d requests", len(receiver.metrics))
	}
	resource := receiver.metrics[0].ResourceMetrics[0]
	if got := attributeText(resource.Resource.Attributes, "service.instance.id"); got != "host" {
		t.Errorf("the node is %q", got)
	}
	named := map[string]*metricspb.Metric{}
	for _, m := range resource.ScopeMetrics[0].Metrics {
		named[m.Name] = m
	}
	finished := named["troupe_runs_finished_total"].GetSum()
	if finished == nil || !finished.IsMonotonic || finished.DataPoints[0].GetAsDouble() != 1 || finished.DataPoints[0].StartTimeUnixNano == 0 ||
		attributeText(finished.DataPoints[0].Attributes, "stop_reason") != "completed" {
		t.Errorf("runs that ended: %v", finished)
	}
	tokens := named["gen_ai.client.token.usage"]
	isInput := func(p *metricspb.HistogramDataPoint) bool {
		return attributeText(p.Attributes, "gen_ai.token.type") == "input" && attributeText(p.Attributes, "gen_ai.operation.name") == "chat"
	}
	points := tokens.GetHistogram().GetDataPoints()
	if i := slices.IndexFunc(points, isInput); i < 0 || tokens.Unit != "{token}" || points[i].Count < 4 || len(points[i].BucketCounts) != len(points[i].ExplicitBounds)+1 {
		t.Errorf("tokens: %v", tokens)
	}
	if g := named["troupe_logs_writable"].GetGauge(); g == nil || len(g.DataPoints) != 1 {
		t.Errorf("a gauge: %v", named["troupe_logs_writable"])
	}
}

// A start that fails before the gauges can be read sends no metrics and logs nothing about them.
func TestAFailedStartSendsNoMetrics(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	receiver := newSpanReceiver(t)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	var log lockedBuffer
	env := func(name string) string {
		if name == "OTEL_TRACES_EXPORTER" { // read when the export of spans starts: what follows fails
			cancel()
		}
		return ""
	}
	cfg := Config{StartServer: embedded.StartServer, StateDir: t.TempDir(), DontListen: true, Env: env, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	cfg.Telemetry.Endpoint = receiver.URL
	if h, err := Start(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v %v", h, err)
	}
	if text := string(log.copyBytes()); strings.Contains(text, "metrics") || strings.Contains(text, "panic") {
		t.Errorf("logged: %s", text)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if len(receiver.metrics) > 0 {
		t.Errorf("%d requests with metrics", len(receiver.metrics))
	}
}
