package actors

import (
	"maps"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// An actor that waits holds no shell (PROTOCOL P19). After its idle timeout, the router asks
// a shell to passivate. If it has nothing under way, it steps no more entries, as in a
// hand-off, and appends Released with the time at which it must be reactivated at the latest.
// Once the shell has read that back, with no unstepped entry before it and no entry after it,
// the shell ends and the actor is passivated. The next entry, or the time, starts a shell as
// after a crash: it claims, replays the log, and finds that nothing was lost.

// IdleTimeoutDefault is the default idle timeout of a shell after its newest entry.
const IdleTimeoutDefault = time.Minute

// Pace of the router's sweeps.
const (
	sweepsPerTimeout   = 4                     // how often it looks for idle shells
	sweepPauseMin      = time.Millisecond      // between two sweeps
	passivationsAtOnce = 256                   // shells that one sweep asks: each that passivates appends an entry
	sweepAgain         = 20 * time.Millisecond // after a sweep that did not ask all idle shells
	shrinkMin          = 256                   // a map is shrunk only if it held at least this many shells
	shrinkBelow        = 4                     // and only if fewer than one in shrinkBelow of them is left
	wakesAtOnce        = 256                   // due actors that are woken at once: each reads its log and appends a claim
	wakeAgain          = 20 * time.Millisecond // before the rest are woken
)

type (
	// sweepTick makes the router look for idle shells.
	sweepTick struct{}
	// shellPassivated says that the shell has nothing to do before the next entry after its Released at
	// this place, or before due.
	shellPassivated struct {
		at    mailbox.Address
		pid   *actor.PID
		place uint64
		due   int64
	}
	// actorPassivated says that an actor is passivated according to its log.
	actorPassivated struct {
		at  mailbox.Address
		due int64
	}
	// alarmTick says that a passivated actor may be due.
	alarmTick struct{}
	// emptyMessage is a message for shells that have ended.
	emptyMessage struct{}
	// tidyTick makes the router look for passivated actors whose logs other nodes hold now.
	tidyTick struct{}
)

// NotePassivated tells the node of an actor that is passivated according to its log: see
// activation.ReadStanding. The node wakes it at dueMS, in Unix milliseconds, and at its next
// entry in any case.
func (n *Node) NotePassivated(at mailbox.Address, dueMS int64) {
	n.system.Root.Send(n.router, actorPassivated{at, dueMS})
}

// lookAround starts the sweeps, which continue while there are shells.
func (r *router) lookAround(c actor.Context) {
	if r.sweeper == nil {
		r.sweeper = sendAfter(c, max(r.cfg.IdleTimeout/sweepsPerTimeout, sweepPauseMin), sweepTick{})
	}
}

// sendAfter sends an actor a message of its own after a pause.
func sendAfter(c actor.Context, pause time.Duration, message any) *time.Timer {
	self, root := c.Self(), c.ActorSystem().Root
	return time.AfterFunc(pause, func() { root.Send(self, message) })
}

func (r *router) stopTimers() {
	for _, t := range []*time.Timer{r.sweeper, r.passivated.tidier, r.passivated.alarmer, r.replays.timer} {
		if t != nil {
			t.Stop()
		}
	}
}

// sweepIdle asks the shells to passivate that have read no entry for a while.
func (r *router) sweepIdle(c actor.Context) {
	now, asked := time.Now(), 0
	for _, p := range r.shells {
		if p.pid == nil || p.superseded || p.detached || len(p.supersededShells) > 0 || now.Sub(p.touched) < r.cfg.IdleTimeout {
			continue
		}
		if asked++; asked > passivationsAtOnce {
			break
		}
		p.touched = now
		c.Send(p.pid, factMessage{activation.Passivate{}})
	}
	r.shrinkMaps()
	switch {
	case len(r.shells) == 0:
		r.sweeper = nil
	case asked > passivationsAtOnce:
		r.sweeper = sendAfter(c, sweepAgain, sweepTick{})
	default:
		r.sweeper = nil
		r.lookAround(c)
	}
}

// shrinkMaps frees the memory of shells that have ended: a map keeps room for as many entries as
// it ever had.
func (r *router) shrinkMaps() {
	r.most = max(r.most, len(r.shells))
	if r.most < shrinkMin || len(r.shells) > r.most/shrinkBelow {
		return
	}
	r.most = len(r.shells)
	r.shells, r.pids = copyMap(r.shells), copyMap(r.pids)
}

func copyMap[K comparable, V any](old map[K]V) map[K]V {
	m := make(map[K]V, len(old))
	maps.Copy(m, old)
	return m
}

// IgnoreDeadLetterLogging keeps the library from counting the message as lost.
func (emptyMessage) IgnoreDeadLetterLogging() {}

// unlinkPID makes the id of an ended shell forget that shell. The library keeps ids of former
// children, and an id keeps a reference to its target until it is used again.
func unlinkPID(c actor.Context, gone *actor.PID) { c.Send(gone, emptyMessage{}) }

// endPassivated lets a shell end. If an entry has arrived since its last read, the router starts
// another one at once.
func (r *router) endPassivated(c actor.Context, m shellPassivated) {
	p := r.shells[m.at]
	if p == nil || p.pid != m.pid {
		return
	}
	c.Stop(m.pid)
	r.forgetShell(c, m.pid)
	r.vacatePlace(c, m.at, p)
	switch {
	case r.shells[m.at] != nil: // an older shell has work under way
	case p.head > m.place:
		r.findShell(c, m.at, classOf(m.at, true))
	default:
		r.addPassivated(c, actorPassivated{m.at, m.due})
	}
}

// recordPassivated records that an actor is passivated according to its log. That reading may be older
// than what the router knows by now: of two due times, the earlier one counts.
func (r *router) recordPassivated(c actor.Context, m actorPassivated) {
	if due := r.passivated.when[m.at]; due != 0 && (m.due == 0 || due < m.due) {
		m.due = due
	}
	r.addPassivated(c, m)
}

// addPassivated records a passivated actor. The router keeps only the time when it is due.
func (r *router) addPassivated(c actor.Context, m actorPassivated) {
	_, gone := r.gone[m.at]
	if _, holds := r.cfg.Holds(m.at); !holds || gone || r.shells[m.at] != nil || r.handOffOf(m.at) != nil {
		return
	}
	r.passivated.add(c, m.at, m.due)
}

// wakeDue wakes the actors that are due. If another node holds the log by now, that node wakes
// the actor.
func (r *router) wakeDue(c actor.Context) {
	r.passivated.alarmer = nil
	now := time.Now()
	for range wakesAtOnce {
		at, ok := r.passivated.firstDue(now.UnixMilli())
		if !ok {
			r.passivated.setAlarm(c)
			return
		}
		r.passivated.remove(at)
		r.findShell(c, at, classOf(at, false))
	}
	// After a night without a node all actors may be due: the pause lets other messages in
	// between.
	r.passivated.setAlarmAt(c, now.UnixMilli(), wakeAgain)
}
