package node

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/control"
)

// TestShardEventsNameTheReason: an observer learns which node took which shard, from which node
// and why.
func TestShardEventsNameTheReason(t *testing.T) {
	t.Parallel()
	e := startSharedServer(t)
	nc, err := e.Connect(bus.RoleObserver)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	var mu sync.Mutex
	told := map[string]int{} // "node kind why"
	_, err = nc.Subscribe("troupe.evt._cluster.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		var doc struct {
			Node, Kind string
			Data       event.ShardMoved
		}
		if err := json.Unmarshal(m.Data, &doc); err != nil {
			t.Error(err)
		}
		if err := control.ValidateEvent(m.Data); err != nil {
			t.Error(err)
		}
		told[doc.Node+" "+doc.Kind+" "+doc.Data.Why]++
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	says := func(what string) {
		t.Helper()
		waitUntil(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return told[what] > 0
		})
	}
	one := startSharedNode(t, e, "one", shard.TTLMin)
	waitForSpread(t, one)
	says("one shard.taken started")
	two := startSharedNode(t, e, "two", shard.TTLMin)
	waitForSpread(t, one, two)
	says("one shard.released rebalanced")
	says("two shard.taken rebalanced")
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	says("two shard.released drained")
	says("one shard.taken drained")
	three := startSharedNode(t, e, "three", shard.TTLMin)
	waitForSpread(t, one, three)
	three.cutNetwork()
	says("one shard.taken expired")
}
