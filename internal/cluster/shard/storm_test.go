package shard_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// blockingBucket is a bucket of leases in which, once it is shut, nothing can be taken until
// it is released.
type blockingBucket struct {
	jetstream.KeyValue
	shut    atomic.Bool
	asked   chan struct{}
	release chan struct{}
}

func (s *blockingBucket) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if s.shut.Load() {
		select {
		case s.asked <- struct{}{}:
		default: // it was told
		}
		<-s.release
	}
	return s.KeyValue.Create(ctx, key, value, opts...)
}

// TestLeasesAreRenewedDuringASlowAcquisition: however long it takes to take a shard,
// as in a storm, the leases of the others do not end meanwhile.
//
//behaviour:shows F2
func TestLeasesAreRenewedDuringASlowAcquisition(t *testing.T) {
	bustest.Bubble(t, leasesAreRenewedDuringASlowAcquisition)
}

func leasesAreRenewedDuringASlowAcquisition(t *testing.T) {
	e := startServer(t)
	nc, js := connectJetStream(t, e)
	b := openBuckets(t, nc)
	leases := b.Shards
	slow := &blockingBucket{KeyValue: leases, asked: make(chan struct{}, 1), release: make(chan struct{})}
	b.Shards = slow
	const ttl = 3 * shard.TTLMin // the machine may have other work
	m := &leaseNode{nc: nc, busy: map[int]bool{}, rest: map[int]func(){}, took: map[int]bool{}}
	keeper, err := shard.Start(t.Context(), shard.Config{JS: js, Buckets: b, Node: shard.Node{Name: "a"},
		Pools: []shard.Pool{{Name: "default", Shards: shards}}, TTL: ttl, IsBusy: m.isBusy, DrainShard: m.drainSlot, ShardsChanged: m.recordChanges})
	if err != nil {
		t.Fatal(err)
	}
	m.Keeper = keeper
	waitUntil(t, "it holds all", isHeldByBest(m))
	epochs := map[int]uint64{}
	for s := 1; s < shards; s++ {
		epochs[s], _ = m.Holds(s)
	}
	slow.shut.Store(true)
	if err := leases.Delete(t.Context(), "default.0"); err != nil {
		t.Fatal(err)
	}
	<-slow.asked
	for end := time.Now().Add(2 * ttl); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for s, epoch := range epochs {
			if now, ok := m.Holds(s); !ok || now != epoch {
				t.Fatalf("shard %d: epoch %d, %v, and it was %d", s, now, ok, epoch)
			}
		}
	}
	close(slow.release)
	waitUntil(t, "it holds all again", isHeldByBest(m))
	m.closeKeeper(t)
}
