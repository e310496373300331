package supervisor

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// A member's log that has lost its tail records less than the supervisor received
// from it (PROTOCOL P13): the length in its ReportLog shows that, and so do its reservations.

// handleVerifyLog answers an agent that is about to begin a side effect: its log records
// everything that the supervisor received from it, as far as its reservations show.
func handleVerifyLog(s State, from spec.ID, f agent.VerifyLog) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok {
		return s, nil
	}
	switch newest := s.Pool.Account(string(from)).Newest(); {
	case s.Cancel != nil || m.Stopping: // its Canceled is on the way and answers it
		return s, nil
	case m.Done:
		return giveUpDamaged(s, from, "the log of "+string(from)+" does not know of its end")
	case newest > f.Reservation:
		return giveUpTruncated(s, from, f.Reservation, newest)
	}
	s, fx := s.markFirstMessage(m, nil)
	return s, append(fx, Tell{To: from, Fact: agent.LogVerified{Activation: f.Activation}})
}

// giveUpTruncated gives up a member whose log does not know of its reservations.
func giveUpTruncated(s State, from spec.ID, reservation, newest int) (State, []Effect) {
	return giveUpDamaged(s, from, fmt.Sprintf("the log of %s is at its reservation %d, and %d were granted", from, reservation, newest))
}

// giveUpDamaged gives up a member whose log lost its tail: the member must not act
// again, and the run halts.
func giveUpDamaged(s State, from spec.ID, detail string) (State, []Effect) {
	m, ok := s.Member(from)
	if ok && m.Done && s.Phase != Over { // it may not know its end; when all end, the log answers: internal/activation
		return s, []Effect{Tell{To: from, Fact: agent.Canceled{Why: detail, Now: true, As: spec.LogDamaged}}}
	}
	if !ok || s.Phase == Over {
		return s, nil
	}
	m.Outcome = spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: detail}
	cancel := agent.Canceled{Why: detail, Now: true, As: spec.LogDamaged}
	s, fx := cancelMembers(s, cancel)
	if len(fx) == 0 { // the run was canceled before, and the member's log may have lost that cancel
		fx = []Effect{Tell{To: from, Fact: cancel}}
	}
	s = settleForeignCalls(s, m, assumedForeignCalls(s, m))
	s, more := endMember(s, m)
	return s, append(fx, more...)
}

// haltRun ends a run whose own log is damaged, without waiting for any member.
func (s State) haltRun(why string) (State, []Effect) {
	s.CancelTargets, s.CanceledAt = s.Live, s.Now
	s.Cancel = &agent.Canceled{Why: why, Now: true, As: spec.LogDamaged}
	fx := s.roster.tellLive(*s.Cancel)
	s.Phase, s.Ended, s.Halted = Over, s.Now, true
	s.Outcome = spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: why}
	return s.forfeitReservations(), append(fx, Publish{})
}

// endUnknown ends an agent that the log of the run does not know, and its
// ancestors, which wait for it: the answers that they wait for are lost.
func endUnknown(id spec.ID, why string) []Effect {
	fx := []Effect{Tell{To: id, Fact: agent.Canceled{Why: why, Now: true, As: spec.LogDamaged}}}
	for _, above := range id.Above() {
		fx = append(fx, Tell{To: above, Fact: agent.Canceled{Why: why, Now: true, As: spec.LogDamaged}})
	}
	return fx
}

// describeLoss describes a fact that an outbox message proves and that this log should
// hold, but does not: the log has lost its tail. The agents would take its next
// messages for ones that they have already received, and wait forever.
func (s State) describeLoss(from spec.ID, fact Fact) string {
	m, ok := s.Member(from)
	if !ok || s.Phase == Over {
		return "" // a message of a stranger changes nothing
	}
	if why := m.lostByRun(fact); why != "" {
		return why
	}
	used := 0
	switch f := fact.(type) {
	case agent.Settle: // a reservation that was requested and never granted has cost nothing
		if f.Lost || !f.Used.Zero() {
			used = f.Reservation
		}
		if f.Under != 0 { // its own number was never granted
			used = f.Under
		}
	case agent.ReturnAllowance:
		used = f.Grant
	case agent.VerifyLog:
		used = f.Reservation
	}
	if newest := s.Pool.Account(string(from)).Newest(); used > newest {
		return fmt.Sprintf("%s used its reservation %d, and the log of the run is at %d", from, used, newest)
	}
	return ""
}

// damagedBy handles a message which shows that the log of its sender is damaged.
func damagedBy(s State, e Input, why string) (State, []Effect) {
	next, fx := giveUpDamaged(s, e.From, why)
	return next.settledByDamage(s, e), fx
}

// settledByDamage publishes that a settlement came with damage: the damage closes
// the reservation, before anything else that follows from the damage.
func (s State) settledByDamage(before State, e Input) State {
	if f, ok := e.Fact.(agent.Settle); ok && s.Pool != before.Pool {
		settled := event.Event{Kind: event.KindBudgetSettled, Data: event.BudgetChanged{Agent: e.From, Reservation: f.Reservation}}
		s.events = slices.Concat([]event.Event{settled}, s.events)
	}
	return s
}
