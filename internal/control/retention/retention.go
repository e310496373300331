// Package retention removes runs that ended long ago, and the oldest ones where room is short. It decides which run goes
// next, and when; the control service removes it.
package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// retentionEvery is the time between two passes. An age below 20 minutes makes it shorter, down to passPauseMin.
	retentionEvery = 5 * time.Minute
	passPauseMin   = time.Second
	// retentionDelay is the time from the start of a node to its first pass.
	retentionDelay = 3 * time.Second
	// removalTimeout bounds the removal of one run; removalFailuresMax runs that cannot be removed in time end a pass.
	removalTimeout     = time.Minute
	removalFailuresMax = 3
	// sweepEvery is the time between two sweeps of tombstones.
	sweepEvery = time.Hour
	// strayAge is the age at which attachments of a run that was never opened may be removed for want of room.
	strayAge = 24 * time.Hour
)

// Retention removes runs that ended long ago, and the oldest ones where room is short. It decides by
// limits.next. On a shared server the node that holds retentionJob does it.
type Retention struct {
	cfg Config

	limits limits
	wake   chan struct{} // has room for one signal

	warnedNearlyFull bool // it was reported that the stores are nearly full

	sweptAt    time.Time // of tombstones
	sweepAfter string    // the address after which the sweep of tombstones continues; "": at the beginning
}

// New returns a retention that has removed nothing yet.
func New(cfg Config) *Retention {
	return &Retention{cfg: cfg, limits: newLimits(cfg.Age, cfg.Bytes), wake: make(chan struct{}, 1)}
}

// WakeUp makes the next pass begin at once: a new run found no room.
func (r *Retention) WakeUp() {
	select {
	case r.wake <- struct{}{}:
	default: // a signal waits already
	}
}

// Run removes runs until ctx ends.
func (r *Retention) Run(ctx context.Context) {
	every := retentionEvery
	if r.limits.age > 0 {
		every = min(every, max(r.limits.age/4, passPauseMin))
	}
	timer := time.NewTimer(min(retentionDelay, every))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		if err := r.runPass(ctx, r.cfg.Now()); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("retention pass failed; retrying", "in", every, "error", err)
		}
		timer.Reset(every)
	}
}

// runPass removes all runs that must go now.
func (r *Retention) runPass(ctx context.Context, now time.Time) error {
	if holds, err := r.cfg.HoldsJob(ctx); err != nil || !holds {
		return err
	}
	rows, err := r.cfg.Index.ListRows(ctx)
	if err != nil {
		return err
	}
	p := &pass{Retention: r, runs: listRemovable(rows), listed: map[string]bool{}, now: now}
	for _, row := range rows {
		p.listed[row.RunID] = true
	}
	if err := p.measure(ctx); err != nil {
		return err
	}
	if err := p.removeStrays(ctx); err != nil {
		return err
	}
	if err := p.removeAll(ctx); err != nil {
		return err
	}
	if err := p.warnNearlyFull(ctx); err != nil {
		return err
	}
	return r.sweepTombstones(ctx, rows, now)
}

// sweepTombstones removes the tombstones of runs that were deleted long ago, some in each pass.
func (r *Retention) sweepTombstones(ctx context.Context, rows []runindex.Row, now time.Time) error {
	if r.limits == (limits{}) || r.sweepAfter == "" && !r.sweptAt.IsZero() && now.Sub(r.sweptAt) < sweepEvery {
		return nil
	}
	listed := map[string]bool{}
	for _, row := range rows {
		listed[row.RunID] = true
	}
	_, last, err := r.cfg.RemoveTombstones(ctx, listed, r.sweepAfter, now)
	if err == nil {
		r.sweptAt, r.sweepAfter = now, last
	}
	return err
}

// pass is one pass over the runs that have ended.
type pass struct {
	*Retention
	runs             []endedRun
	listed           map[string]bool // all runs of the index
	use              storageUse
	strays           []string // runs that were never opened and whose attachments may be removed
	isInFullestStore func(mailbox.Address) bool
	now              time.Time
	failures         int // removals that failed in this pass
}

// measure finds what the stores hold, and which attachments belong to no run. It removes nothing.
func (p *pass) measure(ctx context.Context) (err error) {
	var use storageUse
	if use.logs.used, use.logs.most, err = p.cfg.Store.Room(ctx); err != nil {
		return err
	}
	if use.index.used, use.index.most, err = p.cfg.Index.Room(ctx); err != nil {
		return err
	}
	use.bytes, p.isInFullestStore = use.logs.used, func(mailbox.Address) bool { return true }
	if p.cfg.LogsStored != nil {
		if use.bytes, p.isInFullestStore, err = p.cfg.LogsStored(ctx); err != nil {
			return err
		}
	}
	if p.cfg.BlobRoom != nil {
		if use.blobs.used, use.blobs.most, err = p.cfg.BlobRoom(ctx, ""); err != nil {
			return err
		}
	}
	use.bytes += use.blobs.used
	var strays []string
	if p.cfg.BlobStrays != nil && p.limits.countsBlobs(use) {
		if use, strays, err = p.excludeStrays(ctx, use); err != nil {
			return err
		}
	}
	p.use, p.strays = use, strays
	return nil
}

