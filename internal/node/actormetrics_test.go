//go:build unix

package node

import (
	"regexp"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// The metrics have the actors in memory by the name of the agent, what they have not read, and the results that the loop
// wrote for calls that a cancel cut off or kept from beginning: on /metrics and at the receiver of OTLP.
//
//behaviour:shows I3 B2
func TestMetricsOfActorsAndOfCallsThatWereCutOff(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, _, agents := heldFamilyBy(t, "effect")
	model := writeScript(t, "agents:\n  keeper:\n    - calls: [{name: wait}, {name: wait}, {name: wait}]\n")
	receiver := newSpanReceiver(t)
	h, w := startWeb(t, exportTo(receiver, ""), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agents: agents, Agent: "keeper", Model: model, Yes: true})
	awaitEvents(t, c, id, event.KindToolStarted, 1)
	shows := func(lines ...string) func() bool {
		return func() bool {
			_, _, raw := w.send(w.request("GET", "/metrics", ""))
			for _, line := range lines {
				if !regexp.MustCompile(`(?m)^` + line + `$`).Match(raw) {
					return false
				}
			}
			return true
		}
	}
	waitUntil(t, "the agent is in memory, and its supervisor", shows(`troupe_agents_active\{agent="keeper"\} 1`, `troupe_agents_active\{agent=""\} 1`, `troupe_actor_mailbox_messages 0`))
	if _, err := c.Cancel(testContext(t), client.CancelRequest{RunID: id, Now: true}); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, id, spec.AbortedTools)
	waitUntil(t, "the calls are counted, and the agent has gone", shows(`troupe_synthetic_tool_results_total\{path="killed"\} 1`, `troupe_synthetic_tool_results_total\{path="never_started"\} 2`,
		`troupe_agents_active\{agent=""\} 0`, `troupe_actor_mailbox_messages 0`))
	if shows(`troupe_agents_active\{agent="keeper"\} .*`)() {
		t.Error("the agent is still counted")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	points := map[string]int{}
	for _, m := range receiver.metrics[len(receiver.metrics)-1].ResourceMetrics[0].ScopeMetrics[0].Metrics {
		points[m.Name] = pointsOf(m)
	}
	if points["troupe_synthetic_tool_results_total"] != 2 || points["troupe_agents_active"] != 1 || points["troupe_actor_mailbox_messages"] != 1 {
		t.Errorf("the receiver got %v", points)
	}
}

func pointsOf(m *metricspb.Metric) int {
	return len(m.GetSum().GetDataPoints()) + len(m.GetGauge().GetDataPoints())
}
