package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/mailbox"
)

// startSpans begins to export spans, if a receiver is known. A receiver that only the environment names may be meant
// for other programs: an error in it is logged, and the node works without spans.
func startSpans(h *Node) error {
	if h.cfg.NoActors {
		return nil
	}
	state := ""
	if h.embedded != nil {
		state = statedir.StateDir(h.cfg.StateDir)
	}
	x, err := telemetry.Start(telemetry.Config{Settings: h.cfg.Telemetry, Env: h.cfg.Env, Node: h.cfg.Name, Version: control.Version(),
		StateDir: state, Logs: h.post, ShardHeads: shardHeads(h.streams), Mask: h.mask, Logger: h.cfg.Logger})
	if err != nil && h.cfg.Telemetry == (telemetry.Settings{}) {
		h.cfg.Logger.Warn("spans are not exported: the environment names a receiver that troupe cannot use", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	h.spans = x
	return nil
}

// closeTelemetry sends what waits, spans and metrics at the same time.
func closeTelemetry(h *Node) {
	var work sync.WaitGroup
	if h.spans != nil {
		work.Go(h.spans.Close)
	}
	if h.metricsExporter != nil {
		work.Go(h.metricsExporter.Close)
	}
	work.Wait()
}

// shardHeads returns the function that lists the newest entries of the logs of a shard of the shared server. Without
// one it lists nothing: the shards of a node with its own server do not move.
func shardHeads(streams *jetstream.Post) func(ctx context.Context, pool string, shard int, each func(mailbox.Head) error) error {
	return func(ctx context.Context, pool string, shard int, each func(mailbox.Head) error) error {
		if streams == nil {
			return nil
		}
		return streams.HeadsOf(ctx, pool, []int{shard}, each)
	}
}

// traceActors tells the exporter of spans on which logs the actors act, and the tools in which span they run.
func traceActors(spans *telemetry.Exporter, cfg *actors.Config) {
	if spans == nil {
		return
	}
	cfg.Traceparent = spans.Traceparent
	alive, holds := cfg.Alive, cfg.Holds
	cfg.Alive = func(at mailbox.Address, change int) {
		if alive != nil {
			alive(at, change)
		}
		if change < 0 {
			return
		}
		lease := cfg.Lease
		if holds != nil {
			lease, _ = holds(at)
		}
		spans.ShellStarted(at, lease)
	}
}
