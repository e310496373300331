// Package shard decides which node of a cluster may try to act on which logs.
//
// A node holds shards, each by a lease: a key with a TTL whose value names the
// holder. The lease only decides who tries; who may act is decided by the order
// of the logs (PROTOCOL, "Lives"), so a lease that two nodes believe in costs
// time and nothing else. The revision of the write that acquired a lease is the
// epoch of the lives under it.
package shard

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/troupe-run/troupe/bus"
)

// Best names the node that should hold a shard: rendezvous hashing, so that a
// node that comes or goes moves only its own share. "" without nodes.
func Best(pool string, shard int, nodes []string) string {
	best := ""
	for _, n := range nodes {
		if best == "" || before(pool, shard, n, best) {
			best = n
		}
	}
	return best
}

// before reports whether a shard is for one node rather than for another.
func before(pool string, shard int, a, b string) bool {
	wa, wb := weight(pool, shard, a), weight(pool, shard, b)
	return wa > wb || wa == wb && a < b
}

// rank is how many nodes a shard is for rather than for one; not ok where that
// one takes none.
func rank(pool string, shard int, node string, nodes []string) (n int, ok bool) {
	for _, other := range nodes {
		if other == node {
			ok = true
		} else if before(pool, shard, other, node) {
			n++
		}
	}
	return n, ok
}

func weight(pool string, shard int, node string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(node))
	h.Write([]byte{0, byte(shard), byte(shard >> 8)})
	if pool != bus.DefaultPool { // where there are two, a node is not the best for the same shards of both
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

// View is what a node knows of one pool at one moment.
type View struct {
	Self    string
	Pool    string // default "default"
	Shards  int
	Nodes   []string       // live ones that take shards
	Holders map[int]string // by the leases that are there; absent: nobody
	// Free is for how long nobody has held a shard, and Patience how long its best
	// node may take to take it: the next best one does not wait until the best one,
	// which may be frozen, counts as dead.
	Free     map[int]time.Duration
	Patience time.Duration
	// Busy reports whether this node has something under way in a shard that it holds.
	Busy func(shard int) bool
	// Elsewhere is for how long another node has been the best one for a shard that
	// this one holds. A busy shard moves only after Settle: its agents stand still
	// meanwhile, and a node that comes and goes should not make them.
	Elsewhere map[int]time.Duration
	Settle    time.Duration
}

// Plan is what a node does next.
type Plan struct {
	Take []int // nobody holds them, and they are ours
	Give []int // at most one: another node is to hold it
}

// Next plans. While the node stays, one shard moves at a time: an idle one
// first, for nobody waits for it, and a busy one when it has had a better node
// for long (PROTOCOL P3).
func Next(v View) Plan {
	var p Plan
	busy := -1
	v.Pool = cmp.Or(v.Pool, bus.DefaultPool)
	for s := range v.Shards {
		holder, held := v.Holders[s]
		best := Best(v.Pool, s, v.Nodes)
		n, takes := rank(v.Pool, s, v.Self, v.Nodes)
		switch {
		case !held && takes && v.Free[s] >= time.Duration(n)*v.Patience:
			p.Take = append(p.Take, s)
		case !held || holder != v.Self || best == v.Self || best == "" || len(p.Give) > 0:
		case !v.Busy(s):
			p.Give = append(p.Give, s)
		case busy < 0 && v.Settle > 0 && v.Elsewhere[s] >= v.Settle:
			busy = s
		}
	}
	if len(p.Give) == 0 && busy >= 0 {
		p.Give = append(p.Give, busy)
	}
	return p
}

// leaving plans for a node that goes: it takes nothing, and gives all it has,
// if anybody is there to take it.
func leaving(v View) Plan {
	var p Plan
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
