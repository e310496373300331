package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/dispatcher"
	"github.com/troupe-run/troupe/mailbox"
)

// Messages to the router.
type (
	entryDelivered struct{ m mailbox.Message } // an entry was appended
	wakeActor      struct{ at mailbox.Address }
	logEnded       struct { // the shell has answered all entries of its closed log up to this place
		at    mailbox.Address
		place uint64
	}
	shellGone struct { // the shell is superseded or drained, and has nothing under way
		at  mailbox.Address
		pid *actor.PID
	}
	restartShell struct{ at mailbox.Address }
)

// router forwards entries to shells and starts a shell for every address that has none. It is
// the parent of all shells and restarts those that crash.
type router struct {
	ctx     context.Context
	cfg     Config
	workers *dispatcher.WorkerPool
	shells  map[mailbox.Address]*shellPlace
	pids    map[string]liveShell
	gone    map[mailbox.Address]struct{}
	recent  []mailbox.Address // the addresses in gone, oldest first

	handOffs []*handOff
	newer    map[mailbox.Address]struct{} // logs that are newer than this program

	replays    replayQueue
	starts     uint64 // of all shells: each start under one lease has a higher number than those before
	most       int    // shells at once, since the maps were made
	passivated passivatedActors
	sweeper    *time.Timer // of rest.go; nil: not armed
}

// liveShell is what the router knows of a shell by its id.
type liveShell struct {
	at     mailbox.Address
	unread Unread // nil: they are not counted
}

// shellPlace holds what the router knows of one address.
type shellPlace struct {
	pid     *actor.PID             // nil while it waits for a restart
	starts  uint64                 // number of the newest start
	crashes int                    // in a row
	crashed time.Time              // the last of them
	results []activation.OwnResult // that arrived while there was no shell

	waiting  int       // entries that the shell was sent and may not have read, at most
	head     uint64    // place of the newest entry
	detached bool      // the shell reads for itself
	touched  time.Time // when the newest entry arrived, or the shell was asked to passivate

	lease            uint64       // of the newest shell
	superseded       bool         // the newest shell is superseded
	supersededShells []*actor.PID // superseded shells with work under way, after the log was claimed again
}

func newRouter(ctx context.Context, cfg Config, workers *dispatcher.WorkerPool) *router {
	return &router{ctx: ctx, cfg: cfg, workers: workers, shells: map[mailbox.Address]*shellPlace{}, pids: map[string]liveShell{},
		gone: map[mailbox.Address]struct{}{}, replays: newReplayQueue(cfg.ReplaysAtOnce), passivated: passivatedActors{count: cfg.Passivated}}
}

// receive takes one message.
func (r *router) receive(c actor.Context) {
	switch m := c.Message().(type) {
	case entryDelivered:
		if m.m.Imported {
			return // an import ends with new entries, which wake the actors
		}
		if mailbox.IsReserved(m.m.To.Run()) { // a lane or a schedule has no actor
			if r.cfg.OnOtherLog != nil {
				r.cfg.OnOtherLog(m.m.To)
			}
			return
		}
		if !r.isAdmitted(m.m) {
			return // the entry stays in the log until the actor is admitted
		}
		r.reopenClosed(m.m)
		if p := r.findShell(c, m.m.To, classOf(m.m.To, true)); p != nil {
			r.forwardEntry(c, p, m.m)
		}
	case entriesTaken:
		r.countTaken(m)
	case reachedTail:
		r.attachShell(c, m)
	case wakeActor:
		if r.isAdmitted(mailbox.Message{To: m.at}) {
			r.findShell(c, m.at, classOf(m.at, false))
		}
	case passivateEarly:
		r.askEarlyPassivation(c)
	case activation.OwnResult:
		r.passResult(c, m)
	case latePosted:
		r.latePosted(c, m)
	case lateAgain:
		r.postLate(c, []activation.OwnResult{m.own})
	case logEnded:
		r.forgetEnded(c, m)
	case shellGone:
		r.stopGoneShell(c, m)
	case shellSuperseded:
		r.supersedeShell(c, m)
	case handOver:
		r.handOver(c, m)
	case sweepTick:
		r.sweepIdle(c)
	case shellPassivated:
		r.endPassivated(c, m)
	case actorPassivated:
		r.recordPassivated(c, m)
	case alarmTick:
		r.wakeDue(c)
	case tidyTick:
		r.passivated.tidy(c, r.cfg.Holds)
	case restartShell:
		if p := r.shells[m.at]; p != nil && p.pid == nil && (replayStarter{r}).mayReplay(c, m.at, classOf(m.at, true)) {
			r.spawnShell(c, m.at, p)
		}
	case shellReplayed, replayTick:
		replayStarter{r}.receive(c)
	case actorHopeless:
		r.giveUpActor(c, m)
	case newerLog:
		r.leaveNewerLog(m)
	case *actor.Stopping:
		r.stopTimers()
	case *actor.Terminated:
		r.restartCrashed(c, m.Who)
		unlinkPID(c, m.Who)
	}
}

