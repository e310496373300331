package shard_test

import (
	"testing"

	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// TestOneNodeDoesAJob: of two nodes one does a job. The other takes it as soon as the first drains or is gone, and its
// leases of shards are not touched.
func TestOneNodeDoesAJob(t *testing.T) { bustest.Bubble(t, oneNodeDoesAJob) }

func oneNodeDoesAJob(t *testing.T) {
	e := startServer(t)
	a, b := startLeaseNode(t, e, "a", shard.TTLDefault), startLeaseNode(t, e, "b", shard.TTLDefault)
	holds := func(m *leaseNode, job string, want bool) {
		t.Helper()
		for range 2 {
			if is, err := m.HoldJob(t.Context(), job); is != want || err != nil {
				t.Errorf("%s does %s: %t %v, want %t", m.ID(), job, is, err, want)
			}
		}
	}
	waitUntil(t, "the shards are shared", isHeldByBest(a, b))
	holds(a, "retention", true)
	holds(b, "retention", false)
	holds(b, "other", true)
	holds(a, "other", false)
	b.StartDrain()
	holds(b, "other", false)
	holds(a, "other", true)
	a.closeKeeper(t)
	c := startLeaseNode(t, e, "c", shard.TTLDefault)
	holds(b, "retention", false)
	holds(c, "retention", true)
	waitUntil(t, "the shards are held", isHeldByBest(c))
	b.closeKeeper(t)
	c.closeKeeper(t)
}

// TestAJobOfADeadNodeIsTakenAfterItsLease: a node that is silent keeps its job until its lease is over.
func TestAJobOfADeadNodeIsTakenAfterItsLease(t *testing.T) {
	bustest.Bubble(t, aJobOfADeadNodeIsTakenAfterItsLease)
}

func aJobOfADeadNodeIsTakenAfterItsLease(t *testing.T) {
	e := startServer(t)
	nc, _ := connectJetStream(t, e)
	a, b := startLeaseNodeOver(t, nc, "a", shard.TTLMin), startLeaseNode(t, e, "b", shard.TTLMin)
	if is, err := a.HoldJob(t.Context(), "retention"); !is || err != nil {
		t.Fatal(is, err)
	}
	nc.Close()
	if is, err := b.HoldJob(t.Context(), "retention"); is || err != nil {
		t.Fatal("it is taken while its holder may act", err)
	}
	waitUntil(t, "the other node has it", func() bool {
		is, err := b.HoldJob(t.Context(), "retention")
		return is && err == nil
	})
	if is, _ := a.HoldJob(t.Context(), "retention"); is {
		t.Error("the dead node still has it")
	}
	a.closeKeeper(t)
	b.closeKeeper(t)
}