// excludeStrays subtracts the attachments of runs that were never opened, so that uploads alone cannot force the
// removal of other runs. old are the runs whose attachments may be removed.
func (p *pass) excludeStrays(ctx context.Context, use storageUse) (rest storageUse, old []string, err error) {
	err = p.cfg.BlobStrays(ctx, func(run string) bool { return p.listed[run] }, func(run string, bytes uint64, newest time.Time) {
		use.bytes -= min(use.bytes, bytes)
		use.blobs.used -= min(use.blobs.used, bytes)
		if p.now.Sub(newest) >= strayAge {
			old = append(old, run)
		}
	})
	if err != nil {
		return use, nil, fmt.Errorf("control: retention: %w", err)
	}
	return use, old, nil
}

// removeStrays removes the attachments of runs that were never opened. It returns an error if the pass must end.
func (p *pass) removeStrays(ctx context.Context) error {
	for _, run := range p.strays {
		within, cancel := context.WithTimeout(ctx, removalTimeout)
		_, _, err := p.cfg.RemoveRun(within, run, true)
		cancel()
		switch {
		case err == nil:
			p.cfg.Logger.Info("removed attachments of a run that was never opened", "run", run)
		case ctx.Err() != nil || bus.IsUnavailable(err):
			return fmt.Errorf("control: retention: %s: %w", run, err)
		case !refuse.HasCode(err, client.CodeConflict): // a conflict: the run was opened meanwhile
			p.cfg.Logger.Warn("cannot remove attachments of a run that was never opened", "run", run, "error", err)
		}
	}
	return nil
}

// removeAll removes one run after the other until none must go. Before a run goes for want of room, the room is
// measured anew.
func (p *pass) removeAll(ctx context.Context) error {
	for measured := true; ; {
		i, why := p.limits.next(p.runs, p.use, p.now)
		if i < 0 {
			return nil
		}
		if isForRoom(why) && !measured {
			if err := p.measure(ctx); err != nil {
				return err
			}
			measured = true
			continue
		}
		if holds, err := p.cfg.HoldsJob(ctx); err != nil || !holds {
			return err
		}
		removed, err := p.removeOne(ctx, &p.runs[i], why)
		if err != nil {
			return err
		}
		measured = measured && !removed
	}
}

// removeOne removes a run, unless it must stay or its removal would not help. It returns an error if the pass must
// end: one run that cannot be removed must not keep all others.
func (p *pass) removeOne(ctx context.Context, run *endedRun, why string) (removed bool, err error) {
	within, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	removed, err = p.removeWithin(within, run, why)
	if err == nil {
		return removed, nil
	}
	run.done, p.failures = true, p.failures+1
	if ctx.Err() != nil || p.failures >= removalFailuresMax {
		return removed, err
	}
	p.cfg.Logger.Warn("cannot remove a run; continuing with the others", "run", run.RunID, "error", err)
	return removed, nil
}

func (p *pass) removeWithin(ctx context.Context, run *endedRun, why string) (removed bool, err error) {
	if makesRoom, err := p.checkMakesRoom(ctx, run, why); err != nil || !makesRoom {
		return false, err
	}
	talk, reason, err := p.mayRemove(ctx, run, why)
	if err == nil && reason == "" {
		run.done = true
		return p.removeAndPublish(ctx, run, talk, why)
	}
	run.done = err != nil || !run.last // one that goes last is looked at again
	if err != nil {
		return false, p.logUnlessFatal(ctx, err, "cannot remove a run", "run", run.RunID)
	}
	p.cfg.Logger.Debug("retention keeps a run", "run", run.RunID, "why", reason)
	return false, nil
}

// logUnlessFatal logs an error that is about one run or conversation. It returns the others, with which the pass ends.
func (p *pass) logUnlessFatal(ctx context.Context, err error, text, kind, id string) error {
	if ctx.Err() != nil || bus.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("control: retention: %s: %w", id, err)
	}
	p.cfg.Logger.Warn(text, kind, id, "error", err)
	return nil
}

// checkMakesRoom reports whether the removal of a run makes room where it is short, and records in the run if not.
func (p *pass) checkMakesRoom(ctx context.Context, run *endedRun, why string) (bool, error) {
	switch why {
	case removedForLogs:
		logs, err := p.cfg.Store.Addresses(ctx, run.RunID)
		if err != nil {
			return false, fmt.Errorf("control: retention: %w", err)
		}
		run.noLogs = true
		for _, at := range logs {
			run.noLogs = run.noLogs && !p.isInFullestStore(at)
		}
		return !run.noLogs, nil
	case removedForBlobs:
		used, _, err := p.cfg.BlobRoom(ctx, run.RunID)
		run.noBlobs = used == 0
		return !run.noBlobs, err
	}
	return true, nil
}

