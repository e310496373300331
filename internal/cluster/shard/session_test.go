package shard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cluster/shard"
)

// countWrites is how many writes a bucket has taken.
func countWrites(t *testing.T, js jetstream.JetStream, bucket string) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), "KV_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

// TestRenewingAllLeasesIsOneWrite: however many shards a node holds, so that a slow disk
// does not take the leases away (FM9). The epochs stay.
//
//behaviour:shows F2
func TestRenewingAllLeasesIsOneWrite(t *testing.T) { bustest.Bubble(t, renewingAllLeasesIsOneWrite) }

func renewingAllLeasesIsOneWrite(t *testing.T) {
	a := startLeaseNode(t, startServer(t), "a", long)
	waitUntil(t, "it holds all", isHeldByBest(a))
	js, err := jetstream.New(a.nc)
	if err != nil {
		t.Fatal(err)
	}
	epochs := a.heldEpochs()
	nodes, leases := defaultNames(t).NodeBucket(), defaultNames(t).ShardBucket()
	renewals, taken := countWrites(t, js, nodes), countWrites(t, js, leases)
	waitUntil(t, "all leases have been renewed for two TTLs", func() bool { return countWrites(t, js, nodes) >= renewals+8 })
	if more := countWrites(t, js, leases) - taken; more != 0 {
		t.Errorf("%d leases were written", more)
	}
	for s, epoch := range epochs {
		if now, ok := a.Holds(s); !ok || now != epoch {
			t.Errorf("shard %d: epoch %d, %v, and it was %d", s, now, ok, epoch)
		}
	}
	a.closeKeeper(t)
}

// TestNodeRetakesItsShardsAfterItsKeyExpired: its leases name a session that has ended,
// so another node might have taken them. It holds none of them until it has taken it
// again, under a higher epoch.
//
//behaviour:shows F2
func TestNodeRetakesItsShardsAfterItsKeyExpired(t *testing.T) {
	bustest.Bubble(t, nodeRetakesItsShardsAfterItsKeyExpired)
}

func nodeRetakesItsShardsAfterItsKeyExpired(t *testing.T) {
	e := startServer(t)
	w := newWire(t, e)
	a := startLeaseNodeOver(t, w.connectNode(t), "a", short)
	waitUntil(t, "it holds all", isHeldByBest(a))
	before := a.heldEpochs()
	watcher, err := e.Connect(bus.RoleNode)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	w.setCut(true)
	waitUntil(t, "it does not believe in its leases", func() bool { return len(shardHolders(a)) == 0 })
	waitUntil(t, "its session has ended", func() bool { return len(nodeKeys(t, watcher)) == 0 })
	w.setCut(false)
	waitUntil(t, "it holds all again", isHeldByBest(a))
	for s, epoch := range before {
		if now, _ := a.Holds(s); now <= epoch {
			t.Errorf("shard %d: epoch %d after %d", s, now, epoch)
		}
	}
	a.closeKeeper(t)
}

// TestALeaseOfANewerFormIsNotTouched: this program cannot tell whether the lease has
// expired. A node does not start beside such a lease, or such a node.
func TestALeaseOfANewerFormIsNotTouched(t *testing.T) {
	bustest.Bubble(t, aLeaseOfANewerFormIsNotTouched)
}

func aLeaseOfANewerFormIsNotTouched(t *testing.T) {
	e := startServer(t)
	a := startLeaseNode(t, e, "a", short)
	waitUntil(t, "it holds all", isHeldByBest(a))
	b := openBuckets(t, a.nc)
	newer := []byte(fmt.Sprintf(`{"form":%d,"holder":{"node":"young"}}`, shard.Form+1))
	revision, err := b.Shards.Put(t.Context(), "default.3", newer)
	if err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it knows that it has lost the shard", func() bool { return len(a.HeldShards()) == shards-1 })
	for end := time.Now().Add(2 * short); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if _, ok := a.Holds(3); ok {
			t.Fatal("it holds a shard whose lease it cannot read")
		}
	}
	if found, err := b.Shards.Get(t.Context(), "default.3"); err != nil || found.Revision() != revision {
		t.Errorf("the lease was written: %v", err)
	}
	js, err := jetstream.New(a.nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = shard.Start(t.Context(), shard.Config{JS: js, Buckets: b, Names: defaultNames(t), Node: shard.Node{Name: "old"}, TTL: short,
		Pools: []shard.Pool{{Name: "default", Shards: shards}}, IsBusy: a.isBusy, DrainShard: a.drainSlot, ShardsChanged: a.recordChanges})
	if !errors.Is(err, statedir.ErrNewerForm) || !strings.Contains(err.Error(), "written by a newer troupe: upgrade this one") {
		t.Errorf("it begins beside a newer node: %v", err)
	}
	if len(nodeKeys(t, a.nc)) != 1 {
		t.Error("the node that did not begin is listed")
	}
	a.closeKeeper(t)
}
