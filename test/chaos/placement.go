package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// shardView is which node holds which shards, as the nodes reported some time ago.
type shardView struct {
	at      time.Time
	holders map[int]string
}

// viewAge is how old a view may be.
const viewAge = time.Second

// pickDistantID returns the id of a run whose root begins on another node than its children, as far as
// the holders of the shards are known.
func (l *load) pickDistantID() string {
	holders := l.readView()
	id := client.NewID()
	for range 100 {
		at := func(name string) string {
			return holders[mailbox.Shard(mailbox.At(id, name), jetstream.DefaultShards)]
		}
		if root := at(string(spec.Root)); len(holders) == 0 || root != at("root-2-0") && root != at("root-2-1") {
			return id
		}
		id = client.NewID()
	}
	return id
}

func (l *load) readView() map[int]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.seen.at) < viewAge {
		return l.seen.holders
	}
	ctx, cancel := context.WithTimeout(context.Background(), viewAge)
	defer cancel()
	list, err := l.t.client.Nodes(ctx)
	if err != nil {
		return l.seen.holders // the nodes are busy
	}
	l.seen = shardView{time.Now(), map[int]string{}}
	for _, n := range list {
		for _, s := range n.Pools[names.MachinePool(machine)] { // where runs with a directory live
			l.seen.holders[s] = n.ID
		}
	}
	return l.seen.holders
}

// countMoved counts the children of a run, and those that began on another node than their
// root.
func (t *clusterJudge) countMoved(f *replayedRun) {
	home := func(at mailbox.Address) string {
		if claims := f.claims[string(at.Bare())]; len(claims) > 0 {
			return claims[0].node
		}
		return ""
	}
	root := mailbox.At(f.run, string(spec.Root))
	for at := range f.logs {
		if !slices.Contains([]string{string(spec.Root), mailbox.Super}, at.Agent()) {
			t.children++
			if home(at) != home(root) {
				t.elsewhere++
			}
		}
	}
}

// placementLine reports that.
func (t *clusterJudge) placementLine() string {
	if t.children == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d children began on another node than their parent\n", t.elsewhere, t.children)
}
