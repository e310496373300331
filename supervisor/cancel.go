package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// cancelMembers stops the run, or with Of one agent and its descendants: it sends the
// cancel to every live member at once, and each member sends Finish when it has
// stopped. A Delegate or Reserve that comes later begins nothing.
func cancelMembers(s State, f agent.Canceled) (State, []Effect) {
	if s.Phase == Over {
		return s, nil
	}
	if f.Of != "" && f.Of != spec.Root {
		return cancelBelow(s, f)
	}
	f.Of = ""
	if s.Cancel != nil {
		if s.Cancel.Now || !f.Now {
			return s, nil
		}
		f.As = s.Cancel.As
	} else {
		s.CancelTargets, s.CanceledAt = s.Live, s.Now
	}
	s.Cancel = &f
	return s, s.roster.tellLive(f)
}

// handleCanceled stops the run, or an agent, because of a cancel command, and publishes a warning to observers.
func handleCanceled(s State, f agent.Canceled) (State, []Effect) {
	next, fx := cancelMembers(s, f)
	m, ok := s.Member(f.Of)
	switch {
	case f.Of != "" && f.Of != spec.Root && ok && !m.Done && s.Phase != Over && (f.Now || !m.Stopping):
		next = next.publishEvent(event.KindWarningRaised, event.Warning{What: event.WarningOfCancel, Agent: string(f.Of), Why: f.Why, By: f.By, Now: f.Now, Live: next.Live})
	case next.Cancel != s.Cancel:
		next = next.publishEvent(event.KindWarningRaised, event.Warning{What: event.WarningOfCancel, Why: f.Why, By: f.By, Now: f.Now, Live: next.Live})
	}
	return next, fx
}

// cancelBelow stops one agent and its descendants.
func cancelBelow(s State, f agent.Canceled) (State, []Effect) {
	var fx []Effect
	of := f.Of
	f.Of = ""
	m, ok := s.Member(of)
	if !ok || m.Done {
		s.roster, fx = s.roster.stopBelow(of, f)
		return s, fx
	}
	m.Stopping = true //mutant:member-stopping
	s.roster, fx = s.roster.put(m).stopBelow(of, f)
	return s, append([]Effect{Tell{To: of, Fact: f}}, fx...)
}

// handlePark records that a member waits for a person, since entry n.
func handlePark(s State, from spec.ID, f agent.Park, n uint64) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	if m.Query == nil {
		s.Parked++
	}
	// With ApprovedBy, the same question waits for its second approval: it keeps its identity, since an answer to it may
	// be under way.
	if f.ApprovedBy == "" || m.Query == nil || m.Query.Query != f.Query {
		m.asked, m.askedMS = n, s.Now
	}
	m.Query = &f
	return s.put(m), nil
}

func handleUnpark(s State, from spec.ID) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Query == nil {
		return s, nil
	}
	m.Query = nil
	s.Parked--
	return s.put(m), nil
}

// handleGivenUp handles a member whose shell cannot be activated.
func handleGivenUp(s State, f GivenUp) (State, []Effect) {
	m, ok := s.Member(f.Agent)
	if !ok || m.Done {
		return s, nil
	}
	s = s.publishEvent(event.KindWarningRaised, event.Warning{What: "given up: " + string(f.Agent), Why: f.Why, Now: true, Live: s.Live - 1})
	return giveUpMember(s, m, spec.Outcome{Reason: spec.ResumeUnsafe, Partial: true, Detail: f.Why}, spec.ResumeUnsafe)
}

// giveUpMember ends a member without its Finish; if the member comes back, it ends, too.
func giveUpMember(s State, m Member, o spec.Outcome, as spec.Reason) (State, []Effect) {
	m.GivenUp = true
	m.Outcome, m.Silent = o, s.Cancel != nil //mutant:given-up-outcome
	s = settleForeignCalls(s, m, assumedForeignCalls(s, m))
	s, fx := endMember(s, m) //mutant:given-up-end
	return s, append([]Effect{Tell{To: m.ID, Fact: agent.Canceled{Why: o.Detail, Now: true, As: as}}}, fx...)
}
