package verify

import "github.com/troupe-run/troupe/mailbox"

// A definition that represents an agent of another program may name a charge. It is held when an agent of that
// definition begins, and booked when that agent ends and has called the other program.

const delegateTool = "delegate"

// holdCharges holds the charges of the agents that an entry of the log of the run has begun.
func (b *ledger) holdCharges(entry uint64) (changed bool) {
	for _, l := range b.v.sortedLogs {
		if l.isSuper() || l.task == nil || l.taskCause != entry {
			continue
		}
		d := b.definitionOf(l.at)
		b.checkTaskCharge(l, d)
		if !d.Foreign || d.Charge <= 0 {
			continue
		}
		charge := Amount{Nano: d.Charge}
		a := b.of(l.at)
		a.charged, a.chargeOpen = charge, true
		b.held = b.held.plus(charge)
		changed = true
		sum := b.settled.minus(b.newOver).plus(b.others.Spent).plus(b.held).plus(b.others.Held)
		if over := sum.beyond(b.limit).ofKinds(charge); over != (Amount{}) {
			b.addFinding(Limit, entry,
				"%s begins with a charge of %s, with which %s are settled and held, and the limit of the run is %s", l.at,
				charge.text(charge), sum.text(over), b.limit.text(over))
		}
	}
	return changed
}

// checkTaskCharge checks the charge in a task.
func (b *ledger) checkTaskCharge(l *log, d definitionBody) {
	told := l.task.Task.Charge
	if told == d.Charge || told == 0 && (!d.Foreign || !l.task.offers(delegateTool)) {
		return
	}
	b.addFinding(Charged, l.taskCause, "%s begins with a charge of %s, and its definition %s has %s", l.at,
		Amount{Nano: told}.all(), d.Name, Amount{Nano: d.Charge}.all())
}

// offers reports whether the agent of the task is offered a tool.
func (b *submittedBody) offers(tool string) bool {
	for _, t := range b.Task.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}

// settleCharge books or returns the charge of an agent that has ended after that many calls of another program.
func (b *ledger) settleCharge(at mailbox.Address, calls int) {
	a := b.of(at)
	if !a.chargeOpen {
		return
	}
	a.chargeOpen = false
	b.held = b.held.minus(a.charged)
	if calls <= 0 {
		a.charged = Amount{}
		return
	}
	b.settled = b.settled.plus(a.charged)
}

// checkForeignCalls checks that an agent that calls another program reports at least the calls whose results it has.
func (b *ledger) checkForeignCalls(m message, reported int) {
	l := b.v.logs[m.from]
	if l == nil || l.n < m.n || !b.definitionOf(m.from).Foreign {
		return
	}
	calls := 0
	for _, a := range l.attempts.list {
		tool, _ := b.v.agentLog(l).toolOf(a.call)
		if tool == delegateTool && a.started > 0 && a.returned > 0 && !a.killed && a.returned < m.n {
			calls++
		}
	}
	if calls > reported {
		b.addFinding(Charged, m.entry,
			"%s says that it has called %s %d times, and its log has the results of %d calls", m.from, l.task.Task.Name, reported, calls)
	}
}
