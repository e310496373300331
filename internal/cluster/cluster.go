// Package cluster decides on which logs a node acts, and takes up the runs that it finds there.
//
// With an embedded server the lock of the state directory is the lease of all logs, so after a
// kill the next process on the machine does not wait for a TTL. On a shared server each shard
// has a lease of its own (package shard). An Owner holds shards, reads the streams that contain
// them, takes up the unfinished runs of a shard that it gained, bounds how many runs are live,
// and gives up the agents of node pools that no node serves.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/mailbox"
)

// openTimeout bounds one pass over pools, leases or the runs of a shard.
const openTimeout = 30 * time.Second

// Config of an Owner.
type Config struct {
	Name, Machine string
	// Pools are the node pools that this node serves.
	Pools []string
	// PoolPatience is how long a pool may be without a node until its agents are given up.
	PoolPatience time.Duration
	// ReconcileEvery is how often the node looks for unfinished runs that no node owns. Default ReconcileEveryDefault.
	ReconcileEvery time.Duration
	// LeaseTTL of a shard. Default shard.TTLDefault.
	LeaseTTL time.Duration
	// At most MaxLiveRuns runs are live here, and MaxQueuedRuns wait. Default: the constants.
	MaxLiveRuns, MaxQueuedRuns int
	// Alone: this node owns all logs of the server, or runs nothing.
	Alone bool
	Names names.Names
	// Leases is a separate connection: a renewal must not queue behind appends.
	Leases *nats.Conn
	Post   mailbox.Store
	// Streams is Post on a server that nodes share.
	Streams *jetstream.Post
	Logs    redact.Store // Post with secrets redacted, for writers
	Runs    *runindex.Index
	// Node holds the actors, once they are started.
	Node func() *actors.Node
	// Publish publishes one event to observers.
	Publish func(event.Published)
	// LaneFound receives a conversation with runs that have not ended. Default: no calls.
	LaneFound func(conversation string)
	// OtherLogFound receives each log that has no actor. Default: no calls.
	OtherLogFound func(at mailbox.Address)
	// Proof is the result of the checks of the server, LogHealth whether the logs can be
	// written.
	Proof     *bus.Proof
	LogHealth func() *client.LogHealth
	// HTTPURL is where the node serves HTTP; "": nowhere, or not yet.
	HTTPURL func() string
	// Settings is the file, as HOST:FILE, from which the node reads the permission rules of new runs; "": none.
	Settings string
	Mask     *redact.Masker
	// Life ends when the node is closed; Work is the group of goroutines that Close then waits
	// for.
	Life   context.Context
	Work   *sync.WaitGroup
	Logger *slog.Logger
}

// Owner is the part of a node that owns logs.
type Owner struct {
	cfg       Config
	keeper    atomic.Pointer[shard.Keeper]
	pools     poolList
	busy      []atomic.Int64 // work in progress, by slot
	reading   *readSet
	taking    *shardTakeover
	buckets   *bus.Buckets // nil: the node is alone
	admission runAdmission
	actors    actorCounter
	woken     wokenLogs // by sweeps, which take turns
}

// New returns an Owner that owns nothing yet: see ConfigureActors and KeepShards.
func New(cfg Config) *Owner {
	cfg.ReconcileEvery = cmp.Or(cfg.ReconcileEvery, ReconcileEveryDefault)
	return &Owner{cfg: cfg}
}

// IsShared reports whether the logs are on a server that others share.
func (o *Owner) IsShared() bool { return o.buckets != nil }

// QueueView is the queue of runs as clients see it.
func (o *Owner) QueueView() control.Queue { return o.admission.queueView() }

// FillCounts sets the numbers of actors and runs on this node.
func (o *Owner) FillCounts(i *client.NodeInfo) {
	i.Live, i.Resting = o.actors.readCounts()
	i.LiveRuns, i.QueuedRuns = o.admission.countRuns()
}

// CountUnread returns how many entries the actors on this node were sent and have not read.
func (o *Owner) CountUnread() int64 { return o.actors.unread.Load() }

// ObserveActors subscribes to the status reports of the actors, and bounds the live runs.
func (o *Owner) ObserveActors(cfg *actors.Config) {
	o.actors.observeActors(cfg)
	o.limitRuns(cfg)
}

// ErrNoShards says that a node of a shared server holds no logs, although there are logs for it.
var ErrNoShards = errors.New("cluster: the node holds no shards yet")

// CheckOwnership returns why this node has no part in the logs. On a shared server a node with a part is known to the
// others, does not leave, and holds shards unless there are more nodes than shards.
func (o *Owner) CheckOwnership() error {
	k := o.keeper.Load()
	if k == nil {
		return nil // the lock of the state directory is the lease of all logs
	}
	nodes := k.Nodes()
	for _, n := range nodes {
		switch {
		case n.ID != k.ID():
		case n.Leaving:
			return errLeaving
		case len(n.Holds) == 0 && len(nodes) <= o.pools.countSlots():
			return ErrNoShards
		default:
			return nil
		}
	}
	return errUnknownNode
}

var (
	errLeaving     = errors.New("cluster: the node is draining")
	errUnknownNode = errors.New("cluster: no heartbeat of this node seen by other nodes")
)

// StopQueue closes the queue: no more runs begin.
func (o *Owner) StopQueue() { o.admission.close() }

// CountSharers returns how many nodes share the rate limits of a provider key.
func (o *Owner) CountSharers() int {
	k := o.keeper.Load()
	if k == nil {
		return 1
	}
	n := 0
	for _, node := range k.Nodes() {
		if !node.Leaving {
			n++
		}
	}
	return max(n, 1)
}

// Inspection describes the state of an Owner, for tests of whole nodes.
type Inspection struct {
	Keeper  *shard.Keeper // nil: it does not hold shards
	Pools   []shard.Pool
	Slots   int    // shards of all pools
	Busy    int64  // work in progress
	Reads   []bool // by slot, whether the shard is read
	Readers int    // of the first pool
}

// Inspect returns the current state of the Owner of a shared server.
func (o *Owner) Inspect() Inspection {
	in := Inspection{Keeper: o.keeper.Load(), Pools: o.pools, Slots: o.pools.countSlots()}
	for s := range o.busy {
		in.Busy += o.busy[s].Load()
	}
	for s := range o.reading.isRead {
		in.Reads = append(in.Reads, o.reading.isRead[s].Load())
	}
	if tails := o.reading.tails.Load(); tails != nil {
		in.Readers = (*tails)[0].Readers()
	}
	return in
}
