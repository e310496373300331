package host

import (
	"testing"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/internal/shard"
)

// TestANodeThatSeesNobodyDoesNotSayWhoIsAway: it does not see itself either, so its view
// says nothing of pools.
func TestANodeThatSeesNobodyDoesNotSayWhoIsAway(t *testing.T) {
	t.Parallel()
	nodes := []shard.Seen{{Node: shard.Node{ID: "a", Pools: []string{"gpu"}}}}
	if served, known := servedPools(nodes, "a"); !known || !served["gpu"] || !served[bus.DefaultPool] {
		t.Errorf("%v, known %v", served, known)
	}
	if served, known := servedPools(nodes, "b"); known || !served["gpu"] {
		t.Errorf("%v, known %v", served, known)
	}
	if served, known := servedPools(nil, "a"); known || served["gpu"] {
		t.Errorf("%v, known %v", served, known)
	}
}