// findShell returns the place of an address, with a shell unless the place waits for a restart;
// nil for a log that this node does not hold, and for an actor that waits for its replay.
func (r *router) findShell(c actor.Context, at mailbox.Address, class replayClass) *shellPlace {
	p := r.shells[at]
	if _, gone := r.gone[at]; gone || p != nil && !p.superseded {
		return p
	}
	if !r.mayOpen(at) || !(replayStarter{r}).mayReplay(c, at, class) {
		return nil
	}
	return r.openShell(c, at)
}

// mayOpen reports whether this node may act on a log.
func (r *router) mayOpen(at mailbox.Address) bool {
	_, newer := r.newer[at]
	_, holds := r.cfg.Holds(at)
	return holds && !newer && r.handOffOf(at) == nil
}

// openShell starts a shell for an address that has none, or only a superseded one.
func (r *router) openShell(c actor.Context, at mailbox.Address) *shellPlace {
	p := r.shells[at]
	if _, gone := r.gone[at]; gone || p != nil && !p.superseded || !r.mayOpen(at) {
		return p
	}
	if p == nil {
		p = &shellPlace{}
		r.shells[at] = p
	}
	if p.pid != nil { // the old shell finishes the work that it began
		p.supersededShells = append(p.supersededShells, p.pid)
	}
	p.superseded = false
	r.spawnShell(c, at, p)
	return p
}

func (r *router) spawnShell(c actor.Context, at mailbox.Address, p *shellPlace) {
	r.cfg.Alive(at, 1)
	lease, ok := r.cfg.Holds(at)
	if !ok || r.handOffOf(at) != nil { // the lease was lost during the wait for a restart
		r.cfg.Alive(at, -1)
		r.vacatePlace(c, at, p)
		return
	}
	r.passivated.remove(at)
	r.starts++
	p.lease, p.starts = lease, r.starts
	p.waiting, p.detached, p.touched = 0, false, time.Now()
	r.lookAround(c)
	epoch := mailbox.Epoch{Lease: lease, Start: p.starts}
	self, unread := c.Self(), r.cfg.CountUnread()
	props := actor.PropsFromProducer(func() actor.Actor { return actor.ReceiveFunc(newShell(r.ctx, &r.cfg, at, epoch, self, unread).receive) },
		actor.WithDispatcher(r.workers))
	p.pid = c.Spawn(props)
	r.pids[p.pid.Id] = liveShell{at, unread}
	r.replays.begin(p.pid.Id, at, p.touched)
	for _, w := range p.results {
		c.Send(p.pid, w)
	}
	p.results = nil
}

// stopOnPanic stops a shell that panics; its place starts another one, which reads the log
// again. The log also holds the entries that were queued for the old shell.
var stopOnPanic = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// passResult passes on the result of work, even if the shell that began the work has ended.
func (r *router) passResult(c actor.Context, w activation.OwnResult) {
	p := r.shells[w.At]
	if _, gone := r.gone[w.At]; p == nil && !gone {
		r.postLate(c, []activation.OwnResult{w})
	}
	if p == nil {
		return
	}
	for _, old := range p.supersededShells {
		c.Send(old, factMessage{activation.WorkPosted{Start: w.Start, Key: w.Key}})
	}
	if p.pid == nil {
		p.results = append(p.results, w)
		return
	}
	c.Send(p.pid, w)
}

// forgetEnded drops an address whose log is closed. If an entry arrived after the shell said so,
// it may be a question that this shell, or the next one, still has to answer: then the router
// waits for the shell to say so again.
func (r *router) forgetEnded(c actor.Context, m logEnded) {
	at := m.at
	p := r.shells[at]
	if p == nil || p.head > m.place {
		return
	}
	delete(r.shells, at)
	if p.pid != nil {
		c.Stop(p.pid)
		r.forgetShell(c, p.pid)
	}
	r.gone[at] = struct{}{}
	r.recent = append(r.recent, at)
	if len(r.recent) > recentlyEnded {
		delete(r.gone, r.recent[0])
		r.recent = r.recent[1:]
	}
}
