package spec

import (
	"math"
	"slices"
	"strings"
)

// Limits of what a tool may report to the metrics sink of a call.
const (
	MetricsMax      = 32 // names of one call
	MetricNameBytes = 64
)

// Metric is one figure that a tool has reported about a call.
type Metric struct {
	Name  string  `msgpack:"n"`
	Value float64 `msgpack:"v"`
}

// Metrics are the figures of one call, sorted by name.
type Metrics []Metric

// Set returns the metrics with a figure, which replaces an earlier one of the same name. ok is false if the
// figure breaks a limit: a name that is empty, too long or not made of a-z, A-Z, 0-9 and ._/-, a value that is
// not finite, or one name too many.
func (m Metrics) Set(name string, value float64) (out Metrics, ok bool) {
	if !isMetricName(name) || math.IsNaN(value) || math.IsInf(value, 0) {
		return m, false
	}
	i, found := slices.BinarySearchFunc(m, name, func(a Metric, b string) int { return strings.Compare(a.Name, b) })
	if !found && len(m) >= MetricsMax {
		return m, false
	}
	out = slices.Clone(m)
	if found {
		out[i].Value = value
		return out, true
	}
	return slices.Insert(out, i, Metric{name, value}), true
}

// Map returns the figures within the limits by name, nil for none.
func (m Metrics) Map() map[string]float64 {
	var kept Metrics
	for _, f := range m {
		kept, _ = kept.Set(f.Name, f.Value)
	}
	if len(kept) == 0 {
		return nil
	}
	out := make(map[string]float64, len(kept))
	for _, f := range kept {
		out[f.Name] = f.Value
	}
	return out
}

func isMetricName(name string) bool {
	if name == "" || len(name) > MetricNameBytes {
		return false
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("._/-", rune(c)) {
			return false
		}
	}
	return true
}
