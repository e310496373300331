package life

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Silence ends this life from outside: its process may no longer try. It is what
// reading a later claim does, before one was read.
func (l *Life) Silence() {
	if l.Phase != Closed {
		l.Phase = Silent
	}
}

// reclaim asks for another claim: one that says Damage. A claim with the epoch
// that is in force already would not count.
func (l *Life) reclaim(out *Read) {
	l.confess, out.Reclaim = true, true
	l.Epoch = mailbox.Epoch{Lease: l.force.Lease, Start: l.force.Start + 1} //mutant:damage-takes-an-epoch
}

// differs: this node has something otherwise than the log knows (see package
// agent, drift.go), or not any more; the next claim says so.
func (l *Life) differs() bool {
	a, ok := l.machine.(*Agent)
	return ok && !l.looked && a.State.Phase != "" && a.State.Phase != agent.Done && !maps.Equal(l.Found, a.State.Drift.Found)
}

// claim takes the floor and checks the hash that an own entry carries.
func (l *Life) claim(e mailbox.Entry, counts bool, out *Read) {
	if e.Floor == 0 {
		return
	}
	// More entries than came before it: the log has lost its head.
	if e.Floor >= l.N || e.Floor > l.base && !bytes.Equal(e.Hash, l.hashes[e.Floor-l.base-1][:]) { //mutant:blind-missing-head-unnoticed
		if counts { //mutant:hash-check-dropped
			out.Err = fmt.Errorf("%w: entry %d of %s says what %d entries before it were", ErrDamaged, l.N, l.Addr, e.Floor)
		}
		return
	}
	l.floor = max(l.floor, e.Floor)
	if counts {
		l.claimed = l.N
	}
	if drop := int(l.floor - l.base); l.floor > l.base && drop < len(l.hashes) {
		l.hashes = append(l.hashes[:0:0], l.hashes[drop-1:]...)
		l.base = l.floor - 1
	}
}

// resumed reads a claim: it comes into force if it is the highest so far.
func (l *Life) resumed(e mailbox.Entry, out *Read) []Letter {
	mine := e.Start == l.Start && l.Start != "" //mutant:claim-is-own
	if !e.Epoch.Higher(l.force) {               //mutant:claim-is-higher
		if mine && l.Phase == Folding && e.Epoch == l.Epoch { //mutant:own-claim-lost
			l.Epoch = mailbox.Epoch{Lease: l.force.Lease + 1}
			out.Reclaim = true //mutant:higher-epoch-not-reclaimed
		}
		l.Dropped++
		return nil
	}
	l.force, l.forcer = e.Epoch, e.Start
	switch {
	case mine && l.Damage != "" && !l.confess: //mutant:claim-confesses-damage
		l.reclaim(out) // it comes alive to say what is wrong, and to do nothing else
	case mine && l.newer != "" && l.Damage == "":
		l.Phase, l.Foreign = Silent, l.newer
		return nil
	case mine && l.differs(): //mutant:difference-not-said
		l.looked, out.Reclaim = true, true
		l.Epoch = mailbox.Epoch{Lease: l.force.Lease, Start: l.force.Start + 1}
	case mine:
		l.Phase, out.Came = Alive, true //mutant:unsent-letters-forgotten
	case l.Phase == Alive:
		l.Phase = Silent //mutant:superseded-is-silent
		return nil       //mutant:superseded-stops
	}
	return l.step(e.Items[0], "", false, out)
}
