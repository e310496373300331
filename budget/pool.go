package budget

import "github.com/benbjohnson/immutable"

// Pool is the budget of a run. It is a value: every method returns a new Pool
// and leaves the old one as it was, sharing structure, in O(log agents).
//
// At every moment Spent + Held + Kept + Carved of tokens, and of money, stays within
// Limit, unless a provider billed more than its documented rules allow: that
// part is in Overrun. A limit that is lowered may leave less than what is carved (sharesWithin).
type Pool struct {
	Limit   Limit
	Spent   Amount // settled, unknown included
	Held    Amount // sum of the open reservations and of the allowances
	Ahead   Amount // part of Held: sum of the allowances
	Charges Amount // part of Held: money for other costs than model calls; no request waits for it: see HoldMoney
	Kept    Amount // sum of the amounts kept for closing turns
	Carved  Amount // sum of the rests of shares: each is free for its agent and those below it alone
	Unknown Amount // part of Spent: charged in full because the cost is unknown
	Overrun Amount // part of Spent: billed beyond the reservation

	accounts *immutable.SortedMap[string, *Account] // what they point to is never written again
}

// Account is one agent's part in a pool. An agent has at most one open reservation.
type Account struct {
	Limit  Limit  // the agent's own cap within the pool
	Open   int    // number of the open reservation, 0: none
	Closed int    // highest closed reservation: every reservation up to it is closed for good
	Held   Amount // of the open reservation
	Kept   Amount // for the closing turn
	Spent  Amount

	Ahead   Amount // held for further attempts: see Allowance
	AheadOf int    // the reservation with which Ahead was granted, 0: none
	Charge  Amount // part of Held: see HoldMoney

	Share  Amount // carved for the agent and those below it: see Carve
	Below  Amount // taken by agents below it that use its share
	Sharer string // the nearest agent above it that has a share, "": none

	Subtree   Subtree // the limit of the agent and those below it
	LimitedBy string  // the nearest agent above it that has a subtree limit, "": none
}

// InUse is all that the pool holds for the agent.
func (a Account) InUse() Amount { return a.Held.Plus(a.Ahead) }

// Newest is the highest reservation that was granted to the agent; 0: none.
func (a Account) Newest() int { return max(a.Open, a.Closed) }

// AttemptRequest is an agent's request to reserve one attempt of a model call.
type AttemptRequest struct {
	Input     int64 `msgpack:"i"` // upper bound of the prompt, tokens
	Output    int64 `msgpack:"o"` // wanted output tokens
	OutputMin int64 `msgpack:"m"` // less than this is of no use
	// Enough is an output for which the agent does not wait: while other reservations hold the rest, it accepts the
	// free amount. 0: it waits for all of Output.
	Enough  int64 `msgpack:"e,omitempty"`
	Closing int64 `msgpack:"c"`           // output tokens of a closing turn
	Calls   int64 `msgpack:"n,omitempty"` // tool calls that the reply may make
	Price   Price `msgpack:"p,omitempty"`
	// Final asks for the closing turn itself.
	Final bool `msgpack:"f,omitempty"`
}

// Verdict is the answer to an AttemptRequest.
type Verdict string

// Verdicts. Wait: other reservations hold the missing amount, ask again when one settles.
const (
	Granted Verdict = "granted"
	Closing Verdict = "closing" // only the closing turn fits
	Wait    Verdict = "wait"
	Denied  Verdict = "denied"
	Stale   Verdict = "stale" // the reservation is closed already
)

// Grant says what an attempt may use.
type Grant struct {
	Verdict Verdict
	Output  int64
	Calls   int64
	Short   Short // what was short, unless Granted in full
}

// Short names the component that was insufficient.
type Short string

// Components.
const (
	ShortTokens Short = "tokens"
	ShortMoney  Short = "money"
	ShortCalls  Short = "calls"
)

// callsAtOnce is how many tool calls must be free before an agent requests a reply
// while others still hold some: with fewer, the agent waits for them.
const callsAtOnce = 8

// callsShare limits a reservation while others hold calls: it takes at most one in callsShare
// of the remaining calls, so that a few reservations do not make all other agents wait.
const callsShare = 8

