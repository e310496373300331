package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
)

// watch keeps the view of nodes and leases. It returns when both buckets have
// been read once.
func (k *Keeper) watch(ctx, life context.Context) (stop func(), err error) {
	nodes, err := k.cfg.Buckets.Nodes.WatchAll(life)
	if err != nil {
		return nil, fmt.Errorf("shard: watch nodes: %w", err)
	}
	leases, err := k.cfg.Buckets.Shards.WatchAll(life)
	if err != nil {
		_ = nodes.Stop() // its consumer is ephemeral
		return nil, fmt.Errorf("shard: watch leases: %w", err)
	}
	stop = func() { _, _ = nodes.Stop(), leases.Stop() } // as above
	for _, w := range []struct {
		from jetstream.KeyWatcher
		see  func(jetstream.KeyValueEntry)
	}{{nodes, k.seeNode}, {leases, k.seeLease}} {
		if failed := first(ctx, w.from, w.see); failed != nil {
			err = failed
		}
		go func() { // until stop
			for e := range w.from.Updates() {
				if e != nil {
					w.see(e)
					k.wake()
				}
			}
		}()
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// blindAfter is after how many ticks in which our own key did not come round
// the watches are made anew.
const blindAfter = 4

// blind reports whether the watches show something else than what is there. It
// is asked once in a tick, before our own key is written again.
func (k *Keeper) blind() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.missed >= blindAfter:
	case k.seen == k.own, k.seen != k.looked:
		k.missed = 0
	default:
		k.missed++
	}
	k.looked = k.seen
	return k.missed >= blindAfter
}

// lookAgain makes the watches anew. Until that succeeds the old view is kept.
func (k *Keeper) lookAgain(ctx context.Context, watching func()) func() {
	soon, cancel := k.soon(ctx)
	defer cancel()
	watching()
	k.mu.Lock()
	nodes, leases := k.nodes, k.leases
	k.nodes, k.leases, k.missed = map[string]Seen{}, map[Shard]record{}, 0
	k.mu.Unlock()
	again, err := k.watch(soon, ctx)
	k.cfg.Logger.Warn("the view of nodes and leases stood still; it is read anew", "node", k.cfg.Node.ID, "error", err)
	if err != nil {
		k.mu.Lock()
		k.nodes, k.leases, k.missed = nodes, leases, blindAfter
		k.mu.Unlock()
		return func() {}
	}
	return again
}

// ReadNodes reads the live nodes from the leader: the view of the watch may be behind.
func (k *Keeper) ReadNodes(ctx context.Context) (list []Seen, err error) {
	w, err := k.cfg.Buckets.Nodes.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("shard: read the nodes: %w", err)
	}
	defer func() { _ = w.Stop() }() // its consumer is ephemeral
	err = first(ctx, w, func(e jetstream.KeyValueEntry) {
		var n Node
		if json.Unmarshal(e.Value(), &n) == nil && n.ID == e.Key() {
			list = append(list, Seen{Node: n, Heard: e.Created(), Came: time.Now()})
		}
	})
	return list, err
}

// first reads what a bucket holds now.
func first(ctx context.Context, w jetstream.KeyWatcher, see func(jetstream.KeyValueEntry)) error {
	for {
		select {
		case e := <-w.Updates():
			if e == nil {
				return nil
			}
			see(e)
		case <-ctx.Done():
			return fmt.Errorf("shard: read the leases: %w", ctx.Err())
		}
	}
}

// leavePrefix begins the keys that ask a node, by its name, to leave. They stay
// until somebody takes them back: a node that starts again obeys them too.
const leavePrefix = "leave."

// Ask asks all nodes of a name to leave, or to stay again. Any node may ask.
func (k *Keeper) Ask(ctx context.Context, name string, leave bool) error {
	key := leavePrefix + token(name)
	if leave {
		if _, err := k.cfg.Buckets.Nodes.Put(ctx, key, []byte(k.cfg.Node.ID)); err != nil {
			return fmt.Errorf("shard: ask %s to leave: %w", name, err)
		}
		return nil
	}
	if err := k.cfg.Buckets.Nodes.Delete(ctx, key); err != nil {
		return fmt.Errorf("shard: ask %s to stay: %w", name, err)
	}
	return nil
}

func (k *Keeper) seeNode(e jetstream.KeyValueEntry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name, ok := strings.CutPrefix(e.Key(), leavePrefix); ok {
		if name == token(k.cfg.Node.Name) {
			k.asked = e.Operation() == jetstream.KeyValuePut
		}
		return
	}
	if e.Key() == k.cfg.Node.ID {
		if e.Revision() < k.seen { // the bucket was made anew, without a word about what is gone
			k.missed = blindAfter
		}
		k.seen = e.Revision()
	}
	var n Node
	put := e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &n) == nil && n.ID == e.Key()
	if before, known := k.nodes[e.Key()]; known && (!put || before.Session != n.Session) {
		k.sessionEnded(before)
	}
	if !put {
		delete(k.nodes, e.Key())
		return
	}
	k.nodes[n.ID] = Seen{Node: n, Heard: e.Created(), Came: time.Now()}
}

func (k *Keeper) seeLease(e jetstream.KeyValueEntry) {
	dot := strings.LastIndexByte(e.Key(), '.')
	n, err := strconv.Atoi(e.Key()[dot+1:])
	if dot < 0 || err != nil {
		return
	}
	s := Shard{e.Key()[:dot], n}
	slot, ours := k.Slot(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	var l lease
	put := e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &l) == nil && (l.Node != "" || l.Form > Form)
	if h, held := k.held[slot]; ours && held && e.Revision() > h.epoch && (!put || l.Session != k.session) {
		k.doubt[slot] = struct{}{}
	}
	if put {
		k.leases[s] = record{l, e.Revision()}
		return
	}
	if before, known := k.leases[s]; known && ours {
		k.ends[slot] = k.how(before.Node, e.Operation())
	}
	delete(k.leases, s)
}

// sessionEnded notes how the leases of a session ended: it was not renewed. mu is held.
func (k *Keeper) sessionEnded(n Seen) {
	for s, r := range k.leases {
		if slot, ours := k.Slot(s); ours && r.Node == n.ID && r.Session == n.Session {
			k.ends[slot] = ended{Expired, n.ID}
		}
	}
}

// checkForms refuses to begin beside nodes that write what this program does not know.
func (k *Keeper) checkForms(ctx context.Context) error {
	for _, kv := range []jetstream.KeyValue{k.cfg.Buckets.Nodes, k.cfg.Buckets.Shards} {
		w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
		if err != nil {
			return fmt.Errorf("shard: read %s: %w", kv.Bucket(), err)
		}
		var newer error
		err = first(ctx, w, func(e jetstream.KeyValueEntry) {
			var of struct {
				Form int `json:"form"`
			}
			if json.Unmarshal(e.Value(), &of) == nil && of.Form > Form {
				newer = fmt.Errorf("shard: %s in bucket %s has form %d, and this program knows forms up to %d: %w", e.Key(), kv.Bucket(), of.Form, Form, bus.ErrNewer)
			}
		})
		_ = w.Stop() // its consumer is ephemeral
		if err := errors.Join(err, newer); err != nil {
			return err
		}
	}
	return nil
}
