package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// endingStore is a store whose request ends with the first removal.
type endingStore struct {
	mailbox.Store
	end context.CancelFunc
}

func (i endingStore) Purge(ctx context.Context, at mailbox.Address, before uint64) error {
	defer i.end()
	return i.Store.Purge(ctx, at, before)
}

// TestAttackManyTombstonesDoNotStopAPrune: one request has no time for all tombstones. Its
// reply says so, and the next request begins where it ended.
func TestAttackManyTombstonesDoNotStopAPrune(t *testing.T) {
	long := time.Now().Add(-31 * 24 * time.Hour).UnixMilli()
	post := memory.New(memory.Config{Now: func() int64 { return long }})
	const tombstones = 5
	for i := range tombstones {
		at := mailbox.At(fmt.Sprintf("r%d", i), mailbox.Super)
		data, err := activation.Tombstone(at)
		if err == nil {
			_, err = mailbox.Put(t.Context(), post, at, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := newParts(&Config{Runs: runindex.Open(bucketsOf(t, startEmbedded(t)))})
	removed, r := 0, client.PruneRequest{}
	for range tombstones + 1 {
		ctx, end := context.WithCancel(t.Context())
		c.cfg.Post = endingStore{post, end}
		reply, err := c.remover.pruneRuns(ctx, r)
		end()
		if err != nil {
			t.Fatal(err)
		}
		p := reply.(client.Pruned)
		removed += p.Tombstones
		if !p.More {
			break
		}
		if p.TombstonesLast <= r.TombstonesAfter {
			t.Fatalf("after %q comes %q", r.TombstonesAfter, p.TombstonesLast)
		}
		r.TombstonesAfter = p.TombstonesLast
	}
	if left, err := post.Addresses(t.Context(), ""); err != nil || len(left) > 0 || removed != tombstones {
		t.Errorf("%d are removed, left: %v %v", removed, left, err)
	}
}

// A client asks on until neither the runs nor the tombstones go on.
func TestAClientPrunesToTheEnd(t *testing.T) {
	e := startEmbedded(t)
	nc := dialRole(t, e, bus.RoleService)
	pages := []client.Pruned{{Runs: []string{"a"}, Last: "a", More: true}, {Tombstones: 2, TombstonesLast: "b.super", More: true},
		{Tombstones: 1, TombstonesLast: "c.super", More: true}, {}}
	var asked []client.PruneRequest
	_, err := nc.Subscribe("troupe.cmd.prune", func(m *nats.Msg) {
		var r client.PruneRequest
		err := json.Unmarshal(m.Data, &r)
		asked = append(asked, r)
		data, failed := json.Marshal(pages[min(len(asked), len(pages))-1])
		if err != nil || failed != nil || nc.PublishMsg(&nats.Msg{Subject: m.Reply, Data: data}) != nil {
			t.Error(err, failed)
		}
	})
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	p, err := client.New(dialRole(t, e, bus.RoleClient), names.Names{}).Prune(t.Context(), client.PruneRequest{})
	if err != nil || p.Tombstones != 3 || !slices.Equal(p.Runs, []string{"a"}) {
		t.Errorf("%+v %v", p, err)
	}
	want := []client.PruneRequest{{}, {After: "a"}, {After: "a", TombstonesAfter: "b.super"}, {After: "a", TombstonesAfter: "c.super"}}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %+v, want %+v", asked, want)
	}
}