// Account returns an agent's account; the zero Account if it has none.
func (p Pool) Account(who string) Account {
	if p.accounts == nil {
		return Account{}
	}
	if a, ok := p.accounts.Get(who); ok {
		return *a
	}
	return Account{}
}

func (p Pool) withAccount(who string, a Account) Pool {
	before := p.Account(who)
	p.Carved = p.Carved.Minus(before.carved()).Plus(a.carved()) //mutant:share-not-held
	if p.accounts == nil {
		p.accounts = immutable.NewSortedMap[string, *Account](nil)
	}
	p = p.addToSubtrees(before, &a)
	p.accounts = p.accounts.Set(who, &a)
	if a.Sharer == "" {
		return p
	}
	above := p.Account(a.Sharer)
	above.Below = above.Below.Plus(a.taken()).Minus(before.taken()) //mutant:share-used-twice
	return p.withAccount(a.Sharer, above)
}

// Bounds of what an AttemptRequest may name: far beyond any model, and small enough that
// no product of two overflows.
const (
	requestTokensMax = 1 << 30
	requestNanoMax   = 1 << 24 // for one token
	usedMax          = 1 << 50
)

// isSane reports whether no number of the request is negative or beyond anything real.
func (r AttemptRequest) isSane() bool {
	for _, n := range [...]int64{r.Input, r.Output, r.OutputMin, r.Enough, r.Closing, r.Calls} {
		if n < 0 || n > requestTokensMax {
			return false
		}
	}
	return r.Price.isSane()
}

// ClosingBound is what a closing turn with the prompt of the request can cost.
func (r AttemptRequest) ClosingBound() Amount { return r.closingBound(r.Input) }

// closingBound is what a closing turn with that prompt can cost.
func (r AttemptRequest) closingBound(prompt int64) Amount { return r.Price.Bound(prompt, r.Closing) }

// Admit is AdmitBelow for an agent without a parent.
func (p Pool) Admit(who string, own Limit, first AttemptRequest) (Pool, bool) {
	return p.AdmitBelow("", who, own, first)
}

// AdmitBelow opens an account if the agent's closing turn fits in addition to all
// others; first is the request of its first turn. An agent below one with a share may use
// that share, too. Admitting again changes nothing.
func (p Pool) AdmitBelow(parent, who string, own Limit, first AttemptRequest) (Pool, bool) {
	if p.accounts != nil {
		if _, ok := p.accounts.Get(who); ok {
			return p, true
		}
	}
	keep := first.closingBound(first.Input)
	a := Account{Limit: own, Sharer: p.sharerOf(parent), LimitedBy: p.nearestLimit(parent)}
	if !first.isSane() || !p.isPriced(own, first) || !fitsIn(keep, p.roomFor(a)) || !fitsIn(keep, own.Room(Amount{})) { //mutant:blind-child-admitted-without-room
		return p, false
	}
	a.Kept = keep
	p.Kept = p.Kept.Plus(keep)
	return p.withAccount(who, a), true
}

// isPriced reports whether a limit in money permits the request. The cost of a call
// without a price is unknown, never zero, so only a person may permit it.
func (p Pool) isPriced(own Limit, r AttemptRequest) bool {
	return r.Price.Covered() || p.Limit.Nano == 0 && own.Nano == 0
}

// freeRoom is the amount that is not spent, held, kept or carved.
func (p Pool) freeRoom() Amount { return p.roomFor(Account{}) }

// RoomFor is the amount that is free for an agent. It includes the rest of its own share and those of its ancestors.
func (p Pool) RoomFor(who string) Amount { return p.roomFor(p.Account(who)) }

func (p Pool) roomFor(a Account) Amount {
	room, _ := p.subtreeRoom(a) //mutant:subtree-unlimited
	return leastOf(room, p.runRoom(a))
}

// runRoom is what the run's limit leaves for an agent.
func (p Pool) runRoom(a Account) Amount {
	room := p.Limit.Room(p.Spent.Plus(p.Held).Plus(p.Kept)) //mutant:held-not-counted
	return room.Minus(p.sharesWithin(room, p.restFor(a)))
}

func fitsIn(a, room Amount) bool { return a.Tokens <= room.Tokens && a.Nano <= room.Nano }

