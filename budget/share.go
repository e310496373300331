package budget

// A share is a part of the pool that is carved for one agent: the rest of it, which the agent has neither spent nor
// reserved, is free for this agent alone, until it ends.

// Carve holds an agent's own limits of tokens and money for it, as far as that much is free. Tool calls are
// limited and not held. Carving again changes nothing.
func (p Pool) Carve(who string) Pool {
	a := p.Account(who)
	if !a.Share.Zero() {
		return p
	}
	used := a.committed()
	room := p.freeRoom().Plus(used)
	a.Share = Amount{Tokens: max(0, min(a.Limit.Tokens, room.Tokens)), Nano: max(0, min(a.Limit.Nano, room.Nano))}
	return p.withAccount(who, a)
}

// committed is all that the agent has spent and that the pool holds for it.
func (a Account) committed() Amount { return a.Spent.Plus(a.InUse()).Plus(a.Kept) }

// carved is the rest of the agent's share.
func (a Account) carved() Amount {
	rest := a.Share.Over(a.committed())
	return Amount{Tokens: rest.Tokens, Nano: rest.Nano}
}

// sharesWithin returns what shares keep from an agent with the share rest own, of room that is otherwise free.
// A component of which less is free than the shares hold, since a limit was lowered or a provider billed more than
// was reserved, is free for everyone: else nobody could use it.
func (p Pool) sharesWithin(room, own Amount) Amount {
	others := p.Carved.Minus(own)
	if p.Carved.Tokens > room.Tokens {
		others.Tokens = 0
	}
	if p.Carved.Nano > room.Nano {
		others.Nano = 0
	}
	return others
}
