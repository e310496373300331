package verify

import (
	"fmt"

	"github.com/troupe-run/troupe/mailbox"
)

// account is what an agent has reserved and settled.
type account struct {
	bounds   map[int]int64 // of the reservations that were asked for, in tokens
	settled  map[int]uint64
	returned map[int]bool // begun under an allowance that was given back
}

// checkMoney checks reservations and settlements in the log of the run.
func (v *verifier) checkMoney(super *log) {
	accounts := map[mailbox.Address]*account{}
	limit, whole := int64(0), !v.report.Damaged
	for _, m := range super.inbox {
		a := accounts[m.from]
		if a == nil {
			a = &account{map[int]int64{}, map[int]uint64{}, map[int]bool{}}
			accounts[m.from] = a
		}
		item := mailbox.Item{Kind: m.kind, Body: m.body}
		switch m.kind {
		case "reserve":
			var b reserveBody
			if super.decode(item, &b) {
				a.bounds[b.Reservation] = b.Request.Input + b.Request.Output
			}
		case "return_allowance":
			var b returnBody
			if super.decode(item, &b) && b.Open {
				a.returned[b.Reservation] = true
				a.bounds[b.Reservation] = b.Taken.Tokens
			}
		case "settle":
			var b settleBody
			if super.decode(item, &b) {
				v.settle(super, a, m, b, whole)
			}
		}
	}
	for _, c := range super.opened {
		limit = c.Limits.Tokens
	}
	v.report.TokenLimit = limit
	if whole && limit > 0 && !super.limitsChanged && !v.overrun && v.report.Tokens > limit {
		super.find(Limit, super.n, "%d tokens were settled, the limit is %d", v.report.Tokens, limit)
	}
	if whole && super.closed > 0 {
		v.checkOpen(super, accounts)
	}
}

// settle checks one settlement.
func (v *verifier) settle(super *log, a *account, m message, b settleBody, whole bool) {
	agent := v.logs[m.from]
	if at, twice := a.settled[b.Reservation]; twice && whole {
		super.find(Settled, m.entry, "reservation %d of %s was settled in entry %d already", b.Reservation, m.from, at)
	}
	a.settled[b.Reservation] = m.entry
	v.report.Settled++
	bound, asked := a.bounds[b.Reservation]
	if b.Under > 0 {
		bound, asked = b.Taken.Tokens, true
		if agent != nil && whole {
			if g, ok := agent.granted[b.Under]; !ok || g.Allowance == nil {
				super.find(Reserved, m.entry, "reservation %d of %s was taken out of grant %d, which has no allowance", b.Reservation, m.from, b.Under)
			}
		}
	} else if agent != nil && whole {
		// An attempt under an allowance that was given back while it was under way is settled like a granted one.
		if _, ok := agent.granted[b.Reservation]; !a.returned[b.Reservation] && (!asked || !ok && b.Used.Tokens > 0) {
			super.find(Reserved, m.entry, "reservation %d of %s is settled, and was not granted", b.Reservation, m.from)
		}
	}
	if b.Lost {
		return // its bound counts, which the log of the agent shows
	}
	v.report.Tokens += b.Used.Tokens
	v.overrun = v.overrun || asked && b.Used.Tokens > bound
}

// checkOpen finds grants that were never settled, of agents that have ended by themselves.
func (v *verifier) checkOpen(super *log, accounts map[mailbox.Address]*account) {
	for _, l := range v.order {
		if l.isSuper() || l.closed == 0 {
			continue
		}
		for reservation := range l.granted {
			if a := accounts[l.at]; a == nil || a.settled[reservation] == 0 {
				super.find(Settled, super.closed, "reservation %d of %s was granted and never settled", reservation, l.at)
			}
		}
	}
}

// certify says how the run came to its stop.
func (v *verifier) certify(super *log) {
	c := &v.report.Certificate
	add := func(format string, args ...any) { c.Facts = append(c.Facts, fmt.Sprintf(format, args...)) }
	if super.canceled > 0 {
		add("a cancel is entry %d of %s%s", super.canceled, super.at, why(super.cancel.Why))
	}
	for _, m := range super.inbox {
		if m.from.Agent() != "root" {
			continue
		}
		item := mailbox.Item{Kind: m.kind, Body: m.body}
		switch m.kind {
		case "propose_stop":
			var b proposalBody
			if mailbox.Unmarshal(item.Body, &b) == nil {
				add("root proposed stop %d in its entry %d (entry %d of %s)", b.Proposal, m.n, m.entry, super.at)
			}
		case "finish":
			var b finishBody
			if mailbox.Unmarshal(item.Body, &b) == nil {
				c.Reason = b.Outcome.Reason
				add("root ended as %s after %d turns and %d calls (entry %d of %s)%s", b.Outcome.Reason, b.Turns, b.Calls, m.entry, super.at, why(b.Outcome.Detail))
			}
		}
	}
	if root := v.logs[mailbox.At(super.at.Run(), "root")]; root != nil {
		for _, m := range root.inbox {
			if m.kind == "stop_allowed" || m.kind == "stop_vetoed" {
				add("the supervisor answered %s (entry %d of %s)", m.kind, m.entry, root.at)
			}
		}
	}
	if super.closed > 0 {
		add("the log of the run is closed (entry %d of %s)", super.closed, super.at)
	}
}

func why(text string) string {
	const whyBytes = 200
	if len(text) > whyBytes {
		text = text[:whyBytes] + "…"
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %q", text)
}
