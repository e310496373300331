package shard_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/bus/bustest"
)

// TestAShardThatWasInDoubtIsGainedAgain: while the lease of a shard is in doubt, a node
// begins nothing in it, so an entry that arrives then wakes no actor. Once the lease turns
// out to be the node's own, the node must read the shard again.
func TestAShardThatWasInDoubtIsGainedAgain(t *testing.T) {
	bustest.Bubble(t, aShardThatWasInDoubtIsGainedAgain)
}

func aShardThatWasInDoubtIsGainedAgain(t *testing.T) {
	a := startLeaseNode(t, startServer(t), "a", long)
	waitUntil(t, "it holds all", isHeldByBest(a))
	slot := a.HeldShards()[0]
	a.mu.Lock()
	clear(a.took)
	a.mu.Unlock()
	a.DoubtLease(slot) // as where a server that is behind was asked for the lease
	if _, holds := a.Holds(slot); holds {
		t.Error("a shard in doubt counts as held")
	}
	waitUntil(t, "it is told that it has the shard", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.took) == 1 && a.took[slot]
	})
	a.closeKeeper(t)
}
