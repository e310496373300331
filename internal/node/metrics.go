package node

import (
	"fmt"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/metrics"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/mailbox"
)

// newRecorder makes the metrics of the node; nil: it neither serves HTTP nor can send them.
func (n *Node) newRecorder() *metrics.Recorder {
	if n.cfg.HTTP == nil && (n.cfg.NoActors || !telemetry.SendsMetrics(n.cfg.Telemetry, n.cfg.Env)) {
		return nil
	}
	return metrics.New(metrics.Config{Node: n.cfg.Name, Version: control.Version(), Read: n.readGauges, Logger: n.cfg.Logger})
}

// countActors tells the metrics which actors are in memory, and the names of agents.
func countActors(m *metrics.Recorder, cfg *actors.Config) {
	if m == nil {
		return
	}
	alive := cfg.Alive
	cfg.Alive = func(at mailbox.Address, change int) {
		if alive != nil {
			alive(at, change)
		}
		m.ActorAlive(at, change)
	}
	cfg.Named = m.AgentNamed
}

func (n *Node) readGauges() metrics.Gauges {
	var i client.NodeInfo
	n.logOwner.FillCounts(&i)
	j := n.logHealth.clientInfo()
	var spans telemetry.Stats
	if n.spans != nil {
		spans = n.spans.Stats()
	}
	return metrics.Gauges{SpansExported: spans.Exported, SpansDropped: spans.Dropped, SpansWaiting: spans.Waiting, RunsActive: i.LiveRuns, RunsQueued: i.QueuedRuns, AgentsResting: i.Resting, EventsDropped: n.events.publisher.dropped.Load(), MailboxMessages: n.logOwner.CountUnread(),
		LogsWritable: j == nil || j.Low, Ready: n.checkReady() == nil}
}

// startMetrics begins to send the metrics, if a receiver is known. It is the last step of a start, because the gauges read
// what the other steps set. An error in what only the environment says is logged.
func startMetrics(h *Node) error {
	if h.cfg.NoActors && h.watch.metrics == nil {
		return nil
	}
	x, err := telemetry.StartMetrics(telemetry.MetricsConfig{Settings: h.cfg.Telemetry, Env: h.cfg.Env, Node: h.cfg.Name, Version: control.Version(),
		Gather: h.watch.metrics.Gather, Began: h.began, Logger: h.cfg.Logger})
	if err != nil && h.cfg.Telemetry == (telemetry.Settings{}) {
		h.cfg.Logger.Warn("metrics are not sent: the environment names a receiver that troupe cannot use", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	h.metricsExporter = x
	return nil
}
