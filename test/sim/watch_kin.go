package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// watchKin checks that an agent reads each peer message once, attributed to its sender, and that
// an agent that claims to be done has read all of them.
func (s *sim) watchKin(w *shadow, before, after *agent.State, f activation.Fact, out activation.Stepped) {
	j, a := &w.judge, w.actor
	running := before.Phase != "" && before.Phase != agent.Done
	switch {
	case f.Kind == "returned" && f.From != "":
		e := read[agent.Returned](s, f)
		for _, c := range before.Calls {
			if c.ID == e.Call && c.Child != "" && c.Stage == agent.Running && e.Live {
				j.away[c.ID] = c.Child
				s.reach.hit(SentOff)
			}
		}
	case f.Kind == "messaged" && running:
		e := read[agent.Messaged](s, f)
		child := j.away[e.Call]
		if e.Call != "" && child == "" && s.super.hurt {
			break // the run lost the record of this message and sends it again; no agent is waited for
		}
		if e.Call != "" && child != e.From {
			s.fail("%s hears of %s by call %s, and had sent off %q", a.id, e.From, e.Call, child)
		}
		delete(j.away, e.Call)
		j.mail = append(j.mail, e)
		if before.Idle && after.Idle {
			s.fail("%s was told something by %s, and sits idle", a.id, e.From)
		}
	}
	s.watchMail(w, before, after)
	if slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool { return t.Kind == "propose_stop" }) && len(j.away) > 0 {
		s.fail("%s proposes its end, and %d children of it work in the background", a.id, len(j.away))
	}
	if after.Idle && (after.Phase != agent.Waiting || len(j.away) == 0 || len(j.mail) > 0 || after.Cancel != nil || after.Soft || after.Query.Query != "") {
		s.fail("%s sits idle: %s, %d away, %d unread", a.id, after.Phase, len(j.away), len(j.mail))
	}
	if running && after.Phase == agent.Done {
		s.watchLeft(w, after)
	}
	s.reachKin(before, after, f)
}

// watchMail checks that each message enters the transcript once, in order, with every
// line of it quoted.
func (s *sim) watchMail(w *shadow, before, after *agent.State) {
	j, a := &w.judge, w.actor
	if after.Phase == agent.Done {
		return
	}
	var told []model.Message
	for _, m := range after.History[min(max(len(before.History), after.Recalled), len(after.History)):] {
		if m.Role == model.User && strings.Contains(m.Text, byAgent) {
			told = append(told, m)
		}
	}
	if len(told) > len(j.mail) {
		s.fail("%s reads %d messages of agents, %d were sent", a.id, len(told), len(j.mail))
	}
	for i, m := range told {
		head, text, _ := strings.Cut(m.Text, "\n")
		if !strings.Contains(head, string(j.mail[i].From)) || len(text) < len(j.mail[i].Text) {
			s.fail("%s reads %q, and %s said %q", a.id, m.Text, j.mail[i].From, j.mail[i].Text)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "> ") {
				s.fail("%s reads a line of %s as if it were not its word: %q", a.id, j.mail[i].From, line)
			}
		}
	}
	j.mail = j.mail[len(told):]
	if len(j.mail) != len(after.Mail) {
		s.fail("%s has %d messages to read, and keeps %d", a.id, len(j.mail), len(after.Mail))
	}
}

// byAgent marks text that agents wrote.
const byAgent = "An agent says this, not a person"

// watchLeft checks that a successful end leaves no background child behind, and that any
// other end names the children that it cancels.
func (s *sim) watchLeft(w *shadow, after *agent.State) {
	j, a := &w.judge, w.actor
	o := after.Outcome
	if o.Reason == spec.Completed && len(j.away)+len(j.mail) > 0 {
		s.fail("%s has completed, with %d children in the background and %d messages unread", a.id, len(j.away), len(j.mail))
	}
	for _, child := range j.away {
		s.reach.hit(TakenAlong)
		if !strings.Contains(o.Detail, string(child)) {
			s.fail("%s ends (%s) and does not say that it takes %s with it: %q", a.id, o.Reason, child, o.Detail)
		}
	}
}

