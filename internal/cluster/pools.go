package cluster

import (
	"context"
	"errors"
	"strings"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// PoolSize is the number of shards and streams with which a pool is made.
type PoolSize struct{ Shards, Streams int }

// SizeOf returns the size of a pool. The pool of one machine has one stream, because it has
// few nodes and there may be many machines.
func SizeOf(pool string) PoolSize {
	if strings.HasPrefix(pool, names.MachinePrefix) {
		return PoolSize{Shards: 16, Streams: 1}
	}
	return PoolSize{Shards: jetstream.DefaultShards, Streams: jetstream.DefaultStreams}
}

// HasPool reports whether a pool exists.
func (o *Owner) HasPool(ctx context.Context, pool string) (bool, error) {
	_, err := o.cfg.Streams.Pool(ctx, pool)
	if errors.Is(err, jetstream.ErrNoPool) {
		return false, nil
	}
	return err == nil, err
}

// ServingNodes lists the live nodes that are not leaving and take shards of a pool.
func (o *Owner) ServingNodes(pool string) (ids []string) {
	k := o.keeper.Load()
	if k == nil { // it is about to begin
		return nil
	}
	for _, n := range k.Nodes() {
		if n.Serves(pool) && !n.Leaving {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// PassNewerShard passes a shard to a node that knows the newer form that this one met in it, if
// there is one. Until then this node serves the other logs of the shard.
func (o *Owner) PassNewerShard(at mailbox.Address, _ string) {
	k := o.keeper.Load()
	if slot, ok := o.pools.slotOf(at); ok && k != nil {
		k.AvoidShard(slot)
	}
}
