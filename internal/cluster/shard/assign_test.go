package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func nodeIDs(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("node-%d", i)
	}
	return list
}

// TestEveryNodeGetsAFairShare: no node holds more than twice the average.
func TestEveryNodeGetsAFairShare(t *testing.T) {
	const shards = 64
	for n := 1; n <= 8; n++ {
		share := map[string]int{}
		for s := range shards {
			share[BestNode("default", s, nodeIDs(n))]++
		}
		for node, got := range share {
			if got > 2*shards/n+1 {
				t.Errorf("%d nodes: %s holds %d of %d shards", n, node, got, shards)
			}
		}
		if len(share) != n {
			t.Errorf("%d nodes: only %d of them hold a shard", n, len(share))
		}
	}
}

// TestOnlyTheShareOfANodeThatGoesMoves: the other nodes keep their shards.
func TestOnlyTheShareOfANodeThatGoesMoves(t *testing.T) {
	before, after := nodeIDs(5), nodeIDs(4)
	for s := range 256 {
		if old := BestNode("default", s, before); old != "node-4" && BestNode("default", s, after) != old {
			t.Errorf("shard %d moved from %s to %s, and node-4 had gone", s, old, BestNode("default", s, after))
		}
	}
	reversed := slices.Clone(before)
	slices.Reverse(reversed)
	for s := range 256 {
		if BestNode("default", s, before) != BestNode("default", s, reversed) {
			t.Fatalf("shard %d: the order in which nodes are named matters", s)
		}
	}
}

// TestAShardMovesOnlyWhileItIsIdleAndOneAtATime: a shard with work in progress stays.
func TestAShardMovesOnlyWhileItIsIdleAndOneAtATime(t *testing.T) {
	v := PoolView{Self: "node-0", Shards: 64, Nodes: nodeIDs(2), Holders: map[int]string{}, Busy: func(int) bool { return false }}
	for s := range 64 {
		v.Holders[s] = "node-0" // the first node had all, and a second one came
	}
	p := PlanShards(v)
	if len(p.Give) != 1 || len(p.Take) != 0 {
		t.Fatalf("gives %v, takes %v: one at a time", p.Give, p.Take)
	}
	v.Busy = func(int) bool { return true }
	if p := PlanShards(v); len(p.Give) != 0 {
		t.Errorf("gives %v, which is busy", p.Give)
	}
	v.Nodes = nil // no other node is known to live
	v.Busy = func(int) bool { return false }
	if p := PlanShards(v); len(p.Give) != 0 {
		t.Errorf("gives %v to nobody", p.Give)
	}
}

// TestSecondBestNodeTakesAShardThatTheBestLeaves: it may be frozen, and count as
// live for a while.
func TestSecondBestNodeTakesAShardThatTheBestLeaves(t *testing.T) {
	v := PoolView{Shards: 64, Nodes: nodeIDs(3), Holders: map[int]string{}, Free: map[int]time.Duration{}, Patience: time.Second,
		Busy: func(int) bool { return false }}
	for waited, most := range []int{1, 2, 3} {
		for s := range v.Shards {
			v.Free[s] = time.Duration(waited) * time.Second
		}
		takers := map[int]int{}
		for _, v.Self = range v.Nodes {
			for _, s := range PlanShards(v).Take {
				takers[s]++
			}
		}
		for s := range v.Shards {
			if takers[s] != most {
				t.Errorf("%d s: %d nodes take shard %d, want %d", waited, takers[s], s, most)
			}
		}
	}
	v.Self = "elsewhere"
	if p := PlanShards(v); len(p.Take) > 0 {
		t.Errorf("a node that does not count as live takes %v", p.Take)
	}
}

// TestHeldShardIsNotTaken: not even the node that should have it.
func TestHeldShardIsNotTaken(t *testing.T) {
	v := PoolView{Self: "node-1", Shards: 64, Nodes: nodeIDs(2), Holders: map[int]string{}, Patience: time.Second, Busy: func(int) bool { return false }}
	for s := range 64 {
		v.Holders[s] = "node-0"
	}
	if p := PlanShards(v); len(p.Take) != 0 {
		t.Errorf("takes %v", p.Take)
	}
	v.Holders = map[int]string{}
	for _, s := range PlanShards(v).Take {
		if BestNode("default", s, v.Nodes) != "node-1" {
			t.Errorf("takes %d, which is for %s", s, BestNode("default", s, v.Nodes))
		}
	}
}

// TestABusyShardMovesOnceAnotherNodeHasLongBeenBetter: an idle one moves first, and a node
// that joins and leaves repeatedly does not stop work on any shard.
func TestABusyShardMovesOnceAnotherNodeHasLongBeenBetter(t *testing.T) {
	v := PoolView{Self: "node-0", Shards: 64, Nodes: nodeIDs(2), Holders: map[int]string{}, Elsewhere: map[int]time.Duration{}, StableFor: time.Minute,
		Busy: func(int) bool { return true }}
	for s := range v.Shards {
		v.Holders[s] = "node-0"
		v.Elsewhere[s] = 59 * time.Second
	}
	if p := PlanShards(v); len(p.Give) != 0 {
		t.Errorf("gives %v too soon", p.Give)
	}
	for s := range v.Shards {
		v.Elsewhere[s] = time.Minute
	}
	p := PlanShards(v)
	if len(p.Give) != 1 || BestNode("default", p.Give[0], v.Nodes) != "node-1" {
		t.Fatalf("gives %v", p.Give)
	}
	idle := -1
	for s := range v.Shards {
		if BestNode("default", s, v.Nodes) == "node-1" {
			idle = s // the last of those that may go
		}
	}
	v.Busy = func(s int) bool { return s != idle }
	if p := PlanShards(v); len(p.Give) != 1 || p.Give[0] != idle {
		t.Errorf("gives %v, and %d is idle", p.Give, idle)
	}
}
