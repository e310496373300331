package verify

import (
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// answer is what a model answered, or that it failed to.
type answer struct {
	entry       uint64
	kind        string
	reservation int
	calls       []string // names of the tools
	known       bool     // the usage
	usage       usageBody
	failure     string // class and text
}

// grant is a reservation that the supervisor granted.
type grant struct {
	grantedBody
	entry uint64
	cause uint64 // in the log of the run
	i     int    // number within the messages of the cause
}

func (l *log) readAnswer(item mailbox.Item) {
	var b answerBody
	if !l.decode(item, &b) {
		return
	}
	a := answer{entry: l.n, kind: item.Kind, reservation: b.Reservation, known: b.Reply.Known || b.Unbilled,
		usage: b.Reply.Usage}
	if b.Unbilled {
		a.usage = usageBody{}
	}
	var f failureBody
	if item.Kind == "failed" && l.decode(item, &f) {
		a.failure = f.Class + ": " + f.Detail
	}
	for _, c := range b.Reply.Message.Calls {
		a.calls = append(a.calls, c.Name)
	}
	l.answers = append(l.answers, a)
}

// answerTo returns the first answer under a reservation; nil: there is none.
func (l *log) answerTo(reservation int) *answer {
	for i := range l.answers {
		if l.answers[i].reservation == reservation {
			return &l.answers[i]
		}
	}
	return nil
}

// replies returns the reply of each turn whose calls were to run, else the newest. Its settlement, or the request
// before it, says which turn it is: a turn may also have replies that were cut off, and summaries, whose calls never
// run.
func (l *agentLog) replies() map[int]*answer {
	if l.turns != nil {
		return l.turns
	}
	l.turns = map[int]*answer{}
	runs := map[int]bool{}
	for i := range l.answers {
		a := &l.answers[i]
		if a.kind != "replied" || l.answerTo(a.reservation) != a {
			continue
		}
		if s, ok := l.account.settled[a.reservation]; ok && s.cause == a.entry {
			if s.body.Used.Calls > 0 || !runs[s.body.Turn] {
				l.turns[s.body.Turn], runs[s.body.Turn] = a, s.body.Used.Calls > 0
			}
		} else if r, asked := l.account.asked[a.reservation]; !ok && asked {
			l.turns[r.body.Turn] = a
		}
	}
	return l.turns
}

// checkAnswers checks what models answered against what was reserved and what was settled.
func (l *agentLog) checkAnswers() {
	for i := range l.answers {
		a := &l.answers[i]
		if first := l.answerTo(a.reservation); first != a {
			l.addFinding(OneReply, a.entry, "reservation %d was answered in entry %d already", a.reservation, first.entry)
			continue
		}
		s, settled := l.account.settled[a.reservation]
		g, granted := l.granted[a.reservation]
		switch {
		case granted && g.entry > a.entry:
			l.addFinding(Reserved, a.entry, "reservation %d was answered before it was granted in entry %d", a.reservation,
				g.entry)
		case !granted && !l.hadAllowance(a):
			l.addFinding(Reserved, a.entry, "a model answered under reservation %d, which was not granted", a.reservation)
		case !granted && settled && s.body.Under == 0 && !l.account.returned[a.reservation]:
			l.addFinding(Reserved, a.entry,
				"a model answered under reservation %d, which was neither granted nor taken out of an allowance", a.reservation)
		}
		switch super := l.run.super(); {
		case !settled && super.closed > 0 && len(super.inbox.endsOf(l.at.Agent())) > 0: // an agent that was given up settles nothing
			l.addFinding(Settled, a.entry, "reservation %d was answered and never settled", a.reservation)
		case settled:
			l.checkAmount(a, s)
		}
	}
}

// hadAllowance reports whether an allowance had been granted when an answer came.
func (l *agentLog) hadAllowance(a *answer) bool {
	for n, g := range l.granted {
		if n < a.reservation && g.Allowance != nil && g.entry < a.entry {
			return true
		}
	}
	return false
}

// checkAmount checks that a settlement is of the amount that the answer reports.
func (l *agentLog) checkAmount(a *answer, s settlement) {
	used := s.body.Used.Tokens
	switch {
	case s.cause < a.entry && used != 0: // it was settled before the answer came: all that is known is its bound
		l.run.super().addFinding(SettledAmount, s.entry,
			"reservation %d of %s is settled with %d tokens before its answer in entry %d", a.reservation, l.at, used, a.entry)
	case s.cause > a.entry:
		l.run.super().addFinding(SettledAmount, s.entry,
			"reservation %d of %s is settled by entry %d and was answered in entry %d", a.reservation, l.at, s.cause, a.entry)
	case s.cause < a.entry:
	case a.known && s.body.Lost:
		l.run.super().addFinding(SettledAmount, s.entry,
			"reservation %d of %s is settled as lost, and its answer in entry %d reports %d tokens", a.reservation, l.at,
			a.entry, a.usage.total())
	case a.known && used != a.usage.total(), !a.known && used != 0:
		l.run.super().addFinding(SettledAmount, s.entry,
			"reservation %d of %s is settled with %d tokens, and its answer in entry %d reports %d", a.reservation, l.at, used,
			a.entry, a.usage.total())
	case a.known && l.task != nil && !slices.Contains(l.costs(a.usage), s.body.Used.Nano):
		l.run.super().addFinding(SettledAmount, s.entry,
			"reservation %d of %s is settled with $%.9f, which the %d tokens of its answer in entry %d cost at no model of "+
				"the agent", a.reservation, l.at,
			float64(s.body.Used.Nano)/1e9, used, a.entry)
	}
}

// checkUnanswered finds tokens that were settled without an answer that reports them.
func (v *verifier) checkUnanswered(super *log) {
	for _, l := range v.sortedLogs {
		for reservation, s := range v.account(l.at).settled {
			if a := l.answerTo(reservation); s.body.Used.Tokens > 0 && s.cause <= l.n && (a == nil || a.entry > s.cause) {
				super.addFinding(SettledAmount, s.entry,
					"reservation %d of %s is settled with %d tokens, and no answer reports them", reservation, l.at,
					s.body.Used.Tokens)
			}
		}
	}
}

// checkStop checks that an agent begins nothing after its cancel. What had begun may end.
func (l *agentLog) checkStop() {
	super := l.run.super()
	if l.isSuper() || l.canceled == 0 || super == nil {
		return
	}
	for _, m := range super.inbox {
		if m.from == l.at && m.n > l.canceled && (m.kind == "reserve" || m.kind == "delegate") {
			super.addFinding(Canceled, m.entry, "%s asks for %q in its entry %d, and read its cancel in entry %d", l.at, m.kind,
				m.n, l.canceled)
		}
	}
	late := 0
	for i := range l.answers {
		a := &l.answers[i]
		if a.entry < l.canceled || l.answerTo(a.reservation) != a {
			continue
		}
		if late++; late > 1 || l.granted[a.reservation].entry > l.canceled {
			l.addFinding(Canceled, a.entry,
				"a model answers under reservation %d, for which it was asked after the cancel in entry %d", a.reservation,
				l.canceled)
		}
	}
	for _, a := range l.attempts.list {
		if began := l.earliest(a); a.returned > 0 && !a.killed && began > l.canceled {
			l.addFinding(Canceled, a.returned,
				"attempt %d of call %s has a result, and entry %d, by which it began, follows the cancel in entry %d", a.no, a.call,
				began, l.canceled)
		}
	}
}

// earliest returns the first entry by which an attempt can have begun.
func (l *agentLog) earliest(a *attempt) uint64 {
	if a.started > 0 {
		return a.started
	}
	if before := l.attempts.find(a.call, a.no-1); before != nil && before.returned > 0 && before.returned < a.returned {
		return before.returned
	}
	if _, r := l.toolOf(a.call); r != nil {
		return r.entry
	}
	return 0
}
