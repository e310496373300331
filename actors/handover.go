package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// A planned hand-off loses nothing (PROTOCOL P3). A draining shell steps no more entries, so it begins
// no more work; it appends the results of its models and tools, then Released, and ends. The
// next activation begins whatever this one never began.
type (
	// handOver drains all shells whose logs match.
	handOver struct {
		name  string
		match func(at mailbox.Address, lease uint64) bool
		done  func()
	}
)

// handOff is a hand-off, in progress or complete.
type handOff struct {
	handOver
	waits map[string]struct{} // ids of the shells that have not ended yet
	over  bool
}

// HandOver hands off all logs that match, by their address and the lease under which this node holds them
// now: their work in progress ends and its results go into the log, and no new work begins. HandOver calls
// done once, from another goroutine, when none of their shells is left. None starts again under the same
// lease; under another lease it does. The name identifies the hand-off: the next one with that name replaces
// it.
func (n *Node) HandOver(name string, match func(at mailbox.Address, lease uint64) bool, done func()) {
	n.system.Root.Send(n.router, handOver{name, match, done})
}

func (r *router) handOver(c actor.Context, m handOver) {
	r.handOffs = slices.DeleteFunc(r.handOffs, func(l *handOff) bool { return l.over && l.name == m.name })
	l := &handOff{handOver: m, waits: map[string]struct{}{}}
	r.handOffs = append(r.handOffs, l)
	for at, p := range r.shells {
		if r.handOffOf(at) != l {
			continue
		}
		for _, old := range p.supersededShells {
			l.waits[old.Id] = struct{}{}
		}
		if p.pid == nil { // the actor waits for a restart
			r.vacatePlace(c, at, p)
			continue
		}
		c.Send(p.pid, factMessage{activation.Drain{}})
		l.waits[p.pid.Id] = struct{}{}
	}
	for at := range r.passivated.when { // these actors have passivated already
		if r.handOffOf(at) == l {
			r.passivated.remove(at)
		}
	}
	l.checkDone()
}

func (l *handOff) checkDone() {
	if len(l.waits) == 0 && !l.over {
		l.over = true
		go l.done()
	}
}

// handOffOf returns the newest hand-off that includes an address, if any.
func (r *router) handOffOf(at mailbox.Address) *handOff {
	lease, _ := r.cfg.Holds(at)
	for _, l := range slices.Backward(r.handOffs) {
		if l.match(at, lease) {
			return l
		}
	}
	return nil
}

// forgetShell forgets a shell that has ended.
func (r *router) forgetShell(c actor.Context, pid *actor.PID) {
	if known, ok := r.pids[pid.Id]; ok {
		r.cfg.Alive(known.at, -1)
		if known.unread != nil {
			known.unread.Forget()
		}
	}
	delete(r.pids, pid.Id)
	for _, l := range r.handOffs {
		delete(l.waits, pid.Id)
		l.checkDone()
	}
	if _, replays := r.replays.replaying[pid.Id]; replays {
		c.Send(c.Self(), shellReplayed{pid})
	}
}
