package budget

// HoldMoney opens an account below parent with one reservation, number 1, of money alone. fits is false if
// the money is not free; a second call for the same account changes nothing. Settle and Leave close it like any other
// reservation.
func (p Pool) HoldMoney(parent, who string, nano int64) (next Pool, fits bool) {
	a := p.Account(who)
	if a.Open != 0 || a.Closed != 0 {
		return p, true
	}
	a.Sharer, a.LimitedBy = p.sharerOf(parent), p.nearestLimit(parent)
	if nano <= 0 || nano > usedMax || nano > p.roomFor(a).Nano {
		return p, false
	}
	a.Open, a.Held, a.Charge = 1, Amount{Nano: nano}, Amount{Nano: nano}
	p.Held, p.Charges = p.Held.Plus(a.Held), p.Charges.Plus(a.Held)
	return p.withAccount(who, a), true
}
