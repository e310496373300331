package shard_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// lossyBucket are leases for which the first attempt to delete each gets no reply.
type lossyBucket struct {
	jetstream.KeyValue
	mu   sync.Mutex
	once map[string]bool
}

func (f *lossyBucket) Delete(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	f.mu.Lock()
	again := f.once[key]
	f.once[key] = true
	f.mu.Unlock()
	if !again {
		return context.DeadlineExceeded
	}
	return f.KeyValue.Delete(ctx, key, opts...)
}

// TestALeaseThatCouldNotBeGivenBackIsGivenBackAgain: no other node waits for a lease to
// expire because one reply was lost while its node stopped, and the node is no longer
// listed.
func TestALeaseThatCouldNotBeGivenBackIsGivenBackAgain(t *testing.T) {
	bustest.Bubble(t, aLeaseThatCouldNotBeGivenBackIsGivenBackAgain)
}

func aLeaseThatCouldNotBeGivenBackIsGivenBackAgain(t *testing.T) {
	e := startServer(t)
	nc, js := connectJetStream(t, e)
	b := openBuckets(t, nc)
	leases := b.Shards
	b.Shards = &lossyBucket{KeyValue: leases, once: map[string]bool{}}
	k, err := shard.Start(t.Context(), shard.Config{JS: js, Buckets: b, Names: defaultNames(t), Node: shard.Node{Name: "a"}, TTL: shard.TTLDefault,
		Pools: []shard.Pool{{Name: "default", Shards: shards}}, IsBusy: func(int) bool { return false }, DrainShard: func(_ int, _ uint64, done func()) { done() }, ShardsChanged: func(_, _ []int) {}})
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it holds all", func() bool { return len(k.HeldShards()) == shards })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	k.Close(ctx)
	for s := range shards {
		if held, err := leases.Get(t.Context(), fmt.Sprintf("default.%d", s)); err == nil {
			t.Errorf("the lease of %d is left behind: %s", s, held.Value())
		}
	}
	if _, err := b.Nodes.Get(t.Context(), k.ID()); err == nil {
		t.Error("the node is still listed")
	}
}

func defaultNames(t *testing.T) names.Names {
	t.Helper()
	n, err := names.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestACloseWithoutAConnectionDoesNotWait: nothing can be given back over one that
// was closed, and no other comes.
func TestACloseWithoutAConnectionDoesNotWait(t *testing.T) {
	bustest.Bubble(t, aCloseWithoutAConnectionDoesNotWait)
}

func aCloseWithoutAConnectionDoesNotWait(t *testing.T) {
	a := startLeaseNode(t, startServer(t), "a", shard.TTLMin)
	waitUntil(t, "it holds all", func() bool { return len(a.HeldShards()) == shards })
	a.nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a.Close(ctx)
	if ctx.Err() != nil {
		t.Error("the end waited for as long as it might")
	}
}
