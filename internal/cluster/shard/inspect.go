package shard

import (
	"cmp"
	"slices"
	"strings"
)

// SeenLease is the lease of a shard as the watch reports it.
type SeenLease struct {
	Shard
	Node  string // id of the holder
	Epoch uint64
	Valid bool // the holder has renewed its session
}

// Leases lists the leases of all pools. The list may be behind the leader.
func (k *Keeper) Leases() []SeenLease {
	k.state.RLock()
	defer k.state.RUnlock()
	var list []SeenLease
	for s, r := range k.state.view.leases {
		id, ok := k.state.view.holderOf(s)
		list = append(list, SeenLease{Shard: s, Node: id, Epoch: r.revision, Valid: ok})
	}
	slices.SortFunc(list, func(a, b SeenLease) int { return cmp.Or(strings.Compare(a.Pool, b.Pool), a.N-b.N) })
	return list
}
