package verify

import (
	"strings"

	"github.com/troupe-run/troupe/mailbox"
)

// account is what an agent has asked of the supervisor.
type account struct {
	asked     map[int]request
	settled   map[int]settlement
	returned  map[int]bool // begun under an allowance that was given back
	questions []question
}

// request is a reservation that was asked for.
type request struct {
	entry uint64 // in the log of the run
	body  reserveBody
	bound int64 // tokens
}

// settlement is a reservation that was settled.
type settlement struct {
	entry uint64 // in the log of the run
	cause uint64 // in the log of the agent
	body  settleBody
}

func (a *account) isAsked(call string) bool {
	for _, q := range a.questions {
		if q.body.Call == call {
			return true
		}
	}
	return false
}

// account returns the account of an agent.
func (v *verifier) account(at mailbox.Address) *account {
	a := v.accounts[at]
	if a == nil {
		a = &account{asked: map[int]request{}, settled: map[int]settlement{}, returned: map[int]bool{}}
		v.accounts[at] = a
	}
	return a
}

// readAccounts reads what the agents have asked of the supervisor.
func (v *verifier) readAccounts(super *log) {
	whole := !v.report.Damaged
	for _, m := range super.inbox {
		a := v.account(m.from)
		switch m.kind {
		case "reserve":
			var b reserveBody
			if super.decodeOf(m.entry, m.kind, m.body, &b) {
				a.asked[b.Reservation] = request{m.entry, b, b.Request.Input + b.Request.Output}
			}
		case "return_allowance":
			var b returnBody
			if super.decodeOf(m.entry, m.kind, m.body, &b) && b.Open {
				a.returned[b.Reservation] = true
				a.asked[b.Reservation] = request{entry: m.entry, bound: b.Taken.Tokens}
			}
		case "settle":
			var b settleBody
			if super.decodeOf(m.entry, m.kind, m.body, &b) {
				v.readSettlement(super, a, m, b, whole)
			}
		case "delegate":
			var b delegateBody
			if super.decodeOf(m.entry, m.kind, m.body, &b) {
				v.readDelegation(m.from.Agent(), b)
			}
		case "park":
			var b parkBody
			if super.decodeOf(m.entry, m.kind, m.body, &b) {
				a.questions = append(a.questions, question{m.entry, m.n, m.from, b})
			}
		}
	}
}

// readDelegation notes the parent of an agent. The supervisor begins an agent below the one that asks for it, and once.
func (v *verifier) readDelegation(parent string, b delegateBody) {
	if _, known := v.parents[b.Child]; !known && strings.HasPrefix(b.Child, parent+"-") {
		v.parents[b.Child], v.successors[b.Child] = parent, b.HandsOff
	}
}

// checkMoney checks reservations and settlements in the log of the run.
func (v *verifier) checkMoney(super *log) {
	v.readAccounts(super)
	v.checkSums(super)
	if !v.report.Damaged && super.closed > 0 {
		v.checkOpen(super)
	}
}

// readSettlement records a settlement, and checks that it is the first one of a reservation that was granted.
func (v *verifier) readSettlement(super *log, a *account, m message, b settleBody, whole bool) {
	agent := v.logs[m.from]
	known := agent != nil && whole && m.n <= agent.n // the agent's log may have been read before
	if s, twice := a.settled[b.Reservation]; twice && whole {
		super.addFinding(Settled, m.entry, "reservation %d of %s was settled in entry %d already", b.Reservation, m.from,
			s.entry)
	}
	a.settled[b.Reservation] = settlement{m.entry, m.n, b}
	v.report.Settled++
	_, asked := a.asked[b.Reservation]
	switch {
	case b.Under > 0:
		if known && agent.granted[b.Under].Allowance == nil {
			super.addFinding(Reserved, m.entry, "reservation %d of %s was taken out of grant %d, which has no allowance",
				b.Reservation, m.from, b.Under)
		}
	case known:
		// An attempt under an allowance that was given back while it was under way is settled like a granted one.
		if _, ok := agent.granted[b.Reservation]; !a.returned[b.Reservation] && (!asked || !ok && b.Used.Tokens > 0) {
			super.addFinding(Reserved, m.entry, "reservation %d of %s is settled, and was not granted", b.Reservation, m.from)
		}
	}
	if !b.Lost { // else its bound counts
		v.report.Tokens += b.Used.Tokens
	}
}

// checkOpen finds grants that were never settled, of agents that have ended by themselves.
func (v *verifier) checkOpen(super *log) {
	for _, l := range v.sortedLogs {
		if l.isSuper() || l.closed == 0 {
			continue
		}
		for reservation := range l.granted {
			if _, ok := v.account(l.at).settled[reservation]; !ok {
				super.addFinding(Settled, super.closed, "reservation %d of %s was granted and never settled", reservation, l.at)
			}
		}
	}
}
