package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
)

// ReconcileEveryDefault is the default of Config.ReconcileEvery.
const ReconcileEveryDefault = 5 * time.Minute

// reconcileGrace is how old the newest entry of a log must be before a sweep at an interval acts on it, unless
// the interval is shorter: the actor of a younger entry may be about to begin.
const reconcileGrace = 10 * time.Second

// Why a sweep ran, in run.reconciled.
const (
	sweepStarted  = "started"
	sweepInterval = "interval"
)

// StartReconciling sweeps once, and then every Config.ReconcileEvery until the node closes. A sweep finds the
// unfinished runs in the logs of this node that no actor works on, and wakes their actors. What the log of an
// actor ends with decides what that does: the actor continues, reports an end that the index does not
// know, or stays passivated until an answer or a timer.
//
// A node that shares its logs starts without its first sweep if the server does not answer in time: it also takes
// up the runs of each shard that it gains.
func (o *Owner) StartReconciling(ctx context.Context) error {
	if err := o.reconcile(ctx, sweepStarted); err != nil && !o.IsShared() {
		return err
	} else if err != nil {
		o.logFailedSweep(err)
	}
	o.cfg.Work.Go(o.keepReconciling)
	return nil
}

func (o *Owner) keepReconciling() {
	tick := time.NewTicker(o.cfg.ReconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-o.cfg.Life.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(o.cfg.Life, takeUpMost)
		err := o.reconcile(ctx, sweepInterval)
		cancel()
		if err != nil && o.cfg.Life.Err() == nil {
			o.logFailedSweep(err)
		}
	}
}

func (o *Owner) logFailedSweep(err error) {
	o.cfg.Logger.Warn("cannot look for runs that no node owns; retrying", "error", err, "after", o.cfg.ReconcileEvery)
}

// reconcile makes one sweep, and publishes its counts.
func (o *Owner) reconcile(ctx context.Context, why string) error {
	s := &runSweep{t: unfinishedFinder{o}, why: why, begun: time.Now(), runs: map[string]runFate{}}
	if err := s.run(ctx); err != nil {
		return err
	}
	o.woken.forgetOthers()
	counts := s.count()
	node := o.cfg.Name
	if k := o.keeper.Load(); k != nil {
		node = k.ID()
	}
	o.cfg.Publish(control.RunReconciledEvent(node, o.cfg.Name, counts, time.Now()))
	if counts.Resumed+counts.Queued+counts.Ended > 0 {
		o.cfg.Logger.Info("runs that no node owned", "why", why, "resumed", counts.Resumed, "queued", counts.Queued, "ended", counts.Ended)
	}
	return nil
}

// runFate is what a sweep found of an unfinished run. A larger one counts, if the logs of a run differ.
type runFate int

const (
	fateElsewhere runFate = iota // no log of it is here
	fateWaits                    // its actors are passivated
	fateOwned                    // an actor works on it, or it is queued
	fateEnded                    // it has ended, but the index lacks the end
	fateResumed                  // it had no owner
)

// runSweep is one sweep over the logs of a node.
type runSweep struct {
	t     unfinishedFinder
	why   string
	begun time.Time
	runs  map[string]runFate
}

func (s *runSweep) run(ctx context.Context) error {
	open, err := s.unfinished(ctx)
	if err != nil || len(open) == 0 { // the newest entries of ended runs say nothing
		return err
	}
	begin := s.t.newRequeuePass
	if s.why == sweepStarted && !s.t.IsShared() {
		begin = s.t.newWholeRequeuePass
	}
	pass := begin()
	defer pass.resolveDoubts(ctx)
	each := s.inspectHeads(open, pass)
	if !s.t.IsShared() {
		err = s.t.cfg.Post.Heads(ctx, each)
	} else {
		err = s.eachPool(func(pool string, shards []int) error { return s.t.cfg.Streams.HeadsOf(ctx, pool, shards, each) })
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// unfinished lists the unfinished runs of the node's logs.
func (s *runSweep) unfinished(ctx context.Context) ([]client.RunInfo, error) {
	if !s.t.IsShared() {
		return s.t.UnfinishedRuns(ctx)
	}
	list, err := s.t.reading.index.readShared(ctx, s.t.cfg.Runs.List)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var logs []mailbox.Address
	if err := s.eachPool(func(pool string, shards []int) error {
		more, err := s.t.cfg.Streams.AddressesIn(ctx, pool, shards...)
		logs = append(logs, more...)
		return err
	}); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	open, _, err := s.t.findUnfinished(ctx, list, logs)
	return open, err
}

// eachPool calls do with the shards that the node holds of each pool.
func (s *runSweep) eachPool(do func(pool string, shards []int) error) error {
	k := s.t.keeper.Load()
	byPool := map[string][]int{}
	for _, slot := range k.HeldShards() {
		at := k.ShardAt(slot)
		byPool[at.Pool] = append(byPool[at.Pool], at.N)
	}
	for pool, shards := range byPool {
		if err := do(pool, shards); err != nil {
			return err
		}
	}
	return nil
}

// inspectHeads returns a function that receives the newest entry of each log, and wakes the actors of runs that
// no node owns.
func (s *runSweep) inspectHeads(open []client.RunInfo, pass *requeuePass) func(mailbox.Head) error {
	isOpen := map[string]bool{}
	for _, i := range open {
		isOpen[i.RunID] = true
	}
	wake := s.t.newWaker(open, pass)
	return func(d mailbox.Head) error {
		run := d.To.Run()
		if !isOpen[run] {
			return nil
		}
		st := activation.ReadStanding(d.To, d.Data, d.Entries)
		fate := fateResumed
		switch {
		case st.Rests:
			fate = fateWaits
		case st.Ended && d.To.Agent() != mailbox.Super:
			return nil
		case s.t.admission.isHere(run), s.why == sweepInterval && s.begun.Sub(time.UnixMilli(d.At)) < min(reconcileGrace, s.t.cfg.ReconcileEvery):
			fate = fateOwned
		case st.Ended:
			fate = fateEnded
		}
		atWork := fate == fateWaits || fate == fateOwned // its actor works, or is passivated as the node knows
		if s.why == sweepInterval && !atWork && !s.t.woken.isDue(d) {
			fate, atWork = fateWaits, true
		}
		s.runs[run] = max(s.runs[run], fate)
		if s.why == sweepInterval && atWork {
			return nil
		}
		return wake(d)
	}
}

// count counts the runs by what was found of them.
func (s *runSweep) count() event.RunReconciled {
	c := event.RunReconciled{Why: s.why}
	for run, fate := range s.runs {
		switch fate {
		case fateElsewhere:
			continue
		case fateWaits:
			c.Waiting++
		case fateOwned:
			c.Owned++
		case fateEnded:
			c.Ended++
		case fateResumed:
			if s.t.admission.isQueued(run) {
				c.Queued++
			} else {
				c.Resumed++
			}
		}
	}
	return c
}

// isHere reports whether this node works on a run, or has it in its queue.
func (a *runAdmission) isHere(run string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, starting := a.starting[run]
	return starting || a.queued[run] || a.live[run].actors > 0
}