// watchMessages checks that a message goes to a live agent, once, within the limit, that its
// sender gets an answer, and that a background child reports once.
func (s *sim) watchMessages(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	answered := 0
	for _, t := range out.Messages {
		switch t.Kind {
		case "returned":
			answered++
		case "messaged":
			s.watchMessage(before, after, f, t)
		}
	}
	sender, known := before.Member(spec.ID(f.From.Agent()))
	if f.Kind == "send" && known { // garbage may contain anything, in the name of no known agent
		key := callKey{spec.ID(f.From.Agent()), read[agent.Send](s, f).Call, 0}
		if s.ledger.sent[key]++; s.ledger.sent[key] > 1 && !s.hurtAny() {
			s.fail("%s sends the message of call %s again", key.who, key.call)
		}
	}
	if f.Kind == "send" && known && !sender.Done && answered != 1 {
		s.fail("%s sends a message and is answered %d times", f.From, answered)
	}
	if l := after.Run.Limits.Messages; after.Messages > l && f.Kind == "send" && before.Messages < after.Messages {
		s.fail("%d messages, %d are allowed", after.Messages, l)
	}
	if before.Live <= after.Live {
		return
	}
	after.Members(func(m supervisor.Member) {
		was, _ := before.Member(m.ID)
		parent, ok := after.Member(m.Parent)
		if !m.Done || was.Done || !m.Background || !ok || parent.Done {
			return
		}
		told := 0
		for _, t := range out.Messages {
			var e agent.Messaged
			if t.Kind == "messaged" && mailbox.Unmarshal(t.Body, &e) == nil && e.From == m.ID && e.Call == m.Call && t.To.Agent() == string(m.Parent) {
				told++
			}
		}
		if told != 1 {
			s.fail("%s ends in the background, and its parent is told %d times", m.ID, told)
		}
	})
}

func (s *sim) watchMessage(before, after *supervisor.State, f activation.Fact, t activation.OutboxMessage) {
	to, known := after.Member(spec.ID(t.To.Agent()))
	if !known || to.Done {
		s.fail("a message goes to %s, which has ended", t.To)
	}
	var e agent.Messaged
	if err := mailbox.Unmarshal(t.Body, &e); err != nil {
		s.fail("messaged: %v", err)
	}
	if f.Kind == "send" && (before.Cancel != nil || string(e.From) != f.From.Agent()) {
		s.fail("a message of %s is sent as that of %s (canceled %v)", f.From, e.From, before.Cancel != nil)
	}
	if from, _ := after.Member(e.From); e.Call != "" && !from.Done {
		s.fail("%s is told that %s has ended, which lives", t.To, e.From)
	}
}

// reachKin notes the outcomes of background children and peer messages.
func (s *sim) reachKin(before, after *agent.State, f activation.Fact) {
	hit := func(p Place, so bool) {
		if so {
			s.reach.hit(p)
		}
	}
	hit(SatIdle, after.Idle && !before.Idle)
	hit(MailAtStop, f.Kind == "stop_allowed" && len(before.Mail) > 0 && after.Phase != agent.Done)
	if !before.Idle {
		return
	}
	woken := !after.Idle && after.Phase != agent.Done
	hit(IdleTakeover, f.Kind == "resumed")
	hit(IdleCanceled, f.Kind == "canceled" && after.Phase == agent.Done)
	hit(IdleSteered, f.Kind == "steered" && woken)
	hit(WokenByAnswer, f.Kind == "messaged" && woken && read[agent.Messaged](s, f).Call != "")
	hit(WokenByMessage, f.Kind == "messaged" && woken && read[agent.Messaged](s, f).Call == "")
}

// unsent distinguishes the reasons why a message was not sent, by the words of the refusal.
var unsent = []struct {
	words string
	place Place
}{
	{"sent to", MessageSent}, {"has finished", MessageToEnded}, {"may send", MessagesOut}, {"the run was canceled", MessageCanceled},
	{"there is no agent", MessageToNobody}, {"several agents", MessageToNobody}, {"yourself", MessageToNobody}, {"no parent", MessageToNobody},
}

func (s *sim) reachSent(t activation.OutboxMessage) {
	var e agent.Returned
	if err := mailbox.Unmarshal(t.Body, &e); err != nil {
		s.fail("returned: %v", err)
	}
	for _, r := range unsent {
		if strings.Contains(e.Text, r.words) {
			s.reach.hit(r.place)
			return
		}
	}
	s.fail("a message is refused for a reason that nobody knows: %q", e.Text)
}
