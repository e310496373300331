package mcpclient

import (
	"maps"
	"math"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/troupe-run/troupe/tool"
)

// Keys of _meta. Those of troupe have the prefix that MCP asks for, a name of its domain.
const (
	metaTrace   = "traceparent"
	metaPrefix  = "run.troupe/"
	metaMetrics = metaPrefix + "metrics" // of a result: an object of names and numbers
)

// describeCall returns what a server reads about a call in _meta, besides the token for progress.
func describeCall(c tool.Call) sdk.Meta {
	m := sdk.Meta{
		metaPrefix + "run": c.Run, metaPrefix + "agent": c.Agent, metaPrefix + "turn": c.Turn, metaPrefix + "call": c.ID,
		metaPrefix + "idempotency-key": c.Key, metaPrefix + "attempt": c.Attempt,
		metaPrefix + "deadline": c.Deadline.UTC().Format(time.RFC3339Nano),
	}
	if c.Trace != "" {
		m[metaTrace] = c.Trace
	}
	return m
}

// reportMetrics reports the figures in _meta of a result. What is no number counts as a report that broke a limit.
func reportMetrics(m sdk.Meta, c tool.Call) {
	stated, ok := m[metaMetrics]
	if !ok {
		return
	}
	figures, ok := stated.(map[string]any)
	if !ok {
		c.Metric(metaMetrics, math.NaN())
		return
	}
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		value, ok := figures[name].(float64)
		if !ok {
			value = math.NaN()
		}
		c.Metric(name, value)
	}
}
