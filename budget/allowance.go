package budget

// Allowance is an amount that the pool holds for the further attempts of one agent, so that the agent
// can begin them without asking again. The agent takes each attempt out of Room; what an attempt did
// not use goes back into Room, not to the pool, until the agent gives the allowance back.
type Allowance struct {
	// Room is what the attempts may use in all.
	Room Amount `msgpack:"r"`
	// Kept is the amount that the pool keeps for the agent's closing turn, in addition to Room.
	Kept Amount `msgpack:"k"`
}

// Limits of allowances.
const (
	// allowanceShare limits all allowances of a pool together, and those of an agent with a cap of its
	// own: they take at most one in allowanceShare of what is free. They are recalled once they are
	// more than one in allowanceShareTight of it.
	allowanceShare      = 4
	allowanceShareTight = 2
	// allowanceAttemptsMin is how many attempts as large as the granted one an allowance must cover:
	// a smaller one would mostly be given back unused.
	allowanceAttemptsMin = 2
)

// Covers returns what an attempt takes out of the allowance, and what must remain for the closing turn
// after it. ok is false if the allowance does not cover both: then the agent must ask. An attempt under
// an allowance is never cut short: it has all of the wanted output, and no fewer tool calls than callsAtOnce.
func (a Allowance) Covers(r AttemptRequest) (take, keep Amount, ok bool) {
	take = r.Price.Bound(r.Input, r.Output)
	take.Calls = min(r.Calls, a.Room.Calls)
	keep = r.closingBound(r.Input + r.Output)
	switch {
	case r.Final || !r.isSane() || r.Output <= 0, take.Calls < min(r.Calls, callsAtOnce):
		return take, keep, false
	case !fitsIn(take, a.Room): //mutant:attempt-beyond-the-allowance
		return take, keep, false
	case !fitsIn(take.Plus(keep), a.Room.Plus(a.Kept)): //mutant:allowance-without-a-closing-turn
		return take, keep, false
	}
	return take, keep, true
}

// Grant holds an allowance for up to attempts further attempts as large as the open one, if that is a
// small part of what is free; ok is false if it is not.
func (p Pool) Grant(who string, attempts int) (next Pool, granted Allowance, ok bool) {
	a := p.Account(who)
	if attempts < 1 || a.Open == 0 || a.AheadOf != 0 || a.Kept.Zero() || a.Subtree.Set || a.LimitedBy != "" {
		return p, Allowance{}, false // an agent in a limited subtree asks for each attempt
	}
	own := a.Limit.Room(a.Spent.Plus(a.Held).Plus(a.Kept))
	free, held := p.freeRoom(), p.Ahead // not the rest of the agent's share: see Tight
	part := func(want, free, held, own int64) int64 {
		return max(0, min(want, free/allowanceShare-held, own/allowanceShare))
	}
	n := int64(attempts)
	room := Amount{Tokens: part(n*a.Held.Tokens, free.Tokens, held.Tokens, own.Tokens),
		Nano:  part(n*a.Held.Nano, free.Nano, held.Nano, own.Nano),
		Calls: part(n*a.Held.Calls, free.Calls, held.Calls, own.Calls)}
	least := min(n, allowanceAttemptsMin)
	if room.Tokens < least*a.Held.Tokens || room.Nano < least*a.Held.Nano || room.Calls < min(a.Held.Calls, callsAtOnce) {
		return p, Allowance{}, false
	}
	a.Ahead, a.AheadOf = room, a.Open
	p.Held, p.Ahead = p.Held.Plus(room), p.Ahead.Plus(room) //mutant:allowance-not-held
	return p.withAccount(who, a), Allowance{Room: room, Kept: a.Kept}, true
}

// Tight reports whether the allowances are no longer a small part of what is free.
func (p Pool) Tight() bool {
	free := p.freeRoom()
	return p.Ahead.Tokens > free.Tokens/allowanceShareTight || p.Ahead.Nano > free.Nano/allowanceShareTight ||
		p.Ahead.Calls > free.Calls/allowanceShareTight
}

// OpenAhead opens a reservation for an attempt that the agent began under the allowance of a grant. If
// the pool no longer holds that allowance, nothing is opened: nothing was to be sent.
func (p Pool) OpenAhead(who string, grant, reservation int, take Amount) Pool {
	a := p.Account(who)
	if grant == 0 || grant != a.AheadOf || a.Open != 0 || reservation <= a.Closed {
		return p
	}
	take = leastOf(Amount{max(0, take.Tokens), max(0, take.Nano), max(0, take.Calls)}, a.Ahead)
	a.Open, a.Held = reservation, take
	a.Ahead, p.Ahead = a.Ahead.Minus(take), p.Ahead.Minus(take)
	return p.withAccount(who, a)
}

// Refill puts back into the allowance what its attempt has not used. before is the pool in which the
// attempt's reservation was open, p the one in which it is closed.
func (p Pool) Refill(who string, before Pool) Pool {
	was, a := before.Account(who), p.Account(who)
	if was.Open == 0 || a.Open != 0 || a.AheadOf == 0 {
		return p
	}
	used := a.Spent.Minus(was.Spent)
	left := Amount{max(0, was.Held.Tokens-used.Tokens), max(0, was.Held.Nano-used.Nano), max(0, was.Held.Calls-used.Calls)}
	a.Ahead, p.Ahead, p.Held = a.Ahead.Plus(left), p.Ahead.Plus(left), p.Held.Plus(left)
	return p.withAccount(who, a)
}

// TakeBack ends an agent's allowance. The pool keeps the part that the agent's closing turn
// needs: the attempts under the allowance have made its prompt longer.
func (p Pool) TakeBack(who string, keep Amount) Pool {
	a := p.Account(who)
	if a.AheadOf == 0 {
		return p
	}
	more := keep.Over(a.Kept)
	more = leastOf(Amount{Tokens: more.Tokens, Nano: more.Nano}, a.Ahead) //mutant:closing-turn-lost-with-the-allowance
	p.Held, p.Ahead, p.Kept = p.Held.Minus(a.Ahead), p.Ahead.Minus(a.Ahead), p.Kept.Plus(more)
	a.Kept = a.Kept.Plus(more)
	a.Ahead, a.AheadOf = Amount{}, 0
	return p.withAccount(who, a)
}

// forfeitAhead spends an allowance in full: its agent is gone, and how many attempts it has begun
// under the allowance is unknown.
func (p Pool) forfeitAhead(who string) Pool {
	a := p.Account(who)
	if a.AheadOf == 0 {
		return p
	}
	lost := Amount{Tokens: a.Ahead.Tokens, Nano: a.Ahead.Nano}
	p.Held, p.Ahead = p.Held.Minus(a.Ahead), p.Ahead.Minus(a.Ahead)
	p.Unknown, p.Spent = p.Unknown.Plus(lost), p.Spent.Plus(lost)
	a.Spent, a.Ahead, a.AheadOf = a.Spent.Plus(lost), Amount{}, 0
	return p.withAccount(who, a)
}
