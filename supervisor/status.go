package supervisor

import (
	"cmp"
	"fmt"

	"github.com/troupe-run/troupe/agent"
)

// A supervisor whose log lost its tail waits for what was said already. Each
// activation that does not follow a Released asks the members that have not ended by
// its log how they stand (package agent, status.go): one that has ended repeats its
// last Finish, the others say how much they have sent. An activation after a Released
// asks, too, once nothing was heard for a while: the tail may be lost behind it.

// AskMS is how long nothing is heard before an activation in order asks, and the pause
// before a supervisor at rest is woken to ask. The pause doubles while nothing is heard.
const AskMS = 10 * 60_000

// askDue is when the members are asked next.
func (s State) askDue() int64 {
	return max(s.News, s.Asked) + max(AskMS, s.Asked-s.News)
}

// askMembers asks all members that have not ended.
func (s State) askMembers(fx []Effect) (State, []Effect) {
	if s.Run.Rules < agent.WorkRules || s.Phase == Over {
		return s, fx
	}
	s.Asked = s.Now
	s.Members(func(m Member) {
		if !m.Done {
			fx = append(fx, s.question(m))
		}
	})
	return s, fx
}

// askTimer is when an activation that followed a Released asks after all.
const askTimer = "ask"

// askInTime asks the members at once, where an activation follows a crash or nothing was
// heard for long, and otherwise once it is time. Each activation asks once.
func (s State) askInTime(now bool, fx []Effect) (State, []Effect) {
	s.AskDue = 0
	switch {
	case s.Run.Rules < agent.WorkRules || s.Phase == Over:
		return s, fx
	case now || s.Now >= s.askDue(): //mutant:members-asked
		return s.askMembers(fx)
	}
	s.AskDue = s.askDue()
	return s, append(fx, Arm{Timer: askTimer, Due: s.AskDue}) //mutant:ask-armed
}

// wokeToAsk asks the members if it is time by the stamps of the log.
func (s State) wokeToAsk() (State, []Effect) {
	switch {
	case s.AskDue == 0 || s.Phase == Over:
		return s, nil
	case s.Now < s.AskDue:
		return s, []Effect{Arm{Timer: askTimer, Due: s.AskDue}}
	}
	s.AskDue = 0
	return s.askMembers(nil)
}

// question asks one member; its number is written when it is sent.
func (s State) question(m Member) Effect {
	return Tell{To: m.ID, Fact: agent.StatusAsked{Life: s.Life}}
}

// doubts asks a member that is back how it stands, if its log has less than it was told:
// what is missing may be on its way, and comes before the question. Its first activation
// is not asked: what it asked for first is answered in the same step.
func (s State) doubts(m Member, f agent.Back) []Effect {
	if s.Phase == Over || m.Node == "" || f.Ordinal == 0 || f.Heard >= m.Told || m.Done || f.Damaged != "" || f.Ended != nil || s.Run.Rules < agent.WorkRules {
		return nil
	}
	return []Effect{s.question(m)}
}

// status takes the answer of a member that works or waits.
func status(s State, from agent.ID) (State, []Effect) {
	m, ok := s.Member(from)
	switch {
	case !ok:
		return s, nil
	case m.Done:
		return damaged(s, from, "the log of "+string(from)+" does not know of its end")
	}
	return s.seen(m, nil)
}

// unknown: an agent waits for an answer, and the log of the run does not know of it: it
// has lost the delegation.
func (s State) unknown(e Event) bool {
	_, ok := s.Member(e.From)
	if e.From == "" || ok || s.Phase == Over || s.Run.Rules < agent.WorkRules {
		return false
	}
	switch f := e.Fact.(type) {
	case agent.Reserve, agent.Delegate, agent.Send, agent.ProposeStop, agent.Vouch, agent.Park, agent.Status:
		return true
	case agent.Back:
		return f.Ended == nil && f.Damaged == ""
	}
	return false
}

// received counts what came of a member.
func (s State) received(e Event) State {
	m, ok := s.Member(e.From)
	if !ok || s.Run.Rules < agent.WorkRules {
		return s
	}
	switch e.Fact.(type) {
	case agent.Status, agent.Back: // a question wakes those at rest: that they are back is no news
	default:
		s.News = s.Now
	}
	m.Heard++
	return s.put(m)
}

// tallied counts what members are told, and numbers the questions.
func (s State) tallied(fx []Effect) (State, []Effect) {
	if s.Run.Rules < agent.WorkRules {
		s.Released, s.News = false, 0
		return s, fx
	}
	for i, e := range fx {
		tell, ok := e.(Tell)
		if !ok {
			continue
		}
		m, ok := s.Member(tell.To)
		if !ok {
			continue
		}
		m.Told++
		s = s.put(m)
		if f, asks := tell.Fact.(agent.StatusAsked); asks {
			f.Ordinal = m.Told
			tell.Fact = f
			fx[i] = tell
		}
	}
	return s, fx
}

// missed says how many asks of a member the log of the run does not have, by the
// member's own count.
func (s State) missed(from agent.ID, fact Fact) string {
	m, ok := s.Member(from)
	if !ok || s.Run.Rules < agent.WorkRules {
		return ""
	}
	sent := 0
	switch f := fact.(type) {
	case agent.Status:
		sent = f.Ordinal
	case agent.Finish:
		sent = f.Ordinal
	case agent.Back:
		sent = f.Ordinal
	}
	if m.Done || sent <= m.Heard+1 { //mutant:lost-messages-are-not-counted
		return ""
	}
	return fmt.Sprintf("%s has sent %d messages, and the log of the run has %d of them", from, sent-1, m.Heard)
}

// shortOf says that a member's log has lost messages that it sent: by its own count it
// has sent fewer than the log of the run has of it.
func (s State) shortOf(from agent.ID, fact Fact) string {
	m, ok := s.Member(from)
	sent := 0
	switch f := fact.(type) {
	case agent.Status:
		sent = f.Ordinal
	case agent.Back:
		sent = f.Ordinal
	}
	if !ok || m.Done || s.Run.Rules < agent.WorkRules || sent == 0 || sent > m.Heard {
		return ""
	}
	return fmt.Sprintf("the log of %s has %d of the messages that it sent, and %d were received", from, sent-1, m.Heard)
}

// within is the limits of a child, whose time is part of what its parent has left.
func within(l agent.Limits, f agent.Delegate) agent.Limits {
	if f.SoftMS > 0 && f.HardMS > 0 {
		l.SoftMS = min(cmp.Or(l.SoftMS, agent.SoftDefaultMS), f.SoftMS)
		l.HardMS = min(cmp.Or(l.HardMS, agent.HardDefaultMS), f.HardMS)
	}
	return l
}

// setsTime: the command names limits of time, and they agree with each other.
func (f LimitSet) setsTime() bool { return f.SoftMS > 0 && f.HardMS >= f.SoftMS }

// setTime gives all members that have not ended new limits of time, from now on.
func (s State) setTime(f LimitSet) []Effect {
	if !f.setsTime() || s.Phase == Over {
		return nil
	}
	var fx []Effect
	s.Members(func(m Member) {
		if !m.Done {
			fx = append(fx, Tell{To: m.ID, Fact: agent.TimeLimitSet{SoftMS: f.SoftMS, HardMS: f.HardMS}})
		}
	})
	return fx
}
