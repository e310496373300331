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

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// watcher keeps the view of nodes and leases up to date.
type watcher struct {
	cfg    *Config
	state  *keeperState
	wakeup wakeup
}

// startWatches begins to watch both buckets, and returns when each has been read once. The
// watches last until stop is called or life ends; ctx bounds the first reading.
func (w *watcher) startWatches(ctx, life context.Context) (stop func(), err error) {
	nodes, err := w.cfg.Buckets.Nodes.WatchAll(life)
	if err != nil {
		return nil, fmt.Errorf("shard: watch nodes: %w", err)
	}
	leases, err := w.cfg.Buckets.Shards.WatchAll(life)
	if err != nil {
		_ = nodes.Stop() // its consumer is ephemeral
		return nil, fmt.Errorf("shard: watch leases: %w", err)
	}
	stop = func() { _, _ = nodes.Stop(), leases.Stop() } // as above
	for _, bucket := range []struct {
		from jetstream.KeyWatcher
		see  func(jetstream.KeyValueEntry)
	}{{nodes, w.applyNode}, {leases, w.applyLease}} {
		if failed := readCurrent(ctx, bucket.from, bucket.see); failed != nil {
			err = failed
		}
		go func() { // until stop
			for e := range bucket.from.Updates() {
				if e != nil {
					bucket.see(e)
					w.wakeup.wake()
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

// checkTick counts a tick, and reports whether the watches have to be restarted. It is called once in a tick.
func (w *watcher) checkTick() bool {
	w.state.Lock()
	defer w.state.Unlock()
	return w.state.view.countTick(w.state.session.revision)
}

// restartWatches watches again, from an empty view. If that fails, the old view is kept.
func (w *watcher) restartWatches(ctx context.Context, stopOld func()) (stop func()) {
	soon, cancel := w.cfg.roundTimeout(ctx)
	defer cancel()
	stopOld()
	v := &w.state.view
	w.state.Lock()
	nodes, leases := v.nodes, v.leases
	v.nodes, v.leases, v.missed = map[string]SeenNode{}, map[Shard]leaseRecord{}, 0
	w.state.Unlock()
	stop, err := w.startWatches(soon, ctx)
	w.cfg.Logger.Warn("the watch of nodes and leases has stalled; reading it again", "node", w.cfg.Node.ID, "error", err)
	if err != nil {
		w.state.Lock()
		v.nodes, v.leases, v.missed = nodes, leases, staleAfter
		w.state.Unlock()
		return func() {}
	}
	return stop
}

// readCurrent reads the current contents of a bucket.
func readCurrent(ctx context.Context, w jetstream.KeyWatcher, see func(jetstream.KeyValueEntry)) error {
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

func (w *watcher) applyNode(e jetstream.KeyValueEntry) {
	w.state.Lock()
	defer w.state.Unlock()
	if name, ok := strings.CutPrefix(e.Key(), leavePrefix); ok {
		if name == keyToken(w.cfg.Node.Name) {
			w.state.leaveRequested = e.Operation() == jetstream.KeyValuePut
		}
		return
	}
	v := &w.state.view
	if e.Key() == w.cfg.Node.ID {
		v.recordOwnKey(e.Revision())
	}
	var n Node
	put := e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &n) == nil && n.ID == e.Key()
	if before, known := v.nodes[e.Key()]; known && (!put || before.Session != n.Session) {
		v.endSession(before)
	}
	if !put {
		delete(v.nodes, e.Key())
		return
	}
	v.nodes[n.ID] = SeenNode{Node: n, Heard: e.Created(), Came: time.Now()}
}

func (w *watcher) applyLease(e jetstream.KeyValueEntry) {
	dot := strings.LastIndexByte(e.Key(), '.')
	n, err := strconv.Atoi(e.Key()[dot+1:])
	if dot < 0 || err != nil {
		return
	}
	s := Shard{e.Key()[:dot], n}
	slot, served := w.cfg.slotOf(s)
	w.state.Lock()
	defer w.state.Unlock()
	var l lease
	put := e.Operation() == jetstream.KeyValuePut && json.Unmarshal(e.Value(), &l) == nil && (l.Node != "" || l.Form > Form)
	h, held := w.state.holdings.held[slot]
	if served && held && e.Revision() > h.epoch && (!put || l.Session != w.state.session.id) {
		w.state.holdings.doubt[slot] = struct{}{}
	}
	if put {
		w.state.view.leases[s] = leaseRecord{l, e.Revision()}
		return
	}
	w.state.view.removeLease(s, e.Operation())
}

// checkForms refuses to start this node in a cluster whose nodes write records of a newer form.
func (w *watcher) checkForms(ctx context.Context) error {
	for _, kv := range []jetstream.KeyValue{w.cfg.Buckets.Nodes, w.cfg.Buckets.Shards} {
		records, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
		if err != nil {
			return fmt.Errorf("shard: read %s: %w", kv.Bucket(), err)
		}
		var newer error
		err = readCurrent(ctx, records, func(e jetstream.KeyValueEntry) {
			var of struct {
				Form int `json:"form"`
			}
			if json.Unmarshal(e.Value(), &of) == nil && of.Form > Form {
				newer = fmt.Errorf("shard: %s in bucket %s has form %d, and this program knows forms up to %d: %w", e.Key(), kv.Bucket(), of.Form, Form, statedir.ErrNewerForm)
			}
		})
		_ = records.Stop() // its consumer is ephemeral
		if err := errors.Join(err, newer); err != nil {
			return err
		}
	}
	return nil
}
