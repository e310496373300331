package supervisor

import (
	"fmt"

	"github.com/troupe-run/troupe/agent"
)

// A member's log that has lost its tail tells of less than was heard from it
// (PROTOCOL P13): its length says so, in its Back, and so do its leases.

// vouch answers an agent that is about to begin a side effect: its log tells of
// all that was heard from it, as far as its leases say.
func vouch(s State, from agent.ID, f agent.Vouch) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok {
		return s, nil
	}
	switch newest := s.newestLease(from); {
	case s.Cancel != nil || m.Stopping: // its Canceled is on the way and answers it
		return s, nil
	case m.Done:
		return damaged(s, from, "the log of "+string(from)+" does not know of its end")
	case newest > f.Lease:
		return shortened(s, from, f.Lease, newest)
	}
	s, fx := s.seen(m, nil)
	return s, append(fx, Tell{To: from, Fact: agent.Vouched{Life: f.Life}})
}

// newestLease is the highest that was granted to a member.
func (s State) newestLease(of agent.ID) int {
	a := s.Pool.Account(string(of))
	return max(a.Open, a.Closed)
}

// shortened gives up a member whose log does not know of its leases.
func shortened(s State, from agent.ID, lease, newest int) (State, []Effect) {
	return damaged(s, from, fmt.Sprintf("the log of %s is at its lease %d, and %d were granted", from, lease, newest))
}

// damaged gives up a member whose log lost its tail: nothing of it may act
// again, and the run halts.
func damaged(s State, from agent.ID, detail string) (State, []Effect) {
	m, ok := s.Member(from)
	if ok && m.Done && s.Phase != Over { // it may not know that it has ended; when all have, the log answers: see actors/life
		return s, []Effect{Tell{To: from, Fact: agent.Canceled{Why: detail, Now: true, As: agent.LogDamaged}}}
	}
	if !ok || s.Phase == Over {
		return s, nil
	}
	m.Outcome = agent.Outcome{Reason: agent.LogDamaged, Partial: true, Detail: detail}
	s, fx := canceled(s, agent.Canceled{Why: m.Outcome.Detail, Now: true, As: agent.LogDamaged})
	s, more := end(s, m)
	return s, append(fx, more...)
}

// halt ends a run whose own log is damaged: nobody is waited for.
func (s State) halt(why string) (State, []Effect) {
	s.Told, s.CanceledAt = s.Live, s.Now
	s.Cancel = &agent.Canceled{Why: why, Now: true, As: agent.LogDamaged}
	fx := s.tellAll(*s.Cancel)
	s.Phase, s.Ended, s.Halted = Over, s.Now, true
	s.Outcome = agent.Outcome{Reason: agent.LogDamaged, Partial: true, Detail: why}
	return s.forfeit(), append(fx, Publish{})
}

// endUnknown ends an agent of which the log of the run knows nothing, and those above
// it, which wait for it: what they were promised is lost.
func endUnknown(id agent.ID, why string) []Effect {
	fx := []Effect{Tell{To: id, Fact: agent.Canceled{Why: why, Now: true, As: agent.LogDamaged}}}
	for _, above := range id.Above() {
		fx = append(fx, Tell{To: above, Fact: agent.Canceled{Why: why, Now: true, As: agent.LogDamaged}})
	}
	return fx
}

// forgot is what a letter tells that this log should know, and does not: it has lost
// its tail. What the agents would be told from here on they would take for what they
// were told before, and wait for ever.
func (s State) forgot(from agent.ID, fact Fact) string {
	if _, ok := s.Member(from); !ok || s.Phase == Over {
		return "" // a stranger's word changes nothing
	}
	if why := s.missed(from, fact); why != "" {
		return why
	}
	used := 0
	switch f := fact.(type) {
	case agent.Settle: // one that was asked for and never granted has cost nothing
		if f.Lost || !f.Used.Zero() {
			used = f.Lease
		}
	case agent.Vouch:
		used = f.Lease
	}
	if newest := s.newestLease(from); used > newest {
		return fmt.Sprintf("%s used its lease %d, and the log of the run is at %d", from, used, newest)
	}
	return ""
}
