// Package shard decides which node of a cluster may try to act on which logs.
//
// A node holds shards, each by a lease: a key with a TTL whose value names the
// holder. The lease only decides who tries; who may act is decided by the order
// of the logs (PROTOCOL, "Lives"), so a lease that two nodes believe in costs
// time and nothing else. The revision of the write that acquired a lease is the
// epoch of the lives under it.
package shard

import (
	"hash/fnv"
	"slices"
)

// Best names the node that should hold a shard: rendezvous hashing, so that a
// node that comes or goes moves only its own share. "" without nodes.
func Best(shard int, nodes []string) string {
	best, most := "", uint64(0)
	for _, n := range nodes {
		if w := weight(shard, n); best == "" || w > most || w == most && n < best {
			best, most = n, w
		}
	}
	return best
}

func weight(shard int, node string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(node))
	h.Write([]byte{0, byte(shard), byte(shard >> 8)})
	x := h.Sum64()
	// FNV alone mixes its last bytes too little for a fair share.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// View is what a node knows at one moment.
type View struct {
	Self    string
	Shards  int
	Nodes   []string       // live ones that take shards
	Holders map[int]string // by the leases that are there; absent: nobody
	// Busy reports whether this node has something under way in a shard that it holds.
	Busy func(shard int) bool
}

// Plan is what a node does next.
type Plan struct {
	Take []int // nobody holds them, and they are ours
	Give []int // at most one: another node is to hold it, and nothing is under way in it
}

// Next plans. While the node stays, a shard moves only while it is idle, and
// one at a time: nobody waits for it.
func Next(v View) Plan {
	var p Plan
	for s := range v.Shards {
		holder, held := v.Holders[s]
		best := Best(s, v.Nodes)
		switch {
		case !held && best == v.Self:
			p.Take = append(p.Take, s)
		case held && holder == v.Self && best != v.Self && best != "" && len(p.Give) == 0 && !v.Busy(s):
			p.Give = append(p.Give, s)
		}
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
