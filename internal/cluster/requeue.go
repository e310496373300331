package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// requeuePass is one pass over logs that another node, or process, owned: it queues the runs
// that have not begun and wakes the actors of the others.
type requeuePass struct {
	t     unfinishedFinder
	doubt []mailbox.Address // the newest entry is a request: the run may be queued
	whole bool              // it covers all logs of the node: the queue waits for its end
}

// newRequeuePass begins a pass over some logs of the node.
func (o unfinishedFinder) newRequeuePass() *requeuePass { return &requeuePass{t: o} }

// newWholeRequeuePass begins a pass over all logs of the node. The queue does not move until
// resolveDoubts, so that runs that have begun are counted first.
func (o unfinishedFinder) newWholeRequeuePass() *requeuePass {
	a := &o.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counting++
	return &requeuePass{t: o, whole: true}
}

// inspectLog decides by the newest entry of a log. A request, such as a steer, does not show
// whether its run has begun: resolveDoubts decides.
func (r *requeuePass) inspectLog(d mailbox.Message) {
	switch kind, from := activation.InspectEntry(d.Data); {
	case from != activation.OriginClient:
		r.wakeActor(d.To)
	case d.To.Agent() == mailbox.Super && kind == supervisor.Opened{}.Kind():
		r.t.admission.queueAgain(queuedRun{d.To, d.Stamp()})
	default:
		r.doubt = append(r.doubt, d.To)
	}
}

// resolveDoubts ends a pass: the supervisors in doubt first, because the queue then shows
// whether their agents wait.
func (r *requeuePass) resolveDoubts(ctx context.Context) {
	a := &r.t.admission
	for _, at := range r.doubt {
		if at.Agent() != mailbox.Super {
			continue
		}
		if q, waits := r.t.readUnbegun(ctx, at); waits {
			a.queueAgain(q)
		} else {
			r.wakeActor(at)
		}
	}
	for _, at := range r.doubt {
		if at.Agent() != mailbox.Super && !a.isQueued(at.Run()) {
			r.wakeActor(at)
		}
	}
	if r.whole {
		a.mu.Lock()
		a.counting--
		a.mu.Unlock()
	}
	a.beginQueued()
}

// wakeActor activates an actor of a run that has begun, or whose state is in doubt.
func (r *requeuePass) wakeActor(at mailbox.Address) {
	a := &r.t.admission
	a.mu.Lock()
	run := at.Run()
	a.removeQueued(run)
	if _, ok := a.starting[run]; !ok && a.live[run].actors == 0 {
		a.starting[run] = startingRun{since: time.Now()}
		a.scheduleCheck()
	}
	a.mu.Unlock()
	r.t.cfg.Node().Wake(at)
}

// queueAgain queues a run that was opened and has not begun, unless it is here already.
func (a *runAdmission) queueAgain(q queuedRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	run := q.at.Run()
	if !a.queued[run] && a.live[run].supervisors == 0 {
		delete(a.starting, run)
		a.insertQueued(q)
	}
}

// isQueued reports whether a run is queued.
func (a *runAdmission) isQueued(run string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queued[run]
}

// readUnbegun reads whether the log of a supervisor holds nothing but requests, and no
// cancel. A log that cannot be read is not queued: its supervisor is woken, and says why.
func (o unfinishedFinder) readUnbegun(ctx context.Context, at mailbox.Address) (q queuedRun, waits bool) {
	begun := false
	err := o.cfg.Post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		kind, from := activation.InspectEntry(m.Data)
		begun = begun || from != activation.OriginClient || kind == agent.Canceled{}.Kind()
		if q.at == "" {
			q = queuedRun{at, m.Stamp()}
		}
		return nil
	})
	return q, err == nil && !begun && q.at != ""
}

// ownedFilter returns a function that reports whether this node's queue covers a log: those of
// its shards, even while a lease is in doubt.
func (o *Owner) ownedFilter() func(mailbox.Address) bool {
	k := o.keeper.Load()
	if k == nil {
		return func(mailbox.Address) bool { return true }
	}
	held := k.HeldShards()
	return func(at mailbox.Address) bool {
		slot, ok := o.pools.slotOf(at)
		return ok && slices.Contains(held, slot)
	}
}
