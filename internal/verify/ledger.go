package verify

import (
	"cmp"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// ledger follows the budget of a run through the log of its supervisor: the limit in force, what was settled, and what
// open reservations and allowances hold. A grant is known by the log of the agent that read it; one that no log holds
// is not counted, so the sums are never above the true ones.
type ledger struct {
	v     *verifier
	super *log

	limit   Amount // of the run; a component of 0 is not limited
	frozen  uint64 // the entry that froze the budget; 0: it is not frozen
	overrun Amount // billed above reservations; no calls
	overAt  uint64 // the first entry with an overrun; 0: none
	newOver Amount // the part of the entry that is read
	settled Amount // without others
	held    Amount
	others  othersBody
	agents  map[mailbox.Address]*agentLedger
	// subtrees are the limits of agents and those below them.
	subtrees map[string]subtree
	figures  []figures
}

// agentLedger is the part of one agent.
type agentLedger struct {
	settled Amount
	open    map[int]Amount // what reservations hold
	closed  int            // the newest reservation that is closed
	newest  uint64         // the entry that closed it, or with which the agent left
	ahead   Amount         // rest of the allowance
	aheadOf int            // the reservation with which it was granted; 0: none
	left    bool           // it has ended, or was given up: what was open is spent
	charged Amount         // held or booked for the work of an agent of another program
	// chargeOpen says that charged is held.
	chargeOpen bool
}

func (a *agentLedger) held() (sum Amount) {
	for _, h := range a.open {
		sum = sum.plus(h)
	}
	return sum.plus(a.ahead)
}

// grantOf is a grant with its agent.
type grantOf struct {
	grant
	at *log
}

// checkSums follows the log of the run. At each grant, all that was settled and all that is held must be within the
// limits in force: those of the run, and those of the agent.
func (v *verifier) checkSums(super *log) {
	b := &ledger{v: v, super: super, agents: map[mailbox.Address]*agentLedger{}, subtrees: map[string]subtree{}}
	v.ledger = b
	if len(super.opened) == 0 {
		return
	}
	grants, inbox, changes := v.grantsByCause(super), super.inbox, super.budget
	for entry := uint64(1); entry <= super.n; entry++ {
		changed := false
		b.newOver = Amount{}
		for ; len(changes) > 0 && changes[0].entry == entry; changes = changes[1:] {
			b.change(changes[0])
			changed = true
		}
		for ; len(inbox) > 0 && inbox[0].entry == entry; inbox = inbox[1:] {
			changed = b.read(inbox[0]) || changed
		}
		changed = b.holdCharges(entry) || changed
		if changed {
			b.note(entry, false)
		}
		for ; len(grants) > 0 && grants[0].cause <= entry; grants = grants[1:] {
			b.grant(grants[0])
			b.note(entry, true)
		}
	}
	b.report()
}

// grantsByCause returns the grants that the log of the run has caused, in order.
func (v *verifier) grantsByCause(super *log) (grants []grantOf) {
	for _, l := range v.sortedLogs {
		if l.isSuper() || l.deleted {
			continue
		}
		for _, g := range l.granted {
			if g.cause <= super.n { // else it was read before the log of the run
				grants = append(grants, grantOf{g, l})
			}
		}
	}
	slices.SortFunc(grants, func(a, b grantOf) int {
		return cmp.Or(cmp.Compare(a.cause, b.cause), cmp.Compare(a.i, b.i), cmp.Compare(a.at.at, b.at.at))
	})
	return grants
}

// addFinding adds a broken rule, unless a log was damaged: what was settled is then not known.
func (b *ledger) addFinding(rule Rule, entry uint64, format string, args ...any) {
	if !b.v.report.Damaged {
		b.super.addFinding(rule, entry, format, args...)
	}
}

func (b *ledger) of(at mailbox.Address) *agentLedger {
	a := b.agents[at]
	if a == nil {
		a = &agentLedger{open: map[int]Amount{}}
		b.agents[at] = a
	}
	return a
}

// change reads a command about the budget.
func (b *ledger) change(c budgetChange) {
	switch {
	case c.others != nil:
		b.others = *c.others
	case c.below != nil:
		b.limitSubtree(c.entry, *c.below)
	case c.gone != "":
		for at, a := range b.agents {
			if at.Agent() == c.gone {
				b.forfeit(a)
				b.settleCharge(at, 1) // whether it has called is not known
				b.leave(a, c.entry)
			}
		}
	case b.isOver(c.entry):
	case c.set.Freeze:
		b.frozen = c.entry
	case c.setsLimit():
		b.frozen = 0
		limit := c.set.Limits.Amount
		if c.set.Patch {
			limit = Amount{cmp.Or(limit.Tokens, b.limit.Tokens), cmp.Or(limit.Nano, b.limit.Nano),
				cmp.Or(limit.Calls, b.limit.Calls)}
		}
		b.limit = limit
	}
}

// read reads a message of an agent, and reports whether it has changed the sums.
func (b *ledger) read(m message) bool {
	a := b.of(m.from)
	switch m.kind {
	case "reserve": // it gives the allowance back
		return b.takeBack(a)
	case "return_allowance":
		var r returnBody
		if mailbox.Unmarshal(m.body, &r) == nil && r.Grant == a.aheadOf {
			b.openAhead(m, a, r.Reservation, r.Taken, r.Open)
			b.takeBack(a)
		}
	case "settle":
		var s settleBody
		if mailbox.Unmarshal(m.body, &s) == nil {
			b.closeReservation(m, a, s)
		}
	case "report_log":
		var r reportBody
		if mailbox.Unmarshal(m.body, &r) != nil || r.Ended == nil {
			return false
		}
		b.takeBack(a)
		b.settleCharge(m.from, 1) // whether it has called is not known
		b.leave(a, m.entry)
	case "finish": // what is still open is spent in full
		var f finishBody
		if mailbox.Unmarshal(m.body, &f) == nil {
			b.checkForeignCalls(m, f.Foreign)
			b.settleCharge(m.from, f.Foreign)
		}
		b.takeBack(a)
		b.leave(a, m.entry)
	default:
		return false
	}
	return true
}

// takeBack ends an allowance.
func (b *ledger) takeBack(a *agentLedger) bool {
	if a.aheadOf == 0 {
		return false
	}
	b.held = b.held.minus(a.ahead)
	a.ahead, a.aheadOf = Amount{}, 0
	return true
}

// forfeit spends an allowance: how many attempts have begun under it is not known.
func (b *ledger) forfeit(a *agentLedger) {
	lost := Amount{a.ahead.Tokens, a.ahead.Nano, 0}
	b.takeBack(a)
	a.settled, b.settled = a.settled.plus(lost), b.settled.plus(lost)
}

// leave spends what reservations hold for an agent.
func (b *ledger) leave(a *agentLedger, entry uint64) {
	for reservation := range a.open {
		b.lose(a, reservation)
	}
	a.left, a.newest = true, entry
}

// lose spends the amount of a reservation. How many of its tool calls ran is not known, so no call is counted.
func (b *ledger) lose(a *agentLedger, reservation int) {
	held := a.open[reservation]
	delete(a.open, reservation)
	b.held = b.held.minus(held)
	held.Calls = 0
	a.settled, b.settled = a.settled.plus(held), b.settled.plus(held)
	a.closed = max(a.closed, reservation)
}

// openAhead opens a reservation for an attempt that began under an allowance.
func (b *ledger) openAhead(m message, a *agentLedger, reservation int, taken Amount, open bool) {
	if !open || reservation <= a.closed || a.left {
		return
	}
	if over := taken.over(a.ahead); over != (Amount{}) {
		b.addFinding(Limit, m.entry, "%s has taken %s for reservation %d out of its allowance, of which %s are left", m.from,
			taken.all(), reservation, a.ahead.all())
		taken = taken.minus(over)
	}
	a.ahead = a.ahead.minus(taken)
	a.open[reservation] = taken
}

// closeReservation closes a reservation by its settlement.
func (b *ledger) closeReservation(m message, a *agentLedger, s settleBody) {
	if s.Reservation <= a.closed || a.left {
		return // it was spent in full
	}
	under := s.Under != 0 && s.Under == a.aheadOf
	if under {
		b.openAhead(m, a, s.Reservation, s.Taken, true)
	}
	for earlier := range a.open {
		if earlier < s.Reservation {
			b.lose(a, earlier)
		}
	}
	a.closed, a.newest = s.Reservation, m.entry
	held, open := a.open[s.Reservation]
	used := Amount{max(0, s.Used.Tokens), max(0, s.Used.Nano), max(0, s.Used.Calls)}
	if open && used.Calls > held.Calls {
		b.addFinding(SettledAmount, m.entry, "reservation %d of %s is settled with %d tool calls, and %d were granted",
			s.Reservation, m.from, used.Calls, held.Calls)
		used.Calls = held.Calls
	}
	switch {
	case !open && (s.Lost || s.Under != 0): // nothing was sent under it, or the logs do not have its grant
		used = Amount{}
	case s.Lost:
		used.Tokens, used.Nano = held.Tokens, held.Nano
	}
	if open {
		delete(a.open, s.Reservation)
		b.held = b.held.minus(held)
		b.noteOverrun(m, used.over(held))
	}
	a.settled, b.settled = a.settled.plus(used), b.settled.plus(used)
	if under { // the rest stays in the allowance
		rest := held.over(used)
		a.ahead, b.held = a.ahead.plus(rest), b.held.plus(rest)
	}
}

// noteOverrun notes what a provider has billed above a reservation.
func (b *ledger) noteOverrun(m message, over Amount) {
	over.Calls = 0
	if over == (Amount{}) {
		return
	}
	b.overrun, b.newOver = b.overrun.plus(over), b.newOver.plus(over)
	if b.overAt == 0 {
		b.overAt = m.entry
	}
}

// grant checks a grant, and holds what it grants.
func (b *ledger) grant(g grantOf) {
	a := b.of(g.at.at)
	r, asked := b.v.account(g.at.at).asked[g.Reservation]
	switch {
	case !asked || r.entry > g.cause:
		b.addFinding(Reserved, g.cause, "reservation %d of %s is granted, and was not asked for", g.Reservation, g.at.at)
		return
	case (a.left || g.Reservation <= a.closed) && a.newest == g.cause:
		return // granted and closed in the same entry
	case a.left || g.Reservation <= a.closed:
		b.addFinding(Reserved, g.cause, "reservation %d of %s is granted, and the agent has ended or has closed it",
			g.Reservation, g.at.at)
		return
	}
	b.checkGranted(g, r)
	for earlier := range a.open {
		b.lose(a, earlier)
	}
	b.takeBack(a)
	take := r.body.Request.Price.bound(r.body.Request.Input, g.Output)
	take.Calls = g.Calls
	a.open[g.Reservation] = take
	b.held = b.held.plus(take)
	if g.Allowance != nil {
		a.ahead, a.aheadOf = g.Allowance.Room, g.Reservation
		b.held = b.held.plus(a.ahead)
	}
	b.checkLimits(g, a, take.plus(a.ahead))
	b.checkSubtrees(g, take.plus(a.ahead))
}

// checkGranted checks a grant against its request, and against what leaves closing turns only.
func (b *ledger) checkGranted(g grantOf, r request) {
	q, what := r.body.Request, "a turn"
	if output := q.Output; g.Closing {
		what = "a closing turn"
		if g.Output > q.Closing || g.Calls > 0 || g.Allowance != nil {
			b.addFinding(Granted, g.cause,
				"reservation %d of %s is a closing turn of %d tokens with %d tool calls, and %d tokens without calls were "+
					"asked for", g.Reservation, g.at.at, g.Output, g.Calls, q.Closing)
		}
	} else if g.Output > output || g.Calls > q.Calls {
		b.addFinding(Granted, g.cause,
			"reservation %d of %s is granted %s with %d tokens of output and %d tool calls, and %d and %d were asked for",
			g.Reservation, g.at.at, what, g.Output, g.Calls, output, q.Calls)
	}
	switch {
	case g.Closing:
	case b.frozen > 0 && b.frozen < g.cause:
		b.addFinding(Granted, g.cause,
			"reservation %d of %s is %s, and entry %d has frozen the budget: only closing turns are granted", g.Reservation,
			g.at.at, what, b.frozen)
	case b.overAt > 0 && b.overAt < g.cause:
		b.addFinding(Granted, g.cause,
			"reservation %d of %s is %s, and a provider has billed more than was reserved in entry %d: only closing turns "+
				"are granted", g.Reservation, g.at.at, what, b.overAt)
	}
}

// checkLimits checks the sums after a grant, of that to which the grant has added: a limit may have been lowered
// below what is settled, and a closing turn without calls is granted beyond a limit of calls.
func (b *ledger) checkLimits(g grantOf, a *agentLedger, added Amount) {
	settled, held := b.settled.plus(b.others.Spent), b.held.plus(b.others.Held)
	settled = settled.minus(b.newOver) // the grant may have been made before a settlement of the same entry
	if over := settled.plus(held).beyond(b.limit).ofKinds(added); over != (Amount{}) {
		b.addFinding(Limit, g.cause, "with reservation %d of %s, %s are settled and %s held, and the limit of the run is %s",
			g.Reservation, g.at.at, settled.text(over), held.text(over), b.limit.text(over))
	}
	if g.at.task == nil {
		return
	}
	own := g.at.task.Task.Limits
	limit := Amount{own.Tokens, own.Nano, int64(own.Calls)}
	if over := a.settled.plus(a.held()).beyond(limit).ofKinds(added); over != (Amount{}) {
		b.addFinding(Limit, g.cause,
			"with reservation %d of %s, %s of the agent are settled and %s held, and its own limit is %s", g.Reservation,
			g.at.at, a.settled.text(over), a.held().text(over), limit.text(over))
	}
}

// report reports the sums at the end of the logs.
func (b *ledger) report() {
	r := &b.v.report
	r.TokenLimit = b.limit.Tokens
	r.Sums = Sums{Limit: b.limit, Settled: b.settled.plus(b.others.Spent), Held: b.held.plus(b.others.Held),
		Overrun: b.overrun}
}
