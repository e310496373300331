package activation

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Supersede ends this activation from outside, because its process may no longer act. The
// effect is that of reading a later claim, before one was read.
func (l *LogReader) Supersede() {
	if l.Phase != Closed {
		l.Phase = Superseded
	}
}

// requestReclaim asks for another claim, which carries Damage. A claim with the epoch that is
// already current would not count.
func (l *LogReader) requestReclaim(out *Read) {
	l.damageClaimRequested, out.Reclaim = true, true
	l.Epoch = mailbox.Epoch{Lease: l.currentEpoch.Lease, Start: l.currentEpoch.Start + 1} //mutant:damage-takes-an-epoch
}

// driftChanged reports whether the configuration drift on this node is not what the log records
// (see package agent, drift.go); the next claim records the change.
func (l *LogReader) driftChanged() bool {
	a, ok := l.machine.(*Agent)
	return ok && !l.driftClaimRequested && a.State.Phase != "" && a.State.Phase != agent.Done && !maps.Equal(l.Found, a.State.Drift.Found)
}

// openPhase returns the phase of an agent that has an activation, if neither of them has ended.
func (l *LogReader) openPhase() agent.Phase {
	a, ok := l.machine.(*Agent)
	if !ok || l.currentNonce == "" || a.State.Phase == agent.Done || a.State.Released {
		return ""
	}
	return a.State.Phase
}

// readAckFloor raises the ack floor to the one that an own entry claims, and checks the hash that
// the entry carries.
func (l *LogReader) readAckFloor(e mailbox.Entry, counts bool, out *Read) {
	if e.Floor == 0 {
		return
	}
	// The entry claims more entries than precede it: the log has lost its first entries.
	if e.Floor >= l.N || e.Floor > l.base && !bytes.Equal(e.Hash, l.hashes[e.Floor-l.base-1][:]) { //mutant:blind-missing-head-unnoticed
		if counts { //mutant:hash-check-dropped
			out.Err = fmt.Errorf("%w: entry %d of %s does not match the hash of the %d entries before it", ErrDamaged, l.N, l.Addr, e.Floor)
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

// readClaim reads a claim, which becomes current if it is the highest so far.
func (l *LogReader) readClaim(e mailbox.Entry, out *Read) []OutboxMessage {
	mine := e.Start == l.Start && l.Start != "" //mutant:claim-is-own
	if !e.Epoch.Higher(l.currentEpoch) {        //mutant:claim-is-higher
		if mine && l.Phase == Replaying && e.Epoch == l.Epoch { //mutant:own-claim-lost
			l.Epoch = mailbox.Epoch{Lease: l.currentEpoch.Lease + 1}
			out.Reclaim = true //mutant:higher-epoch-not-reclaimed
		}
		l.Dropped++
		return nil
	}
	if e.Start != l.currentNonce { // not the second claim of one activation
		l.interrupted = l.openPhase()
	}
	l.currentEpoch, l.currentNonce = e.Epoch, e.Start
	switch {
	case mine && l.Damage != "" && !l.damageClaimRequested: //mutant:claim-reports-damage
		l.requestReclaim(out) // the activation becomes active only to report the damage
	case mine && l.newerBeforeClaim != "" && l.Damage == "":
		l.Phase, l.Foreign = Superseded, l.newerBeforeClaim
		return nil
	case mine && l.driftChanged(): //mutant:difference-not-said
		l.driftClaimRequested, out.Reclaim = true, true
		l.Epoch = mailbox.Epoch{Lease: l.currentEpoch.Lease, Start: l.currentEpoch.Start + 1}
	case mine:
		l.Phase, out.Activated = Active, true //mutant:unsent-messages-forgotten
	case l.Phase == Active:
		l.Phase = Superseded //mutant:superseded-is-silent
		return nil           //mutant:superseded-stops
	}
	return l.stepItem(e.Items[0], "", false, out)
}
