package main

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// A node that chance gave no shard of a pool is named, and no other.
func TestNodesWithoutShardsAreNamed(t *testing.T) {
	pool := names.MachinePool(machine)
	whole := client.NodeInfo{ID: "n1-a", Name: "n1", Shards: []int{1}, Pools: map[string][]int{pool: {2}}}
	none := client.NodeInfo{ID: "n2-b", Name: "n2", Shards: []int{3}, Pools: map[string][]int{pool: {}}}
	idle := client.NodeInfo{ID: "n3-c", Name: "n3", Pools: map[string][]int{pool: {4}}}
	if held, empty := listShards([]client.NodeInfo{whole, none, idle}); held == "" || !slices.Equal(empty, []string{"n2", "n3"}) {
		t.Errorf("%q %v", held, empty)
	}
	if _, empty := listShards([]client.NodeInfo{whole}); len(empty) > 0 {
		t.Errorf("%v", empty)
	}
}
