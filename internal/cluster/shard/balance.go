package shard

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// balancer carries out the plans: it takes shards, brings those that are to be given away
// to rest, and gives them back.
type balancer struct {
	cfg     *Config
	state   *keeperState
	wakeup  wakeup
	store   *leaseStore
	planner *planner
	// unlogged counts the changes since the last line of the log: a balance among nodes moves shards one at a time.
	unlogged struct{ gained, lost int }
}

// runPlan takes and gives away what the present view asks for.
func (b *balancer) runPlan(ctx context.Context) {
	b.reportChanges(b.dropLost(ctx))
	p := b.planner.nextPlan()
	taking, cancel := b.cfg.roundTimeout(ctx)
	defer cancel()
	gained := eachShard(p.Take, func(s int) bool { return b.store.takeLease(taking, s) })
	b.reportTaken(gained)
	for _, s := range p.Give {
		b.drainShard(s)
	}
	b.state.Lock()
	quiet, why := b.state.holdings.takeQuiet(), Rebalanced
	if b.state.isLeaving() {
		why = Drained
	}
	b.state.Unlock()
	lost := b.dropAll(quiet, why)
	b.reportChanges(gained, lost)
	freeing, enough := b.cfg.roundTimeout(ctx)
	defer enough()
	b.releaseLeases(freeing, lost)
}

// eachShard calls do for shards, some at a time, and returns those for which it is true.
func eachShard(slots []int, do func(slot int) bool) (list []int) {
	var wait sync.WaitGroup
	is := make([]bool, len(slots))
	turn := make(chan struct{}, requestsAtOnce)
	for i, s := range slots {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			is[i] = do(s)
		})
	}
	wait.Wait()
	for i, s := range slots {
		if is[i] {
			list = append(list, s)
		}
	}
	return list
}

// dropLost stops holding lost shards: the session has ended, or the lease belongs to
// another node or is gone. It returns the lost shards, and the regained ones: a shard of a
// session that was renewed late, and a shard whose lease was in doubt and turned out to be
// this node's. An entry that arrived in such a shard meanwhile has activated no actor.
func (b *balancer) dropLost(ctx context.Context) (again, lost []int) {
	confirmed, gone := b.resolveDoubts(ctx)
	b.state.Lock()
	for _, s := range b.state.holdings.ofOtherSessions(b.state.session.id) {
		if !slices.Contains(gone, s) {
			gone = append(gone, s)
		}
	}
	b.state.Unlock()
	if lost = b.dropAll(gone, Expired); len(lost) > 0 {
		b.cfg.Logger.Warn("leases are lost", "shards", b.cfg.shardNames(lost))
	}
	b.state.Lock()
	defer b.state.Unlock()
	held := b.state.holdings.held
	for _, s := range lost {
		b.state.holdings.former[s] = struct{}{}
	}
	again = slices.DeleteFunc(confirmed, func(s int) bool { _, ok := held[s]; return !ok })
	if b.state.session.lapsed {
		again = slices.Sorted(maps.Keys(held))
	}
	b.state.session.lapsed = false
	return again, lost
}

// resolveDoubts asks the leader about the leases that are in doubt. A lease that cannot be
// read stays in doubt.
func (b *balancer) resolveDoubts(ctx context.Context) (confirmed, gone []int) {
	b.state.RLock()
	doubtful := slices.Collect(maps.Keys(b.state.holdings.doubt))
	b.state.RUnlock()
	ctx, cancel := b.cfg.roundTimeout(ctx)
	defer cancel()
	for _, s := range doubtful {
		_, ours, err := b.store.isOurs(ctx, s)
		if err != nil {
			continue
		}
		if ours {
			confirmed = append(confirmed, s)
		} else {
			gone = append(gone, s)
		}
		b.state.Lock()
		delete(b.state.holdings.doubt, s)
		b.state.Unlock()
	}
	return confirmed, gone
}

