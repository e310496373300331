package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/mailbox"
)

// A node begins work only for logs that it holds. The order of the log is what keeps two
// nodes from acting at once; that a node also waits while its lease is over is an extra
// defense, and saves work (PROTOCOL P4). The end of a lease ends nothing by itself: if no
// other node has claimed the log by the time this node holds it again, the shell continues
// the work that it began (P3).
type (
	// shellSuperseded says that the shell is superseded, though it may have tools under way.
	shellSuperseded struct {
		at  mailbox.Address
		pid *actor.PID
	}
)

// reactivationPause keeps two nodes that both believe they hold a lease, for instance after one
// machine slept, from claiming a log in turns without a pause.
const reactivationPause = 200 * time.Millisecond

// supersedeShell makes room for another shell of an address. If this node still holds the log, a
// shell must exist, because no other node will start one.
func (r *router) supersedeShell(c actor.Context, m shellSuperseded) {
	p := r.shells[m.at]
	if p == nil || p.pid != m.pid {
		return
	}
	p.superseded = true
	r.wakeLater(c, m.at)
}

// wakeLater reactivates an actor after a pause if this node holds its log, because its shell
// has ended or is about to end.
func (r *router) wakeLater(c actor.Context, at mailbox.Address) {
	if _, ok := r.cfg.Holds(at); ok && r.handOffOf(at) == nil {
		self, root := c.Self(), c.ActorSystem().Root
		time.AfterFunc(reactivationPause, func() { root.Send(self, wakeActor{at}) })
	}
}

// stopGoneShell stops a shell that was superseded or drained and has nothing under way. Another shell
// may then take its address.
func (r *router) stopGoneShell(c actor.Context, m shellGone) {
	c.Stop(m.pid)
	r.forgetShell(c, m.pid)
	if p := r.shells[m.at]; p != nil && p.pid == m.pid {
		r.vacatePlace(c, m.at, p)
		r.wakeLater(c, m.at)
	} else if p != nil {
		p.dropSuperseded(m.pid)
	}
}

// vacatePlace removes a place whose shell has ended. If an older shell still has work under way,
// it keeps the place, so that a shell exists to post the results.
func (r *router) vacatePlace(c actor.Context, at mailbox.Address, p *shellPlace) {
	results := p.results
	p.results = nil
	if len(p.supersededShells) == 0 {
		delete(r.shells, at)
		r.postLate(c, results)
		return
	}
	p.pid, p.superseded = p.supersededShells[0], true
	p.dropSuperseded(p.pid)
	for _, o := range results {
		c.Send(p.pid, o)
	}
}

func (p *shellPlace) dropSuperseded(old *actor.PID) {
	p.supersededShells = slices.DeleteFunc(p.supersededShells, func(e *actor.PID) bool { return e == old })
}
