package supervisor

import (
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

// askMembers asks all members that have not ended.
func (s State) askMembers(fx []Effect) (State, []Effect) {
	if s.Phase == Over {
		return s, fx
	}
	s.Inquiry.Last = s.Now
	s.Members(func(m Member) {
		if !m.Done {
			fx = append(fx, askStatus(m, s.Activation))
		}
	})
	return s, fx
}

// memberInquiry is when a supervisor asks its members for their status.
type memberInquiry struct {
	Last        int64 // when the members were last asked
	Due         int64 // when the current activation asks them; 0: it has, or need not
	LastMessage int64 // when one of them last sent anything else
}

// nextDue is when the members are asked next.
func (q memberInquiry) nextDue() int64 {
	return max(q.LastMessage, q.Last) + max(AskMS, q.Last-q.LastMessage)
}

// askTimer is the timer by which an activation that follows a Released asks after all.
const askTimer = "ask"

// scheduleInquiry asks the members at once if an activation follows a crash or has received
// nothing for long, and otherwise once it is time. Each activation asks once.
func (s State) scheduleInquiry(afterCrash bool, fx []Effect) (State, []Effect) {
	s.Inquiry.Due = 0
	switch {
	case s.Phase == Over:
		return s, fx
	case afterCrash || s.Now >= s.Inquiry.nextDue(): //mutant:members-asked
		return s.askMembers(fx)
	}
	s.Inquiry.Due = s.Inquiry.nextDue()
	return s, append(fx, Arm{Timer: askTimer, Due: s.Inquiry.Due}) //mutant:ask-armed
}

// wokeToAsk asks the members if it is time by the stamps of the log.
func wokeToAsk(s State) (State, []Effect) {
	switch {
	case s.Inquiry.Due == 0 || s.Phase == Over:
		return s, nil
	case s.Now < s.Inquiry.Due:
		return s, []Effect{Arm{Timer: askTimer, Due: s.Inquiry.Due}}
	}
	s.Inquiry.Due = 0
	return s.askMembers(nil)
}

// handleStatus handles the answer of a member that works or waits.
func handleStatus(s State, from spec.ID) (State, []Effect) {
	m, ok := s.Member(from)
	switch {
	case !ok:
		return s, nil
	case m.Done:
		return giveUpDamaged(s, from, "the log of "+string(from)+" does not know of its end")
	}
	return s.markFirstMessage(m, nil)
}

// awaitsAnswer reports whether an event is a message whose sender waits for an answer.
func (e Input) awaitsAnswer() bool {
	switch f := e.Fact.(type) {
	case agent.Reserve, agent.Delegate, agent.Send, agent.Backlog, agent.ProposeStop, agent.VerifyLog, agent.Park, agent.Status:
		return e.From != ""
	case agent.ReportLog:
		return e.From != "" && f.Ended == nil && f.Damaged == ""
	}
	return false
}

// countReceived counts the messages of a member.
func (s State) countReceived(e Input) State {
	m, ok := s.Member(e.From)
	if !ok {
		return s
	}
	switch e.Fact.(type) {
	case agent.Status, agent.ReportLog: // a question wakes passivated members, so their message does not count as a sign of life
	default:
		s.Inquiry.LastMessage, m.heardMS = s.Now, s.Now //mutant:leases-not-renewed
	}
	m.Received++
	return s.put(m)
}

// countSent counts the messages to members, and numbers the questions.
func (r roster) countSent(fx []Effect) (roster, []Effect) {
	for i, e := range fx {
		tell, ok := e.(Tell)
		if !ok {
			continue
		}
		m, ok := r.Member(tell.To)
		if !ok {
			continue
		}
		m.Sent++
		r = r.put(m)
		if f, asks := tell.Fact.(agent.StatusAsked); asks {
			f.Ordinal = m.Sent
			tell.Fact = f
			fx[i] = tell
		}
	}
	return r, fx
}

// askStatus asks one member for its status; countSent adds the number when the question is sent.
func askStatus(m Member, activation string) Effect {
	return Tell{To: m.ID, Fact: agent.StatusAsked{Activation: activation}}
}

// mayLackMessages reports whether the log of a member that is back holds fewer messages than
// were sent to it: the missing ones may be on their way, and arrive before a question.
// Its first activation is not asked: the same step answers its first message.
func (m Member) mayLackMessages(f agent.ReportLog) bool {
	return m.Node != "" && f.Ordinal != 0 && f.Received < m.Sent && !m.Done && f.Damaged == "" && f.Ended == nil
}

// lostByRun says how many messages of a member the log of the run lacks, by the member's
// own count.
func (m Member) lostByRun(fact Fact) string {
	sent := sentByOwnCount(fact)
	if f, ok := fact.(agent.Finish); ok {
		sent = f.Ordinal
	}
	if m.Done || sent <= m.Received+1 { //mutant:lost-messages-are-not-counted
		return ""
	}
	return fmt.Sprintf("%s has sent %d messages, and the log of the run has %d of them", m.ID, sent-1, m.Received)
}

// lostByMember says that a member's log has lost messages that it sent: by its own
// count it has sent fewer than the log of the run holds.
func (m Member) lostByMember(fact Fact) string {
	sent := sentByOwnCount(fact)
	if m.Done || sent == 0 || sent > m.Received {
		return ""
	}
	return fmt.Sprintf("the log of %s has %d of the messages that it sent, and %d were received", m.ID, sent-1, m.Received)
}

// sentByOwnCount is the number that a status or a return gives its own message; 0: it has none.
func sentByOwnCount(fact Fact) int {
	switch f := fact.(type) {
	case agent.Status:
		return f.Ordinal
	case agent.ReportLog:
		return f.Ordinal
	}
	return 0
}
