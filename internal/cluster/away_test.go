package cluster

import (
	"testing"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// TestIsolatedNodeReportsNoPoolAsAway: such a node does not see itself either, so
// its view proves nothing about pools.
func TestIsolatedNodeReportsNoPoolAsAway(t *testing.T) {
	t.Parallel()
	nodes := []shard.SeenNode{{Node: shard.Node{ID: "a", Pools: []string{"gpu"}}}}
	if served, known := servedPools(nodes, "a"); !known || !served["gpu"] || !served[names.DefaultPool] {
		t.Errorf("%v, known %v", served, known)
	}
	if served, known := servedPools(nodes, "b"); known || !served["gpu"] {
		t.Errorf("%v, known %v", served, known)
	}
	if served, known := servedPools(nil, "a"); known || served["gpu"] {
		t.Errorf("%v, known %v", served, known)
	}
}

// TestAttackNoClientHasTheNameOfAGivenUpAgent: an actor applies the first request of a name only.
func TestAttackNoClientHasTheNameOfAGivenUpAgent(t *testing.T) {
	t.Parallel()
	if names.CheckToken(awayRequest+"root") == nil {
		t.Errorf("a client may name its request %sroot", awayRequest)
	}
}
