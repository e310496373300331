package shard

import (
	"github.com/nats-io/nats.go/jetstream"
)

// Move says that this node has taken a shard or released it, and why.
type Move struct {
	Shard
	Taken bool
	Why   Why
	Epoch uint64
	// Other is the node that had it before, or had better have it now; "" if nobody knows.
	Other string
}

// Why a shard moved.
type Why string

// Reasons. A node that was asked to leave, or stops, drains; one that stays gives
// a shard to a node that is better for it; a lease that nobody renewed expired.
const (
	Fresh      Why = "started" // nobody had it, as far as this node has heard
	Expired    Why = "expired"
	Rebalanced Why = "rebalanced"
	Drained    Why = "drained"
)

// ended is how the last lease of a shard came to its end.
type ended struct {
	why Why
	by  string
}

// how reads it from what the watch shows. A holder gives a lease back by deleting
// its key; the server purges those that are over. mu is held.
func (k *Keeper) how(holder string, op jetstream.KeyValueOp) ended {
	n, lives := k.nodes[holder]
	switch {
	case op != jetstream.KeyValueDelete:
		return ended{Expired, holder}
	case !lives || n.Leaving:
		return ended{Drained, holder}
	}
	return ended{Rebalanced, holder}
}

// taken tells of shards that were taken.
func (k *Keeper) taken(slots []int) {
	for _, s := range slots {
		k.mu.RLock()
		h, before := k.held[s], k.ends[s]
		k.mu.RUnlock()
		if before.why == "" {
			before.why = Fresh
		}
		k.cfg.Moved(k.cfg.Node.ID, Move{Shard: k.slots[s], Taken: true, Why: before.why, Epoch: h.epoch, Other: before.by})
	}
}

// released tells of shards that this node has no more.
func (k *Keeper) released(slots []int, epochs map[int]uint64, why Why) {
	for _, s := range slots {
		m := Move{Shard: k.slots[s], Why: why, Epoch: epochs[s]}
		if why == Rebalanced {
			k.mu.RLock()
			var nodes []string
			for id, n := range k.nodes {
				if !n.Leaving && n.Serves(m.Pool) {
					nodes = append(nodes, id)
				}
			}
			k.mu.RUnlock()
			m.Other = Best(m.Pool, m.N, nodes)
		}
		k.cfg.Moved(k.cfg.Node.ID, m)
	}
}