// mayRemove returns the conversation of a run that has ended ("": it has none), and a reason if the run must stay.
// A conversation that works or waits keeps all its runs, because the next run begins with the history of an
// earlier one. One that is younger than the age limit keeps the run with its newest history: for want of room such a
// run goes after all others, which mayRemove records in the run.
func (p *pass) mayRemove(ctx context.Context, run *endedRun, why string) (conversation, reason string, err error) {
	if run.Removing {
		return run.Conversation, "", nil
	}
	conversation, err = p.cfg.ConversationOf(ctx, run.Row)
	if err != nil || conversation == "" {
		return "", "", err
	}
	s, _, err := p.cfg.SettledLane(ctx, conversation)
	if err != nil {
		return "", "", err
	}
	if _, busy := s.ActiveRun(); busy || len(s.Queue()) > 0 {
		run.last = false
		return conversation, "its conversation " + conversation + " has a run that has not ended", nil
	}
	if run.last || p.limits.age > 0 && p.now.Sub(time.UnixMilli(s.LastChange())) >= p.limits.age {
		return conversation, "", nil
	}
	newest, err := p.newestWithHistory(ctx, s)
	if newest == run.RunID {
		run.last = isForRoom(why)
		reason = "its conversation " + conversation + " continues with its history"
	}
	return conversation, reason, err
}

// newestWithHistory returns the run with the newest history of a conversation; "": no run has one.
func (p *pass) newestWithHistory(ctx context.Context, s *lane.State) (string, error) {
	for _, of := range s.Histories() {
		_, err := p.cfg.FindRun(ctx, of.ID)
		if !refuse.IsAbsent(err) {
			return of.ID, err
		}
	}
	return "", nil
}

// removeAndPublish removes a run and publishes that. With the last run of a conversation its lane goes.
func (p *pass) removeAndPublish(ctx context.Context, run *endedRun, conversation, why string) (removed bool, err error) {
	var blobs uint64
	if p.cfg.BlobRoom != nil {
		if blobs, _, err = p.cfg.BlobRoom(ctx, run.RunID); err != nil {
			return false, p.logUnlessFatal(ctx, err, "cannot remove a run", "run", run.RunID)
		}
	}
	reply, size, err := p.cfg.RemoveRun(ctx, run.RunID, false)
	if err != nil {
		return false, p.logUnlessFatal(ctx, err, "cannot remove a run", "run", run.RunID)
	}
	if reply.Already {
		return true, nil // by a request meanwhile
	}
	p.cfg.Publish(runRemovedEvent(run, p.cfg.Node, event.RunRemoved{Why: why, Ended: run.Ended, Bytes: size + blobs}, p.now))
	p.cfg.Logger.Info("run removed", "run", run.RunID, "why", why, "ended", run.Ended, "bytes", size+blobs)
	if conversation != "" {
		p.removeEmptyLane(ctx, conversation)
	}
	return true, nil
}

// removeEmptyLane removes the lane of a conversation none of whose runs is left. One that it cannot remove stays, and a
// later message continues it without history.
func (p *pass) removeEmptyLane(ctx context.Context, conversation string) {
	empty, err := p.isLaneEmpty(ctx, conversation)
	if err == nil && empty {
		_, err = p.cfg.DeleteConversation(ctx, conversation)
	}
	if err != nil && !refuse.IsNotFound(err) && !refuse.HasCode(err, client.CodeConflict) {
		p.cfg.Logger.Warn("cannot remove an empty lane", "conversation", conversation, "error", err)
	}
}

// isLaneEmpty reports whether none of the runs of a conversation is left.
func (p *pass) isLaneEmpty(ctx context.Context, conversation string) (bool, error) {
	s, err := p.cfg.ReadLane(ctx, conversation)
	if err != nil {
		return false, err
	}
	for _, of := range s.Runs {
		if _, err := p.cfg.FindRun(ctx, of.ID); !refuse.IsAbsent(err) {
			return false, err
		}
	}
	return true, nil
}

// runRemovedEvent returns the event of a run that retention removed.
func runRemovedEvent(run *endedRun, node string, r event.RunRemoved, now time.Time) event.Published {
	at := mailbox.At(run.RunID, mailbox.Super)
	return activation.NewPublished(now.UnixMilli(), event.Published{ID: fmt.Sprintf("%s#removed", at), Run: run.RunID, Agent: mailbox.Super, Node: node,
		Kind: event.KindRunRemoved, Data: r})
}
