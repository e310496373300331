package telemetry

import (
	dto "github.com/prometheus/client_model/go"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/troupe-run/troupe/internal/metrics"
)

// metricEncoder makes metrics of OTLP of those for Prometheus. Metrics and attributes that the semantic conventions name
// have their names; the others keep those of Prometheus, so that one page describes both.
type metricEncoder struct{ began, now uint64 }

func (m metricEncoder) encode(f *dto.MetricFamily) *metricspb.Metric {
	name, unit := metrics.ConventionMetric(f.GetName())
	out := &metricspb.Metric{Name: name, Unit: unit, Description: f.GetHelp()}
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch f.GetType() {
	case dto.MetricType_HISTOGRAM:
		h := &metricspb.Histogram{AggregationTemporality: cumulative}
		for _, one := range f.GetMetric() {
			h.DataPoints = append(h.DataPoints, m.histogram(one))
		}
		out.Data = &metricspb.Metric_Histogram{Histogram: h}
	case dto.MetricType_COUNTER:
		s := &metricspb.Sum{AggregationTemporality: cumulative, IsMonotonic: true}
		for _, one := range f.GetMetric() {
			p := m.number(one, one.GetCounter().GetValue())
			p.StartTimeUnixNano = m.began
			s.DataPoints = append(s.DataPoints, p)
		}
		out.Data = &metricspb.Metric_Sum{Sum: s}
	default: // the node has no other kind than gauges
		g := &metricspb.Gauge{}
		for _, one := range f.GetMetric() {
			g.DataPoints = append(g.DataPoints, m.number(one, one.GetGauge().GetValue()))
		}
		out.Data = &metricspb.Metric_Gauge{Gauge: g}
	}
	return out
}

func (m metricEncoder) number(one *dto.Metric, value float64) *metricspb.NumberDataPoint {
	return &metricspb.NumberDataPoint{Attributes: labelAttributes(one), TimeUnixNano: m.now, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: value}}
}

// histogram makes a data point: buckets of Prometheus count all values up to their bound, those of OTLP only their own.
func (m metricEncoder) histogram(one *dto.Metric) *metricspb.HistogramDataPoint {
	h := one.GetHistogram()
	p := &metricspb.HistogramDataPoint{Attributes: labelAttributes(one), StartTimeUnixNano: m.began, TimeUnixNano: m.now, Count: h.GetSampleCount(), Sum: h.SampleSum}
	below := uint64(0)
	for _, b := range h.GetBucket() {
		p.ExplicitBounds = append(p.ExplicitBounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, h.GetSampleCount()-below)
	return p
}

// labelAttributes are the labels of a metric as attributes. An empty label is no attribute.
func labelAttributes(one *dto.Metric) (list []*commonpb.KeyValue) {
	for _, l := range one.GetLabel() {
		if l.GetValue() != "" {
			list = append(list, encodeAttribute(attribute{metrics.ConventionLabel(l.GetName()), l.GetValue()}))
		}
	}
	return list
}
