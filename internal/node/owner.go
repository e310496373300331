package node

import (
	"context"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/mailbox"
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
func (n *Node) newOwner() *cluster.Owner {
	return cluster.New(cluster.Config{Name: n.cfg.Name, Machine: n.cfg.Machine, Pools: n.cfg.Pools, PoolPatience: n.cfg.PoolPatience, LeaseTTL: n.cfg.LeaseTTL, ReconcileEvery: n.cfg.ReconcileEvery,
		MaxLiveRuns: n.cfg.MaxLiveRuns, MaxQueuedRuns: n.cfg.MaxQueuedRuns, Alone: n.embedded != nil || n.cfg.NoActors,
		Names: n.names, Leases: n.leaseConn, Post: n.post, Streams: n.streams, Logs: n.redactedLogs(), Runs: n.runs, Node: func() *actors.Node { return n.actorNode }, Publish: n.events.queueEvent, LaneFound: func(conversation string) { n.lanes.add(conversation, "") }, OtherLogFound: n.lanes.addLog,
		Proof: &n.serverProof, LogHealth: n.logHealth.clientInfo, HTTPURL: n.HTTPURL, Settings: SettingsPlace(n.cfg.UserSettings), Mask: n.mask, Life: n.lifetime, Work: &n.background, Logger: n.cfg.Logger})
}

// prepareSystem begins to make an actor system, and returns a function that waits for it.
func prepareSystem() func() *actors.System {
	made := make(chan *actors.System, 1)
	go func() { made <- actors.NewSystem() }()
	return func() *actors.System { return <-made }
}

// holdsLog returns the function that reports whether a node holds a log; nil: it holds all.
func holdsLog(cfg actors.Config) func(mailbox.Address) bool {
	if cfg.Holds == nil {
		return nil
	}
	return func(at mailbox.Address) bool {
		_, ok := cfg.Holds(at)
		return ok
	}
}

// Drain gives up all logs: see cluster.Owner.Drain.
func (n *Node) Drain(ctx context.Context) error { return n.logOwner.Drain(ctx) }

// UnfinishedRuns lists the runs that have not ended.
func (n *Node) UnfinishedRuns(ctx context.Context) ([]client.RunInfo, error) {
	return n.logOwner.UnfinishedRuns(ctx)
}
