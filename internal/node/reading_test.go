package node

import (
	"slices"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// readsWhatItHolds reports whether a node reads its own shards and no others.
func readsWhatItHolds(h *Node) bool {
	in := h.logOwner.Inspect()
	held := in.Keeper.HeldShards()
	for s, isRead := range in.Reads {
		if isRead != slices.Contains(held, s) {
			return false
		}
	}
	return true
}

// TestNodeReadsOnlyItsShards: readers come and go with the leases, and runs
// whose actors live on several nodes end whichever of them is asked (P17).
//
//behaviour:shows F2
func TestNodeReadsOnlyItsShards(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	one := startSharedNode(t, e, "one", shard.TTLDefault)
	waitForSpread(t, one)
	waitUntil(t, "one node reads whole streams", func() bool {
		return readsWhatItHolds(one) && one.logOwner.Inspect().Readers == one.streams.Streams()
	})
	two, three := startSharedNode(t, e, "two", shard.TTLDefault), startSharedNode(t, e, "three", shard.TTLDefault)
	waitForSpread(t, one, two, three)
	hosts := []*Node{one, two, three}
	model := writeScript(t, "agents:\n  assistant:\n    - text: hi\n")
	for range 12 {
		for _, h := range hosts {
			c := connectClient(t, h)
			waitFinished(t, c, beginRun(t, c, client.RunRequest{Prompt: "hello", Model: model}), spec.Completed)
		}
	}
	for _, h := range hosts {
		waitUntil(t, h.cfg.Name+" reads what it holds", func() bool { return readsWhatItHolds(h) })
	}
	if err := three.Close(); err != nil {
		t.Fatal(err)
	}
	waitForSpread(t, one, two)
	for _, h := range hosts[:2] {
		waitUntil(t, h.cfg.Name+" reads what it holds", func() bool { return readsWhatItHolds(h) })
	}
}
