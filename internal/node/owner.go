package node

import (
	"context"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster"
)

// MaxLiveRuns and MaxQueuedRuns are the defaults of the fields of Config.
const (
	MaxLiveRuns   = cluster.MaxLiveRuns
	MaxQueuedRuns = cluster.MaxQueuedRuns
)

// PoolPatienceDefault is the default of Config.PoolPatience.
const PoolPatienceDefault = cluster.PoolPatienceDefault

// ReconcileEveryDefault is the default of Config.ReconcileEvery.
const ReconcileEveryDefault = cluster.ReconcileEveryDefault

// newOwner makes the part of the node that owns logs.
func (h *Node) newOwner() *cluster.Owner {
	return cluster.New(cluster.Config{Name: h.cfg.Name, Machine: h.cfg.Machine, Pools: h.cfg.Pools, PoolPatience: h.cfg.PoolPatience, LeaseTTL: h.cfg.LeaseTTL, ReconcileEvery: h.cfg.ReconcileEvery,
		MaxLiveRuns: h.cfg.MaxLiveRuns, MaxQueuedRuns: h.cfg.MaxQueuedRuns, Alone: h.embedded != nil || h.cfg.NoActors,
		Names: h.names, Leases: h.leaseConn, Post: h.post, Streams: h.streams, Logs: h.redactedLogs(), Runs: h.runs, Node: func() *actors.Node { return h.actorNode }, Publish: h.queueEvent, LaneFound: func(conversation string) { h.lanes.add(conversation, "") },
		Proof: &h.serverProof, LogHealth: h.logHealth.clientInfo, Mask: h.mask, Life: h.lifetime, Work: &h.background, Logger: h.cfg.Logger})
}

// Drain gives up all logs: see cluster.Owner.Drain.
func (h *Node) Drain(ctx context.Context) error { return h.logOwner.Drain(ctx) }

// UnfinishedRuns lists the runs that have not ended.
func (h *Node) UnfinishedRuns(ctx context.Context) ([]client.RunInfo, error) {
	return h.logOwner.UnfinishedRuns(ctx)
}
