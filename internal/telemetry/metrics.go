package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	dto "github.com/prometheus/client_model/go"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// MetricsConfig is the configuration of a MetricsExporter. All fields but Logger are required.
type MetricsConfig struct {
	Settings
	Env           func(string) string
	Node, Version string
	// Gather returns the metrics as they are now. They count since Began.
	Gather func() ([]*dto.MetricFamily, error)
	Began  time.Time
	Logger *slog.Logger // default: discard
}

// MetricsExporter sends the metrics of one node at intervals. Each request has all of them, counted since the start of
// the node, so a request that fails loses nothing that the next one does not have.
type MetricsExporter struct {
	cfg    MetricsConfig
	target target
	client *httpClient

	closing   chan struct{}
	closeOnce sync.Once
	end       context.CancelFunc
	work      sync.WaitGroup
	failing   bool // the operator knows that the receiver does not take them
}

// SendsMetrics reports whether the settings or the environment name a receiver of metrics that troupe can use.
func SendsMetrics(s Settings, getenv func(string) string) bool {
	t, err := resolveTarget(s, getenv, ofMetrics)
	return err == nil && t.url != ""
}

// StartMetrics starts a MetricsExporter; nil, if neither the settings nor the environment name a receiver.
func StartMetrics(cfg MetricsConfig) (*MetricsExporter, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t, err := resolveTarget(cfg.Settings, cfg.Env, ofMetrics)
	if err != nil || t.url == "" {
		return nil, err
	}
	x := &MetricsExporter{cfg: cfg, target: t, client: newHTTPClient(t), closing: make(chan struct{})}
	var life context.Context
	life, x.end = context.WithCancel(context.Background())
	x.work.Go(func() { x.run(life) })
	return x, nil
}

// Close sends the metrics a last time, for closeMax at most.
func (x *MetricsExporter) Close() {
	x.closeOnce.Do(func() { close(x.closing) })
	defer time.AfterFunc(closeMax, x.end).Stop()
	x.work.Wait()
	x.end()
	x.client.client.CloseIdleConnections()
}

// run sends the metrics at each interval, and when the node ends.
func (x *MetricsExporter) run(ctx context.Context) {
	tick := time.NewTicker(x.target.metricsEvery)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-x.closing:
			last = true
		}
		err := x.send(ctx)
		if x.report(err); errors.Is(err, errNotServed) {
			return
		}
	}
}

// report logs once that the receiver does not take the metrics, and once that it does again.
func (x *MetricsExporter) report(err error) {
	to := x.target.shownURL()
	switch {
	case errors.Is(err, errNotServed):
		x.cfg.Logger.Info("the receiver takes no metrics; they are not sent any more (OTEL_METRICS_EXPORTER=none says so at once)", "receiver", to, "error", err)
	case err != nil && !x.failing:
		x.failing = true
		x.cfg.Logger.Warn("metrics are not sent", "receiver", to, "error", err)
	case err == nil && x.failing:
		x.failing = false
		x.cfg.Logger.Info("metrics are sent again", "receiver", to)
	}
}

// send sends the metrics as they are now.
func (x *MetricsExporter) send(ctx context.Context) error {
	families, err := x.cfg.Gather()
	if err != nil {
		return fmt.Errorf("telemetry: metrics: %w", err)
	}
	body, err := proto.Marshal(x.encode(families, time.Now()))
	if err != nil {
		return fmt.Errorf("telemetry: encode metrics: %w", err)
	}
	rejected, err := x.client.post(ctx, body)
	if err == nil && rejected > 0 {
		err = errRejected
	}
	return err
}

// encode makes the request for OTLP.
func (x *MetricsExporter) encode(families []*dto.MetricFamily, now time.Time) *metricspb.MetricsData {
	encoder := metricEncoder{began: uint64(x.cfg.Began.UnixNano()), now: uint64(now.UnixNano())}
	list := make([]*metricspb.Metric, 0, len(families))
	for _, f := range families {
		list = append(list, encoder.encode(f))
	}
	described := Config{Node: x.cfg.Node, Version: x.cfg.Version}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: x.target.resource(&described),
		ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: scope(x.cfg.Version), Metrics: list}}}}}
}
