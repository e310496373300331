package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/lane"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// retentionJob names the lease of the node that removes runs; see Cluster.HoldJob.
	retentionJob = "retention"
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
	// strayAge is how old attachments are that go for want of room if their run was never opened.
	strayAge = 24 * time.Hour
)

// retention removes runs that ended long ago, and the oldest ones where room is short. It decides by
// retentionLimits.next. On a shared server the node that holds retentionJob does it.
type retention struct {
	*remover
	limits retentionLimits
	wake   chan struct{} // has room for one signal

	sweptAt    time.Time // of tombstones
	sweepAfter string    // an address; "": the next sweep begins anew
}

func newRetention(r *remover) *retention {
	return &retention{remover: r, limits: newRetentionLimits(r.cfg.RetainAge, r.cfg.RetainBytes), wake: make(chan struct{}, 1)}
}

// wakeUp makes the next pass begin at once: a new run found no room.
func (r *retention) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default: // a signal waits already
	}
}

// run removes runs until ctx ends.
func (r *retention) run(ctx context.Context) {
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
			r.logger().Warn("retention did not come to its end; it is tried again", "in", every, "error", err)
		}
		timer.Reset(every)
	}
}

// holdsJob reports whether this node is the one that removes runs.
func (r *retention) holdsJob(ctx context.Context) (bool, error) {
	if r.cfg.Cluster == nil {
		return true, nil
	}
	if r.cfg.Cluster.HoldJob == nil {
		return false, nil
	}
	return r.cfg.Cluster.HoldJob(ctx, retentionJob)
}

// runPass removes all runs that must go now.
func (r *retention) runPass(ctx context.Context, now time.Time) error {
	if holds, err := r.holdsJob(ctx); err != nil || !holds {
		return err
	}
	rows, err := r.cfg.Runs.listRows(ctx)
	if err != nil {
		return err
	}
	p := &retentionPass{retention: r, runs: listEnded(rows), listed: map[string]bool{}, now: now}
	for _, row := range rows {
		p.listed[row.RunID] = true
	}
	if err := p.measure(ctx); err != nil {
		return err
	}
	if err := p.removeAll(ctx); err != nil {
		return err
	}
	return r.sweepTombstones(ctx, rows, now)
}

// sweepTombstones removes the tombstones of runs that were deleted long ago, some in each pass.
func (r *retention) sweepTombstones(ctx context.Context, rows []Row, now time.Time) error {
	if r.limits == (retentionLimits{}) || r.sweepAfter == "" && !r.sweptAt.IsZero() && now.Sub(r.sweptAt) < sweepEvery {
		return nil
	}
	listed := map[string]bool{}
	for _, row := range rows {
		listed[row.RunID] = true
	}
	_, last, err := r.removeTombstones(ctx, listed, r.sweepAfter, now)
	if err == nil {
		r.sweptAt, r.sweepAfter = now, last
	}
	return err
}

// retentionPass is one pass over the runs that have ended.
type retentionPass struct {
	*retention
	runs      []endedRun
	listed    map[string]bool // all runs of the index
	use       storageUse
	inFullest func(mailbox.Address) bool
	now       time.Time
	failures  int // runs that could not be removed in time
}

// measure finds what the stores hold.
func (p *retentionPass) measure(ctx context.Context) (err error) {
	use := storageUse{}
	use.logs.used, use.logs.most, err = p.cfg.Post.Room(ctx)
	if err == nil {
		use.index.used, use.index.most, err = p.cfg.Runs.Room(ctx)
	}
	use.bytes, p.inFullest = use.logs.used, func(mailbox.Address) bool { return true }
	if err == nil && p.cfg.LogsStored != nil {
		use.bytes, p.inFullest, err = p.cfg.LogsStored(ctx)
	}
	if err == nil && p.cfg.BlobRoom != nil {
		use.blobs.used, use.blobs.most, err = p.cfg.BlobRoom(ctx, "")
	}
	use.bytes += use.blobs.used
	if err == nil && p.cfg.BlobStrays != nil && p.limits.isShortOf(use) {
		use, err = p.withoutStrays(ctx, use)
	}
	p.use = use
	return err
}

// withoutStrays leaves attachments of runs that were never opened out of what the stores hold, so that nobody can have runs
// removed by attachments alone. Old ones it removes.
func (p *retentionPass) withoutStrays(ctx context.Context, use storageUse) (storageUse, error) {
	var old []string
	err := p.cfg.BlobStrays(ctx, func(run string) bool { return p.listed[run] }, func(run string, bytes uint64, newest time.Time) {
		use.bytes -= min(use.bytes, bytes)
		use.blobs.used -= min(use.blobs.used, bytes)
		if p.now.Sub(newest) >= strayAge {
			old = append(old, run)
		}
	})
	if err != nil {
		return use, fmt.Errorf("control: retention: %w", err)
	}
	for _, run := range old {
		if _, _, err := p.removeRun(ctx, run, true); err != nil && !hasCode(err, client.CodeConflict) { // it was opened meanwhile
			return use, err
		}
		p.logger().Info("attachments removed of a run that was never opened", "run", run)
	}
	return use, nil
}

// removeAll removes one run after the other until none must go. Before a run goes for want of room, the room is
// measured anew.
func (p *retentionPass) removeAll(ctx context.Context) error {
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
		if holds, err := p.holdsJob(ctx); err != nil || !holds {
			return err
		}
		helps, err := p.removeOne(ctx, &p.runs[i], why)
		if err != nil {
			return err
		}
		measured = measured && !helps
	}
}