// Reserve opens a reservation. A reservation that was requested before is Stale, whether it is
// still open or closed: a closed reservation stays closed.
func (p Pool) Reserve(who string, reservation int, r AttemptRequest) (Pool, Grant) {
	a := p.Account(who)
	switch {
	case reservation <= a.Closed, reservation <= a.Open: //mutant:closed-reservation
		return p, Grant{Verdict: Stale}
	case a.Open != 0:
		p = p.Lose(who, a.Open, 0)
		a = p.Account(who)
	}
	switch {
	case !r.isSane():
		return p, Grant{Verdict: Denied, Short: ShortTokens}
	case !p.isPriced(a.Limit, r):
		return p, Grant{Verdict: Denied, Short: ShortMoney}
	}
	p.Kept = p.Kept.Minus(a.Kept) // the agent may use its own reserve
	ofTrees, most := p.subtreeRoom(a)
	own := leastOf(a.Limit.Room(a.Spent), most.Plus(a.Kept))
	// What its own cap forbids, or the limit of a subtree whatever the others settle, is not worth waiting for.
	best, _, _ := decideGrant(r, own, false)
	switch best.Verdict {
	case Granted:
		r.Output, r.Calls = best.Output, best.Calls
	case Closing:
		r.Final = true
	}
	g, take, keep := decideGrant(r, leastOf(leastOf(p.runRoom(a), ofTrees.Plus(a.Kept)), own), best.Verdict != Denied && !p.Held.Minus(p.Charges).Zero())
	if g.Short == "" {
		g.Short = best.Short
	}
	if g.Verdict == Wait || g.Verdict == Denied {
		p.Kept = p.Kept.Plus(a.Kept)
		return p, g
	}
	a.Open, a.Held, a.Kept = reservation, take, keep
	p.Held, p.Kept = p.Held.Plus(take), p.Kept.Plus(keep)
	return p.withAccount(who, a), g
}

func leastOf(a, b Amount) Amount {
	return Amount{min(a.Tokens, b.Tokens), min(a.Nano, b.Nano), min(a.Calls, b.Calls)}
}

// decideGrant computes what room allows. busy: other reservations are open, so room may grow.
// A normal turn takes its own bound and keeps the closing turn after it (whose
// prompt is this one plus this output; tool results are not foreseen).
func decideGrant(r AttemptRequest, room Amount, busy bool) (g Grant, take, keep Amount) {
	if !r.Final {
		out, short := outputThatFits(r, room)
		calls := min(r.Calls, room.Calls)
		if busy { // leave some for agents that call their models at the same time
			calls = min(calls, max(callsAtOnce, room.Calls/callsShare))
		}
		if calls < min(r.Calls, callsAtOnce) && (busy || calls < 1) {
			short, out = ShortCalls, 0
		}
		if busy && out < r.leastOutput() {
			return Grant{Verdict: Wait, Short: short}, take, keep
		}
		if out >= r.OutputMin && out > 0 {
			take = r.Price.Bound(r.Input, out)
			take.Calls = calls
			keep = r.closingBound(r.Input + out) //mutant:closing-turn-kept
			return Grant{Verdict: Granted, Output: out, Calls: calls, Short: short}, take, keep
		}
		g.Short = short
	}
	take = r.closingBound(r.Input)
	if fitsIn(take, room) {
		return Grant{Verdict: Closing, Output: r.Closing, Short: g.Short}, take, Amount{}
	}
	if busy {
		return Grant{Verdict: Wait, Short: g.Short}, Amount{}, keep
	}
	if g.Short == "" {
		g.Short = ShortTokens
		if take.Nano > room.Nano {
			g.Short = ShortMoney
		}
	}
	g.Verdict = Denied
	return g, Amount{}, Amount{}
}

// leastOutput is the output below which the agent waits for others to settle.
func (r AttemptRequest) leastOutput() int64 {
	if r.Enough <= 0 {
		return r.Output
	}
	return min(r.Enough, r.Output)
}

