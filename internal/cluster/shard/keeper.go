package shard

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
)

// Keeper holds the leases of one node. It is the entry point and the loop; the
// work is done by its parts: the renewer keeps the session alive, the watcher
// follows the buckets, the planner decides and the balancer carries out.
type Keeper struct {
	cfg      *Config
	state    *keeperState
	wakeup   wakeup
	renewer  *renewer
	watcher  *watcher
	balancer *balancer
	stop     context.CancelFunc
	stopped  chan struct{}
}

// Start announces the node and keeps taking the shards that belong to it.
func Start(ctx context.Context, cfg Config) (*Keeper, error) {
	if err := cfg.checkAndFill(); err != nil {
		return nil, err
	}
	cfg.Node.ID = keyToken(cfg.Node.Name) + "-" + newNonce()[:8]
	cfg.Node.Started, cfg.Node.Form = time.Now().UnixMilli(), Form
	k := newKeeper(&cfg)
	if err := k.watcher.checkForms(ctx); err != nil {
		return nil, err
	}
	took, err := k.renewer.announceNode(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.renewer.checkTTL(ctx, took); err != nil {
		return nil, errors.Join(err, k.renewer.withdrawNode(ctx))
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	k.stop = stop
	stopWatch, err := k.watcher.startWatches(ctx, life)
	if err != nil {
		stop()
		return nil, errors.Join(err, k.renewer.withdrawNode(ctx))
	}
	go k.run(life, stopWatch)
	return k, nil
}

// newKeeper connects the parts, which share one state.
func newKeeper(cfg *Config) *Keeper {
	s, w := newState(cfg.Node), make(wakeup, 1)
	store := &leaseStore{cfg: cfg, state: s}
	return &Keeper{
		cfg: cfg, state: s, wakeup: w, stopped: make(chan struct{}),
		renewer:  &renewer{cfg: cfg, state: s},
		watcher:  &watcher{cfg: cfg, state: s, wakeup: w},
		balancer: &balancer{cfg: cfg, state: s, wakeup: w, store: store, planner: newPlanner(cfg, s)},
	}
}

func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// keyToken replaces the characters of a name that a key may not have.
func keyToken(name string) string {
	b := []byte(cmp.Or(name, "node"))
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			b[i] = '-'
		}
	}
	return string(b)
}

// Holds reports whether this node may try to act on a shard, and under which
// epoch. It is false from the moment when other nodes may have taken the shard.
func (k *Keeper) Holds(shard int) (epoch uint64, ok bool) {
	k.state.RLock()
	defer k.state.RUnlock()
	return k.state.holdsSlot(shard)
}

// ShardAt returns the shard of a slot.
func (k *Keeper) ShardAt(slot int) Shard { return k.cfg.slots[slot] }

// ID returns the node's name in leases.
func (k *Keeper) ID() string { return k.cfg.Node.ID }

// Nodes lists the live nodes by their ids, each with the shards that it holds.
func (k *Keeper) Nodes() []SeenNode {
	k.state.RLock()
	defer k.state.RUnlock()
	list := slices.Collect(maps.Values(k.state.view.nodes))
	k.state.view.addHoldings(list)
	return list
}

// addHoldings sets the shards that each node of a list holds, and sorts the list.
func (v *clusterView) addHoldings(list []SeenNode) {
	held := v.holdsByNode()
	for i := range list {
		list[i].Holds = held[list[i].ID]
		slices.SortFunc(list[i].Holds, func(a, b Shard) int { return cmp.Or(strings.Compare(a.Pool, b.Pool), a.N-b.N) })
	}
	slices.SortFunc(list, func(a, b SeenNode) int { return strings.Compare(a.ID, b.ID) })
}

// ReadNodes reads the live nodes from the leader, because the view of the watch may be behind. Their shards are those
// of the view.
func (k *Keeper) ReadNodes(ctx context.Context) (list []SeenNode, err error) {
	w, err := k.cfg.Buckets.Nodes.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("shard: read the nodes: %w", err)
	}
	defer func() { _ = w.Stop() }() // its consumer is ephemeral
	err = readCurrent(ctx, w, func(e jetstream.KeyValueEntry) {
		var n Node
		if json.Unmarshal(e.Value(), &n) == nil && n.ID == e.Key() {
			list = append(list, SeenNode{Node: n, Heard: e.Created(), Came: time.Now()})
		}
	})
	k.state.RLock()
	defer k.state.RUnlock()
	k.state.view.addHoldings(list)
	return list, err
}

