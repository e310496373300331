package control

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/control/retention"
)

// retentionJob names the lease of the node that removes runs; see Cluster.HoldJob.
const retentionJob = "retention"

// retentionConfig is what retention needs of the control service.
func retentionConfig(p *parts) retention.Config {
	cfg := p.cfg
	return retention.Config{
		Store: cfg.Post, Index: cfg.Runs, Node: cfg.Name, Now: cfg.Now, Logger: cfg.logger(), Publish: cfg.Publish,
		PublishLow: func(s event.LogState, at time.Time) { cfg.Publish(LogHealthEvent(cfg.Name, event.KindLogsLow, s, at)) },
		Age:        cfg.RetainAge, Bytes: cfg.RetainBytes, LogsStored: cfg.LogsStored, BlobRoom: cfg.BlobRoom, BlobStrays: cfg.BlobStrays,
		HoldsJob: cfg.holdsRetention, FindRun: p.lookup.findRun,
		ConversationOf: p.lanes.conversationOf, ReadLane: p.lanes.readLane, SettledLane: p.lanes.settledLane,
		RemoveRun: p.remover.removeRun, DeleteConversation: p.remover.deleteConversation, RemoveTombstones: p.remover.removeTombstones,
	}
}

// holdsRetention reports whether this node is the one that removes runs.
func (c *Config) holdsRetention(ctx context.Context) (bool, error) {
	if c.Cluster == nil {
		return true, nil
	}
	if c.Cluster.HoldJob == nil {
		return false, nil
	}
	return c.Cluster.HoldJob(ctx, retentionJob)
}