// dropAll stops holding shards, reports it, and returns those that were held.
func (b *balancer) dropAll(slots []int, why MoveReason) (lost []int) {
	epochs := map[int]uint64{}
	b.state.Lock()
	for _, s := range slots {
		if epoch, ok := b.state.holdings.drop(s); ok {
			lost, epochs[s] = append(lost, s), epoch
		}
	}
	b.state.Unlock()
	b.reportReleased(lost, epochs, why)
	return lost
}

// drainShard drains a shard, once. The plan after that gives it away.
func (b *balancer) drainShard(slot int) {
	b.state.Lock()
	epoch, ok := b.state.holdings.beginHandOff(slot)
	b.state.Unlock()
	if !ok {
		return
	}
	b.cfg.DrainShard(slot, epoch, func() {
		b.state.Lock()
		b.state.holdings.setQuiet(slot, epoch)
		b.state.Unlock()
		b.wakeup.wake()
	})
}

// releaseLeases deletes leases, including those that earlier calls could not delete: Close
// retries what a plan could not finish. It returns how many leases may still exist.
func (b *balancer) releaseLeases(ctx context.Context, slots []int) (left int) {
	b.state.Lock()
	slots = append(slots, b.state.holdings.takeOwed()...)
	b.state.Unlock()
	owed := eachShard(slots, func(s int) bool { return !b.store.releaseLease(ctx, s) })
	b.state.Lock()
	defer b.state.Unlock()
	for _, s := range owed {
		b.state.holdings.owed[s] = struct{}{}
	}
	return len(owed)
}

// releaseAll stops holding all shards and gives their leases back. It returns how many
// leases may still exist.
func (b *balancer) releaseAll(ctx context.Context) (left int) {
	b.state.RLock()
	list := b.state.holdings.heldSlots()
	b.state.RUnlock()
	return b.releaseLeases(ctx, b.dropAll(list, Drained))
}

// reportChanges tells the owner of the Keeper which shards were gained and lost.
func (b *balancer) reportChanges(gained, lost []int) {
	if len(gained)+len(lost) == 0 {
		return
	}
	b.unlogged.gained += len(gained)
	b.unlogged.lost += len(lost)
	b.cfg.Logger.Debug("shards changed", "node", b.cfg.Node.ID, "gained", b.cfg.shardNames(gained), "lost", b.cfg.shardNames(lost))
	b.cfg.ShardsChanged(gained, lost)
}

// logChanges logs how many shards were gained and lost since the last such line. Only the
// goroutine that plans calls it.
func (b *balancer) logChanges() {
	if b.unlogged.gained+b.unlogged.lost == 0 {
		return
	}
	b.state.RLock()
	held := len(b.state.holdings.held)
	b.state.RUnlock()
	b.cfg.Logger.Info("shards changed", "node", b.cfg.Node.ID, "gained", b.unlogged.gained, "lost", b.unlogged.lost, "held", held)
	b.unlogged.gained, b.unlogged.lost = 0, 0
}

// reportTaken reports shards that were taken.
func (b *balancer) reportTaken(slots []int) {
	for _, slot := range slots {
		s := b.cfg.slots[slot]
		b.state.RLock()
		h, before := b.state.holdings.held[slot], b.state.view.ends[s]
		b.state.RUnlock()
		if before.why == "" {
			before.why = Fresh
		}
		b.cfg.ShardMoved(b.cfg.Node.ID, ShardMove{Shard: s, Taken: true, Why: before.why, Epoch: h.epoch, Other: before.by})
	}
}

// reportReleased reports shards that this node does not hold any more.
func (b *balancer) reportReleased(slots []int, epochs map[int]uint64, why MoveReason) {
	for _, slot := range slots {
		m := ShardMove{Shard: b.cfg.slots[slot], Why: why, Epoch: epochs[slot]}
		if why == Rebalanced {
			b.state.RLock()
			nodes := b.state.view.takersOf(m.Pool)
			b.state.RUnlock()
			m.Other = BestNode(m.Pool, m.N, nodes)
		}
		b.cfg.ShardMoved(b.cfg.Node.ID, m)
	}
}
