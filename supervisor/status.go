package supervisor

import (
	"cmp"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// A supervisor whose log lost its tail waits for messages that were already sent. Each
// activation that does not follow a Released asks the members that, by its log, have not ended
// for their status (package agent, status.go): a member that has ended repeats its last
// Finish, the others report how much they have sent. An activation after a Released asks, too,
// once it has received nothing for a while: the tail may be lost behind the Released.

// AskMS is how long an orderly activation receives nothing before it asks, and the pause before a
// passivated supervisor is woken to ask. The pause doubles while the supervisor receives nothing.
const AskMS = 10 * 60_000

// askDue is when the members are asked next.
func (s State) askDue() int64 {
	return max(s.News, s.Asked) + max(AskMS, s.Asked-s.News)
}

// askMembers asks all members that have not ended.
func (s State) askMembers(fx []Effect) (State, []Effect) {
	if s.Run.Rules < spec.WorkRules || s.Phase == Over {
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

// askTimer is the timer by which an activation that follows a Released asks after all.
const askTimer = "ask"

// askInTime asks the members at once if an activation follows a crash or has received
// nothing for long, and otherwise once it is time. Each activation asks once.
func (s State) askInTime(now bool, fx []Effect) (State, []Effect) {
	s.AskDue = 0
	switch {
	case s.Run.Rules < spec.WorkRules || s.Phase == Over:
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

// question asks one member for its status; tallied adds the number when the question is sent.
func (s State) question(m Member) Effect {
	return Tell{To: m.ID, Fact: agent.StatusAsked{Life: s.Life}}
}

// doubts asks a member that is back for its status, if its log holds fewer messages than
// were sent to it: the missing ones may be on their way, and arrive before the question.
// Its first activation is not asked: the same step answers its first ask.
func (s State) doubts(m Member, f agent.Back) []Effect {
	if s.Phase == Over || m.Node == "" || f.Ordinal == 0 || f.Heard >= m.Told || m.Done || f.Damaged != "" || f.Ended != nil || s.Run.Rules < spec.WorkRules {
		return nil
	}
	return []Effect{s.question(m)}
}

// status handles the answer of a member that works or waits.
func status(s State, from spec.ID) (State, []Effect) {
	m, ok := s.Member(from)
	switch {
	case !ok:
		return s, nil
	case m.Done:
		return damaged(s, from, "the log of "+string(from)+" does not know of its end")
	}
	return s.seen(m, nil)
}

// unknown reports whether an agent waits for an answer although the log of the run
// does not know the agent: the log has lost the delegation.
func (s State) unknown(e Event) bool {
	_, ok := s.Member(e.From)
	if e.From == "" || ok || s.Phase == Over || s.Run.Rules < spec.WorkRules {
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

// received counts the asks of a member.
func (s State) received(e Event) State {
	m, ok := s.Member(e.From)
	if !ok || s.Run.Rules < spec.WorkRules {
		return s
	}
	switch e.Fact.(type) {
	case agent.Status, agent.Back: // a question wakes passivated members: their return is no news
	default:
		s.News = s.Now
	}
	m.Heard++
	return s.put(m)
}

// tallied counts the messages to members, and numbers the questions.
func (s State) tallied(fx []Effect) (State, []Effect) {
	if s.Run.Rules < spec.WorkRules {
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

// missed says how many asks of a member the log of the run lacks, by the member's
// own count.
func (s State) missed(from spec.ID, fact Fact) string {
	m, ok := s.Member(from)
	if !ok || s.Run.Rules < spec.WorkRules {
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

// shortOf says that a member's log has lost messages that it sent: by its own
// count it has sent fewer than the log of the run holds.
func (s State) shortOf(from spec.ID, fact Fact) string {
	m, ok := s.Member(from)
	sent := 0
	switch f := fact.(type) {
	case agent.Status:
		sent = f.Ordinal
	case agent.Back:
		sent = f.Ordinal
	}
	if !ok || m.Done || s.Run.Rules < spec.WorkRules || sent == 0 || sent > m.Heard {
		return ""
	}
	return fmt.Sprintf("the log of %s has %d of the messages that it sent, and %d were received", from, sent-1, m.Heard)
}

// within returns the limits of a child, whose time is part of the time that its parent has left.
func within(l spec.Limits, f agent.Delegate) spec.Limits {
	if f.SoftMS > 0 && f.HardMS > 0 {
		l.SoftMS = min(cmp.Or(l.SoftMS, spec.SoftDefaultMS), f.SoftMS)
		l.HardMS = min(cmp.Or(l.HardMS, spec.HardDefaultMS), f.HardMS)
	}
	return l
}

// setsTime reports whether the command names time limits, and they agree with each other.
func (f LimitSet) setsTime() bool { return f.SoftMS > 0 && f.HardMS >= f.SoftMS }

// setTime gives all members that have not ended new time limits, counted from now.
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