// outputThatFits is the largest output up to the wanted one for which the turn
// and the closing turn after it fit into room.
func outputThatFits(r AttemptRequest, room Amount) (int64, Short) {
	out, short := r.Output, Short("")
	// Tokens: (in+out) + (in+out+closing) <= room.
	if most := (room.Tokens - 2*r.Input - r.Closing) / 2; most < out {
		out, short = most, ShortTokens
	}
	price := r.Price.upTo(r.Input + out) // the closing turn's prompt may be a long one
	in := price.dearestRate()
	if perOut := price.Output + in; perOut > 0 {
		if most := (room.Nano - 2*r.Input*in - r.Closing*price.Output) / perOut; most < out {
			out, short = most, ShortMoney
		}
	}
	return max(out, 0), short
}

// Settle closes a reservation with what it really cost; what is billed beyond the
// reservation is an overrun. Settling again, or a reservation that is closed, changes
// nothing. Settling a reservation that was never seen closes it for good.
func (p Pool) Settle(who string, reservation int, used Amount) Pool {
	a := p.Account(who)
	if reservation <= a.Closed {
		return p
	}
	if a.Open != 0 && reservation > a.Open { // an earlier one is over, too
		p = p.Lose(who, a.Open, 0)
		a = p.Account(who)
	}
	if reservation == a.Open {
		held := a.Held
		used = Amount{Tokens: min(max(0, used.Tokens), usedMax), Nano: min(max(0, used.Nano), usedMax), Calls: min(max(0, used.Calls), held.Calls)}
		p.Held = p.Held.Minus(held)
		p.Charges = p.Charges.Minus(a.Charge)
		a.Open, a.Held, a.Charge = 0, Amount{}, Amount{}
		over := used.Over(held)
		p.Overrun = p.Overrun.Plus(Amount{Tokens: over.Tokens, Nano: over.Nano}) //mutant:overrun-not-booked
	} else {
		// Nothing was sent under a reservation that was never granted.
		used = Amount{} //mutant:unseen-settlement-ignored
	}
	a.Closed = max(a.Closed, reservation)
	a.Spent, p.Spent = a.Spent.Plus(used), p.Spent.Plus(used)
	return p.withAccount(who, a)
}

// Lose closes a reservation whose cost is unknown: an unknown cost is spent in full. The
// tool calls of a reply that came without its usage are known, and counted.
func (p Pool) Lose(who string, reservation int, calls int64) Pool {
	a := p.Account(who)
	if reservation != a.Open || reservation == 0 {
		return p.Settle(who, reservation, Amount{})
	}
	lost := Amount{Tokens: a.Held.Tokens, Nano: a.Held.Nano} //mutant:lost-call-is-free
	p.Unknown = p.Unknown.Plus(lost)
	lost.Calls = calls
	return p.Settle(who, reservation, lost)
}

// Return closes a reservation under which nothing was billed. The amount of a closing
// turn is kept again: no other agent ever had a claim on it.
func (p Pool) Return(who string, reservation int) Pool {
	before := p.Account(who)
	p = p.Settle(who, reservation, Amount{})
	if reservation == 0 || reservation != before.Open || !before.Kept.Zero() {
		return p
	}
	a := p.Account(who)
	a.Kept = Amount{Tokens: before.Held.Tokens, Nano: before.Held.Nano}
	p.Kept = p.Kept.Plus(a.Kept)
	return p.withAccount(who, a)
}

// Leave ends an account: an open reservation and an allowance are lost, and the amount kept for the closing turn
// and the rest of its share are free again.
func (p Pool) Leave(who string) Pool {
	p = p.forfeitAhead(who)
	a := p.Account(who)
	if a.Open != 0 {
		p = p.Lose(who, a.Open, 0)
		a = p.Account(who)
	}
	p.Kept = p.Kept.Minus(a.Kept)
	a.Kept = Amount{}  //mutant:kept-not-returned
	a.Share = Amount{} //mutant:share-not-returned
	return p.withAccount(who, a)
}

// Within reports whether the pool keeps its promise: nothing is committed
// beyond the limit but a provider's overrun.
func (p Pool) Within() bool {
	used := p.Spent.Plus(p.Held).Minus(p.Overrun)
	room := p.Limit.Room(used)
	return room.Tokens >= 0 && room.Nano >= 0 && room.Calls >= 0
}
