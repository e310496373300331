// Package shard decides which node of a cluster may try to act on which logs.
//
// A node holds shards, each by a lease that names the holder and its session. The
// lease only decides which node tries. The order of the logs decides which activation
// may act (PROTOCOL), so a lease that two nodes believe in costs time and nothing
// else. The revision of the write that acquired a lease is the epoch, the fencing
// token, of the activations under it.
package shard

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// BestNode names the node that should hold a shard, by rendezvous hashing, so that a
// node that comes or goes moves only its own share. It returns "" without nodes.
func BestNode(pool string, shard int, nodes []string) string {
	best := ""
	for _, n := range nodes {
		if best == "" || isBetterNode(pool, shard, n, best) {
			best = n
		}
	}
	return best
}

// isBetterNode reports whether node a is better for a shard than node b.
func isBetterNode(pool string, shard int, a, b string) bool {
	wa, wb := nodeWeight(pool, shard, a), nodeWeight(pool, shard, b)
	return wa > wb || wa == wb && a < b
}

// rankNode returns how many nodes rank above the given node for a shard; ok is false if that
// node takes no shards.
func rankNode(pool string, shard int, node string, nodes []string) (n int, ok bool) {
	for _, other := range nodes {
		if other == node {
			ok = true
		} else if isBetterNode(pool, shard, other, node) {
			n++
		}
	}
	return n, ok
}

func nodeWeight(pool string, shard int, node string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(node))
	h.Write([]byte{0, byte(shard), byte(shard >> 8)})
	if pool != names.DefaultPool { // so that a node is not the best one for the same shards of two pools
		h.Write([]byte(pool))
	}
	x := h.Sum64()
	// FNV alone mixes its last bytes too little for a fair share.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// PoolView is what a node knows about one pool at one moment.
type PoolView struct {
	Self    string
	Pool    string // default "default"
	Shards  int
	Nodes   []string         // live ones that take shards
	Avoid   map[int][]string // nodes that are too old for a shard
	Holders map[int]string   // by the valid leases; absent: no node holds it
	// Free is for how long no node has held a shard, and Patience how long its best node
	// may take to take it: the next best one does not wait until the best one, which may
	// be frozen, counts as dead.
	Free     map[int]time.Duration
	Patience time.Duration
	// Busy reports whether this node has work in progress in a shard that it holds.
	Busy func(shard int) bool
	// Elsewhere is for how long another node has been the best one for a shard that this
	// one holds. A busy shard moves only after StableFor: its agents pause during the move,
	// and a node that comes and goes should not pause them.
	Elsewhere map[int]time.Duration
	StableFor time.Duration
}

// ShardPlan lists what a node does next.
type ShardPlan struct {
	Take []int // no node holds them, and this one should
	Give []int // at most one, unless the node leaves: another node should hold it
}

// PlanShards plans for a node that stays. One shard moves at a time: an idle one first,
// because nothing waits for it, and a busy one when another node has been better for
// it for long (PROTOCOL P3).
func PlanShards(v PoolView) ShardPlan {
	var p ShardPlan
	busy := -1
	v.Pool = cmp.Or(v.Pool, names.DefaultPool)
	for s := range v.Shards {
		holder, held := v.Holders[s]
		nodes := v.eligibleNodes(s)
		best := BestNode(v.Pool, s, nodes)
		n, takes := rankNode(v.Pool, s, v.Self, nodes)
		switch {
		case !held && takes && v.Free[s] >= time.Duration(n)*v.Patience:
			p.Take = append(p.Take, s)
		case !held || holder != v.Self || best == v.Self || best == "" || len(p.Give) > 0:
		case !v.Busy(s):
			p.Give = append(p.Give, s)
		case busy < 0 && v.StableFor > 0 && v.Elsewhere[s] >= v.StableFor:
			busy = s
		}
	}
	if len(p.Give) == 0 && busy >= 0 {
		p.Give = append(p.Give, busy)
	}
	return p
}

// eligibleNodes returns the nodes that may hold a shard: those that are not too old for it or,
// if all are too old, all nodes, which then serve the rest of its logs.
func (v PoolView) eligibleNodes(shard int) []string {
	if len(v.Avoid[shard]) == 0 {
		return v.Nodes
	}
	fit := slices.DeleteFunc(slices.Clone(v.Nodes), func(id string) bool { return slices.Contains(v.Avoid[shard], id) })
	if len(fit) == 0 {
		return v.Nodes
	}
	return fit
}

// planDrain plans for a node that leaves: it takes nothing, and gives all its shards
// away if there is a node to take them.
func planDrain(v PoolView) ShardPlan {
	var p ShardPlan
	if len(v.Nodes) == 0 {
		return p
	}
	for s, holder := range v.Holders {
		if holder == v.Self {
			p.Give = append(p.Give, s)
		}
	}
	slices.Sort(p.Give)
	return p
}