// HeldShards lists the shards that this node holds.
func (k *Keeper) HeldShards() []int {
	k.state.RLock()
	defer k.state.RUnlock()
	return k.state.holdings.heldSlots()
}

// run plans whenever something changes. Renewal runs in a separate goroutine: in a storm,
// when many shards are acquired and released, renewals that wait for the plan would come
// too late, and even more leases would expire.
func (k *Keeper) run(ctx context.Context, stopWatch func()) {
	defer close(k.stopped)
	// A request that is abandoned when the node stops may still succeed: it would
	// leave a lease that is never given back, and other nodes would wait for its end.
	work := context.WithoutCancel(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	renewing.Go(func() { k.renewLoop(ctx, work) })
	tick := time.NewTicker(k.cfg.TTL / renewParts)
	defer tick.Stop()
	defer func() { stopWatch() }()
	for {
		k.renewer.publishChanges(work)
		k.balancer.runPlan(work)
		select {
		case <-ctx.Done():
			k.balancer.logChanges()
			return
		case <-k.wakeup:
		case <-tick.C:
			k.balancer.logChanges()
			if k.watcher.checkTick() {
				stopWatch = k.watcher.restartWatches(ctx, stopWatch)
			}
		}
	}
}

// renewLoop renews the session, and reads some leases back, until ctx ends.
func (k *Keeper) renewLoop(ctx, work context.Context) {
	tick := time.NewTicker(k.cfg.TTL / renewParts)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.renewer.renewNode(work)
			k.balancer.store.verifyLeases(work)
			k.wakeup.wake()
		}
	}
}

// AvoidShard publishes that a shard has a log that is newer than this node. Other nodes
// that know more take the shard, if there are any. It holds until this node stops.
func (k *Keeper) AvoidShard(slot int) {
	k.state.Lock()
	changed := k.state.self.addAvoided(k.cfg.slots[slot])
	k.state.unpublished = k.state.unpublished || changed
	k.state.Unlock()
	if changed {
		k.wakeup.wake()
	}
}

// SetUnreadable publishes whether a shard is unreadable on this node. It reports
// whether that is a change.
func (k *Keeper) SetUnreadable(slot int, is bool) (changed bool) {
	k.state.Lock()
	changed = k.state.self.setUnreadable(k.cfg.slots[slot], is)
	k.state.unpublished = k.state.unpublished || changed
	k.state.Unlock()
	if changed {
		k.wakeup.wake()
	}
	return changed
}

// leavePrefix begins the keys that ask a node, by its name, to leave. A key stays
// until it is deleted, so a node that restarts obeys it too.
const leavePrefix = "leave."

// RequestLeave asks all nodes of a name to leave, or to stay again. Any node may ask.
func (k *Keeper) RequestLeave(ctx context.Context, name string, leave bool) error {
	key := leavePrefix + keyToken(name)
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

// StartDrain drains the node: it takes no more shards and releases each of its shards once that
// shard is idle. Other nodes see it as leaving.
func (k *Keeper) StartDrain() {
	k.state.Lock()
	k.state.leaves = true
	k.state.Unlock()
	k.wakeup.wake()
}

// closeRetryPause is how long Close waits before it tries again to give back leases.
const closeRetryPause = 200 * time.Millisecond

// Close gives all leases back. The caller has stopped acting on them.
func (k *Keeper) Close(ctx context.Context) {
	k.stop()
	<-k.stopped
	k.StartDrain()
	k.renewer.publishChanges(ctx) // otherwise other nodes would take the release for rebalancing
	again := time.NewTicker(closeRetryPause)
	defer again.Stop()
	for k.balancer.releaseAll(ctx) > 0 && ctx.Err() == nil && !k.cfg.JS.Conn().IsClosed() {
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	ctx, cancel := k.cfg.roundTimeout(context.WithoutCancel(ctx))
	defer cancel()
	// The id is never used again, so the marker of its deletion must expire.
	if err := k.cfg.Buckets.Nodes.Purge(ctx, k.cfg.Node.ID, jetstream.PurgeTTL(bus.MarkerTTL)); err != nil {
		k.cfg.Logger.Warn("the node could not announce that it leaves; its key expires", "error", err)
	}
}
