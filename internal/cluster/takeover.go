package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/control"
)

// shardTakeover wakes the unfinished runs of gained shards. Each shard has its own attempts, so an
// unreadable shard does not block the others: the node keeps its lease, retries after growing
// pauses, and reports the shard until it can be read or another node has it.
type shardTakeover struct {
	ctx    context.Context
	try    func(ctx context.Context, slot int) error
	holds  func(slot int) bool
	report func(slot int, err error) // a nil err: this node can read the shard again, or no longer holds it
	first  time.Duration             // timeout of the first attempt: see growingTimeout
	pause  time.Duration             // before the second attempt

	mu    sync.Mutex
	state map[int]*takeoverState
	turn  chan struct{}
	wait  *sync.WaitGroup
}

// takeoverState is the work at one shard.
type takeoverState struct {
	again   bool // the shard was gained again meanwhile
	running bool
}

const (
	takeoversAtOnce = 16               // attempts at once, not counting long ones
	takeoverTurn    = 5 * time.Second  // after which an attempt counts as long
	pauseMax        = 30 * time.Second // between two attempts at a shard that cannot be read
)

// startTakeover takes over the runs of a shard in a goroutine. If one is at work on the shard, it begins
// again after it is done, because the shard was gained again.
func (u *shardTakeover) startTakeover(slot int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.state[slot]
	if t == nil {
		t = &takeoverState{}
		u.state[slot] = t
	}
	if t.running {
		t.again = true
		return
	}
	t.running = true
	u.wait.Go(func() { u.retryTakeover(slot) })
}

// retryTakeover tries until the runs of a shard are taken over, or the shard is lost.
func (u *shardTakeover) retryTakeover(slot int) {
	taking := growingTimeout{first: u.first, most: takeUpMost}
	pause, failed := u.pause, false
	for {
		err := taking.runWithin(u.ctx, func(ctx context.Context) error { return u.tryInTurn(ctx, slot) })
		switch {
		case u.ctx.Err() != nil:
			return
		case err == nil, !u.holds(slot):
			if failed {
				u.report(slot, nil)
			}
			if u.endTakeover(slot) {
				return
			}
			taking, pause, failed = growingTimeout{first: u.first, most: takeUpMost}, u.pause, false
			continue
		}
		failed = true
		u.report(slot, err)
		select {
		case <-u.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, pauseMax)
	}
}

// endTakeover ends the work at a shard, unless it was gained again meanwhile.
func (u *shardTakeover) endTakeover(slot int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.state[slot]
	t.running, t.again = t.again, false
	return !t.running
}

// tryInTurn waits for a turn and makes one attempt. After takeoverTurn the attempt continues, and another
// shard may begin one: a slow shard must not hold up the others.
func (u *shardTakeover) tryInTurn(ctx context.Context, slot int) error {
	select {
	case u.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	var once sync.Once
	leave := func() { once.Do(func() { <-u.turn }) }
	defer leave()
	late := time.AfterFunc(takeoverTurn, leave)
	defer late.Stop()
	return u.try(ctx, slot)
}

// unfinishedFinder finds and wakes the unfinished runs of logs that an Owner has gained.
type unfinishedFinder struct{ *Owner }

// newShardTakeover makes the takeover of shards of a node.
func (o unfinishedFinder) newShardTakeover() *shardTakeover {
	return &shardTakeover{ctx: o.cfg.Life, try: o.takeOverShard, report: o.reportReadability, first: openTimeout, pause: followPause, state: map[int]*takeoverState{},
		turn: make(chan struct{}, takeoversAtOnce), wait: o.cfg.Work,
		holds: func(slot int) bool { _, ok := o.keeper.Load().Holds(slot); return ok }}
}

// takeOverShard wakes or queues the actors of unfinished runs in one shard and records passivated ones (newWaker). If
// it finds runs that the index lacked, it has all shards taken over again.
func (o unfinishedFinder) takeOverShard(ctx context.Context, slot int) error {
	s := o.keeper.Load().ShardAt(slot)
	list, err := o.reading.index.readShared(ctx, o.cfg.Runs.List)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	logs, err := o.cfg.Streams.AddressesIn(ctx, s.Pool, s.N)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	open, found, err := o.findUnfinished(ctx, list, logs)
	if found > 0 {
		o.reading.retakeAll() // reads skipped their logs, because their runs were unknown
	}
	if err != nil {
		return err
	}
	pass := o.newRequeuePass()
	defer pass.resolveDoubts(ctx)
	if err := o.cfg.Streams.HeadsOf(ctx, s.Pool, []int{s.N}, o.newWaker(open, pass)); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// reportReadability logs and publishes that a shard cannot be read, or, with a nil err, that this node can read it
// again or no longer holds it. It publishes only a change.
func (o *Owner) reportReadability(slot int, err error) {
	k := o.keeper.Load()
	if k == nil {
		return
	}
	s := k.ShardAt(slot)
	news := k.SetUnreadable(slot, err != nil)
	if err != nil {
		o.cfg.Logger.Error("a shard cannot be read: its runs do not proceed; retrying", "pool", s.Pool, "shard", s.N, "error", err)
	}
	if !news {
		return
	}
	why := ""
	if err != nil {
		why = string(o.cfg.Mask.MaskBytes([]byte(err.Error())))
	} else {
		o.cfg.Logger.Info("shard readable again, or no longer held", "pool", s.Pool, "shard", s.N)
	}
	o.cfg.Publish(control.ShardUnreadableEvent(k.ID(), o.cfg.Name, err != nil, event.ShardUnreadable{Pool: s.Pool, Shard: s.N, Why: why}, time.Now()))
}