// removeOne removes a run, unless it must stay or its removal would not help. It returns an error if the pass must
// end: one run that cannot be removed must not keep all others.
func (p *retentionPass) removeOne(ctx context.Context, run *endedRun, why string) (removed bool, err error) {
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
	p.logger().Warn("retention could not remove a run in time; it goes on with the others", "run", run.RunID, "error", err)
	return removed, nil
}

func (p *retentionPass) removeWithin(ctx context.Context, run *endedRun, why string) (removed bool, err error) {
	if helps, err := p.helps(ctx, run, why); err != nil || !helps {
		return false, err
	}
	talk, reason, err := p.conversationOfEnded(ctx, run, why)
	if err == nil && reason == "" {
		run.done = true
		return true, p.removeRunAndTell(ctx, run, talk, why)
	}
	run.done = err != nil || !run.last // one that goes last is looked at again
	return false, p.keep(ctx, run.RunID, reason, err)
}

// keep records that a run stays in this pass, and returns an error that is not about this run alone.
func (p *retentionPass) keep(ctx context.Context, run, reason string, err error) error {
	if ctx.Err() != nil || bus.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("control: retention: %s: %w", run, err)
	}
	if err != nil {
		p.logger().Warn("retention keeps a run that it cannot remove", "run", run, "error", err)
		return nil
	}
	p.logger().Debug("retention keeps a run", "run", run, "why", reason)
	return nil
}

// helps reports whether the removal of a run makes room where it is short, and records in the run if not.
func (p *retentionPass) helps(ctx context.Context, run *endedRun, why string) (bool, error) {
	switch why {
	case removedForLogs:
		logs, err := p.cfg.Post.Addresses(ctx, run.RunID)
		if err != nil {
			return false, fmt.Errorf("control: retention: %w", err)
		}
		run.noLogs = true
		for _, at := range logs {
			run.noLogs = run.noLogs && !p.inFullest(at)
		}
		return !run.noLogs, nil
	case removedForBlobs:
		used, _, err := p.cfg.BlobRoom(ctx, run.RunID)
		run.noBlobs = used == 0
		return !run.noBlobs, err
	}
	return true, nil
}

// conversationOfEnded returns the conversation of a run that has ended, "" if it has none, and why the run must stay; "": it
// need not. A conversation that works or waits keeps all its runs, because the next run begins with the history of an
// earlier one. One that is younger than the age limit keeps the run with its newest history: for want of room such a run
// goes after all others.
func (p *retentionPass) conversationOfEnded(ctx context.Context, run *endedRun, why string) (conversation, reason string, err error) {
	if run.Removing {
		return run.Conversation, "", nil
	}
	conversation, err = p.conversationOf(ctx, run.Row)
	if err != nil || conversation == "" {
		return "", "", err
	}
	s, _, err := p.settledLane(ctx, conversation)
	if err != nil {
		return "", "", err
	}
	if _, busy := s.ActiveRun(); busy || len(s.Queue()) > 0 {
		run.last = false
		return conversation, "its conversation " + conversation + " has a run that has not ended", nil
	}
	if run.last || p.limits.age > 0 && p.now.Sub(time.UnixMilli(lastChange(s))) >= p.limits.age {
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
func (p *retentionPass) newestWithHistory(ctx context.Context, s *lane.State) (string, error) {
	for _, of := range s.Histories() {
		_, err := p.findRun(ctx, of.ID)
		if !isAbsent(err) {
			return of.ID, err
		}
	}
	return "", nil
}

// removeRunAndTell removes a run and publishes that. With the last run of a conversation its lane goes.
func (p *retentionPass) removeRunAndTell(ctx context.Context, run *endedRun, conversation, why string) error {
	var blobs uint64
	if p.cfg.BlobRoom != nil {
		var err error
		if blobs, _, err = p.cfg.BlobRoom(ctx, run.RunID); err != nil {
			return p.keep(ctx, run.RunID, "", err)
		}
	}
	reply, size, err := p.removeRun(ctx, run.RunID, false)
	if err != nil {
		return p.keep(ctx, run.RunID, "", err)
	}
	if reply.Already {
		return nil // by a request meanwhile
	}
	p.cfg.Publish(runRemovedEvent(run, p.cfg.Name, event.RunRemoved{Why: why, Ended: run.Ended, Bytes: size + blobs}, p.now))
	p.logger().Info("run removed", "run", run.RunID, "why", why, "ended", run.Ended, "bytes", size+blobs)
	if conversation == "" {
		return nil
	}
	return p.removeEmptyLane(ctx, conversation)
}

// removeEmptyLane removes the lane of a conversation none of whose runs is left.
func (p *retentionPass) removeEmptyLane(ctx context.Context, conversation string) error {
	s, err := p.readLane(ctx, conversation)
	if err != nil {
		return p.keep(ctx, conversation, "", err)
	}
	for _, of := range s.Runs {
		if _, err := p.findRun(ctx, of.ID); !isAbsent(err) {
			return err
		}
	}
	if _, err = p.deleteConversation(ctx, conversation); err != nil && !isNotFound(err) && !hasCode(err, client.CodeConflict) {
		return p.keep(ctx, conversation, "", err)
	}
	return nil
}

// runRemovedEvent returns the event of a run that retention removed.
func runRemovedEvent(run *endedRun, node string, r event.RunRemoved, now time.Time) event.Published {
	at := mailbox.At(run.RunID, mailbox.Super)
	return event.Published{V: 1, ID: fmt.Sprintf("%s#removed", at), TS: event.FormatStamp(now.UnixMilli()), Run: run.RunID, Agent: mailbox.Super, Node: node,
		Kind: event.KindRunRemoved, Data: r}
}
