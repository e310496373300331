package telemetry

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

func TestWhereMetricsGo(t *testing.T) {
	t.Parallel()
	const base, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	for _, c := range []struct {
		settings  Settings
		variables map[string]string
		want      string // "!": an error
	}{
		{want: ""},
		{variables: map[string]string{base: "http://a:4318"}, want: "http://a:4318/v1/metrics"},
		{variables: map[string]string{base: "http://a", own: "http://b/own"}, want: "http://b/own"},
		{variables: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/own"}, want: ""},
		{Settings{Endpoint: "https://c/x/v1/traces"}, nil, "https://c/x/v1/metrics"},
		{Settings{Endpoint: "https://c/v1/metrics"}, nil, "https://c/v1/metrics"},
		{variables: map[string]string{base: "http://a/v1/metrics"}, want: "http://a/v1/metrics"},
		{Settings{Endpoint: "https://c"}, map[string]string{"OTEL_METRICS_EXPORTER": "none"}, ""},
		{Settings{Endpoint: "https://c"}, map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, ""},
		{Settings{Endpoint: "https://c"}, map[string]string{"OTEL_TRACES_EXPORTER": "none"}, "https://c/v1/metrics"},
		{variables: map[string]string{"OTEL_METRICS_EXPORTER": "otlp"}, want: "http://localhost:4318/v1/metrics"},
		{variables: map[string]string{base: "http://a", "OTEL_METRICS_EXPORTER": "console"}, want: "!"},
		{variables: map[string]string{base: "http://a", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"}, want: "!"},
		{variables: map[string]string{base: "http://a", "OTEL_METRIC_EXPORT_INTERVAL": "0"}, want: "!"},
	} {
		got, err := resolveTarget(c.settings, func(key string) string { return c.variables[key] }, ofMetrics)
		if sends := SendsMetrics(c.settings, func(key string) string { return c.variables[key] }); sends != (c.want != "" && c.want != "!") {
			t.Errorf("%+v: sends %v", c, sends)
		}
		if c.want == "!" {
			if !errors.Is(err, ErrSettings) {
				t.Errorf("%+v: %q %v", c, got.url, err)
			}
		} else if err != nil || got.url != c.want {
			t.Errorf("%+v: %q %v", c, got.url, err)
		}
	}
}

// startTestMetrics starts an exporter of one histogram with the values 1, 2 and 9.
func startTestMetrics(t *testing.T, url string, variables map[string]string) (*MetricsExporter, *safeLog) {
	t.Helper()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "A histogram.", Buckets: []float64{1, 4}})
	registry, log := prometheus.NewRegistry(), &safeLog{}
	registry.MustRegister(h)
	for _, v := range []float64{1, 2, 9} {
		h.Observe(v)
	}
	x, err := StartMetrics(MetricsConfig{Settings: Settings{Endpoint: url}, Env: func(key string) string { return variables[key] }, Node: "n", Version: "v",
		Gather: registry.Gather, Began: time.Unix(1, 0), Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return x, log
}

// A bucket of OTLP counts its own values only.
func TestMetricsAreEncoded(t *testing.T) {
	t.Parallel()
	x, _ := startTestMetrics(t, "http://127.0.0.1:1", nil)
	defer x.Close()
	families, err := x.cfg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	m := x.encode(families, time.Unix(2, 0)).ResourceMetrics[0].ScopeMetrics[0].Metrics[0]
	p := m.GetHistogram().GetDataPoints()[0]
	if m.Name != "h" || m.Description != "A histogram." || p.Count != 3 || p.GetSum() != 12 || p.StartTimeUnixNano != 1e9 || p.TimeUnixNano != 2e9 ||
		m.GetHistogram().AggregationTemporality != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		t.Errorf("%v", m)
	}
	if len(p.BucketCounts) != 3 || p.BucketCounts[0] != 1 || p.BucketCounts[1] != 1 || p.BucketCounts[2] != 1 || len(p.ExplicitBounds) != 2 {
		t.Errorf("buckets: %v", p)
	}
}

// The operator hears once that the receiver fails, and once that it works; one that takes no metrics is asked once.
func TestReceiversThatFailForMetrics(t *testing.T) {
	t.Parallel()
	var status, requests atomic.Int64
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if requests.Add(1); q.URL.Path != "/v1/metrics" || q.Header.Get("X-Key") != "secret" {
			t.Errorf("%s %v", q.URL, q.Header)
		}
		w.WriteHeader(int(status.Load()))
	}))
	defer r.Close()
	often := map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "1", "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "x-key=secret"}
	status.Store(http.StatusServiceUnavailable)
	x, log := startTestMetrics(t, r.URL, often)
	waitFor(t, "some requests", func() bool { return requests.Load() > 3 })
	status.Store(http.StatusOK)
	waitFor(t, "a line that it works", func() bool { return strings.Contains(log.String(), "metrics are sent again") })
	x.Close()
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines: %s", n, log)
	}
	status.Store(http.StatusNotFound)
	requests.Store(0)
	x, log = startTestMetrics(t, r.URL, often)
	waitFor(t, "a line that it takes none", func() bool { return strings.Contains(log.String(), "takes no metrics") })
	x.Close()
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests to a receiver that takes no metrics", n)
	}
}

// The end of a node does not wait for a receiver that does not answer.
func TestDeadReceiverOfMetrics(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	dead := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer dead.Close()
	defer close(release)
	x, _ := startTestMetrics(t, dead.URL, nil)
	began := time.Now()
	x.Close()
	if took := time.Since(began); took > closeMax+5*time.Second {
		t.Errorf("the end took %v", took)
	}
}
