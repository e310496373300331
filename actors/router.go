package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/crew"
	"github.com/troupe-run/troupe/mailbox"
)

// Messages to the router.
type (
	delivered struct{ m mailbox.Message } // an entry was appended
	wake      struct{ at mailbox.Address }
	ended     struct { // the shell is through with its log up to this place
		at    mailbox.Address
		place uint64
	}
	left struct { // the shell has fallen silent, and nothing of it is under way
		at  mailbox.Address
		pid *actor.PID
	}
	restart struct{ at mailbox.Address }
)

// router brings entries to shells and starts a shell for every address that
// has none. It is the parent of all shells: it restarts those that crash.
type router struct {
	ctx    context.Context
	cfg    Config
	hands  *crew.Crew
	shells map[mailbox.Address]*place
	pids   map[string]mailbox.Address
	gone   map[mailbox.Address]struct{}
	recent []mailbox.Address // gone, oldest first

	leaving []*leaving
	foreign map[mailbox.Address]struct{} // logs that are newer than this program

	starts  uint64 // of all shells: each start under one lease has a higher number than those before
	most    int    // shells at once, since the maps were made
	resting resting
	// Timers of rest.go; nil: not armed.
	sweeper, tidier, alarmer *time.Timer
	alarmAt                  int64 // when the alarmer fires
}

// place is what the router knows of one address.
type place struct {
	pid     *actor.PID // nil while it waits for a restart
	starts  uint64     // number of the newest start
	crashes int        // in a row
	crashed time.Time  // the last of them
	results []worked   // that came while there was no shell

	waiting  int       // entries that the shell was sent and has not read, at most
	head     uint64    // place of the newest entry
	detached bool      // the shell reads for itself
	touched  time.Time // when the newest entry came, or the shell was asked to rest

	lease  uint64       // of the newest shell
	silent bool         // the newest shell is
	elders []*actor.PID // silent ones with work under way, while the log was taken again
}

func newRouter(ctx context.Context, cfg Config, hands *crew.Crew) *router {
	return &router{ctx: ctx, cfg: cfg, hands: hands, shells: map[mailbox.Address]*place{}, pids: map[string]mailbox.Address{},
		gone: map[mailbox.Address]struct{}{}}
}

// Receive takes one message.
func (r *router) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case delivered:
		if !r.admitted(m.m) {
			return // the entry stays in the log
		}
		r.reopen(m.m)
		if p := r.find(c, m.m.To); p != nil {
			r.forward(c, p, m.m)
		}
	case taken:
		r.taken(m)
	case level:
		r.level(c, m)
	case wake:
		if r.admitted(mailbox.Message{To: m.at}) {
			r.find(c, m.at)
		}
	case press:
		r.pressed(c)
	case worked:
		r.result(c, m)
	case ended:
		r.forget(c, m)
	case left:
		r.left(c, m)
	case silent:
		r.silent(c, m)
	case handOver:
		r.handOver(c, m)
	case sweep:
		r.sweep(c)
	case rested:
		r.rested(c, m)
	case asleep:
		r.asleep(c, m)
	case alarm:
		r.alarm(c)
	case tidy:
		r.tidy(c)
	case restart:
		if p := r.shells[m.at]; p != nil && p.pid == nil {
			r.spawn(c, m.at, p)
		}
	case hopeless:
		r.giveUp(c, m)
	case foreign:
		r.foreignLog(m)
	case *actor.Stopping:
		r.stopTimers()
	case *actor.Terminated:
		r.crashed(c, m.Who)
		unlink(c, m.Who)
	}
}

// find returns the place of an address, with a shell unless it waits for one;
// nil for a log that this node does not hold.
func (r *router) find(c actor.Context, at mailbox.Address) *place {
	p := r.shells[at]
	if _, gone := r.gone[at]; gone || p != nil && !p.silent {
		return p
	}
	if _, ok := r.cfg.Holds(at); !ok || r.leaves(at) != nil {
		return nil
	}
	if _, newer := r.foreign[at]; newer {
		return nil
	}
	if p == nil {
		p = &place{}
		r.shells[at] = p
	}
	if p.pid != nil { // it finishes what it began
		p.elders = append(p.elders, p.pid)
	}
	p.silent = false
	r.spawn(c, at, p)
	return p
}

func (r *router) spawn(c actor.Context, at mailbox.Address, p *place) {
	r.cfg.Alive(at, 1)
	lease, ok := r.cfg.Holds(at)
	if !ok || r.leaves(at) != nil { // lost while it waited for a restart
		r.cfg.Alive(at, -1)
		r.vacate(at, p)
		return
	}
	r.awake(at)
	r.starts++
	p.lease, p.starts = lease, r.starts
	p.waiting, p.detached, p.touched = 0, false, time.Now()
	r.lookAround(c)
	epoch := mailbox.Epoch{Lease: lease, Start: p.starts}
	self := c.Self()
	props := actor.PropsFromProducer(func() actor.Actor { return newShell(r.ctx, r.cfg, at, epoch, self) },
		actor.WithDispatcher(r.hands))
	p.pid = c.Spawn(props)
	r.pids[p.pid.Id] = at
	for _, w := range p.results {
		c.Send(p.pid, w)
	}
	p.results = nil
}

// stopOnPanic: a shell that panics is stopped, and its place starts another
// one, which reads the log again. What it had queued is in the log.
var stopOnPanic = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// result hands on what work brought, though the shell that began it is gone.
func (r *router) result(c actor.Context, w worked) {
	p := r.shells[w.at]
	if p == nil {
		return
	}
	for _, elder := range p.elders {
		c.Send(elder, spent{w.start, w.key})
	}
	if p.pid == nil {
		p.results = append(p.results, w)
		return
	}
	c.Send(p.pid, w)
}

// forget drops an address whose log is closed. An entry that came after the shell
// said so may be a question that it, or the next shell, still has to answer: then it is
// said again.
func (r *router) forget(c actor.Context, m ended) {
	at := m.at
	p := r.shells[at]
	if p == nil || p.head > m.place {
		return
	}
	delete(r.shells, at)
	if p.pid != nil {
		c.Stop(p.pid)
		r.released(p.pid)
	}
	r.gone[at] = struct{}{}
	r.recent = append(r.recent, at)
	if len(r.recent) > RecentlyEnded {
		delete(r.gone, r.recent[0])
		r.recent = r.recent[1:]
	}
}

// crashed starts another shell after a pause, a bounded number of times.
func (r *router) crashed(c actor.Context, pid *actor.PID) {
	at, ok := r.pids[pid.Id]
	if !ok || r.ctx.Err() != nil {
		return
	}
	r.released(pid)
	p := r.shells[at]
	switch {
	case p == nil:
		return
	case p.pid == nil || p.pid.Id != pid.Id:
		p.without(pid)
		return
	case p.silent, r.leaves(at) != nil:
		r.vacate(at, p)
		return
	}
	p.pid = nil
	pause, parked := p.crash(time.Now())
	if parked {
		r.giveUp(c, hopeless{at, fmt.Sprintf("its shell crashed %d times in a row", p.crashes)})
		return
	}
	r.cfg.Logger.Error("a shell crashed; it is started again", "actor", at, "crashes", p.crashes, "after", pause)
	self, root := c.Self(), c.ActorSystem().Root
	time.AfterFunc(pause, func() { root.Send(self, restart{at}) })
}
