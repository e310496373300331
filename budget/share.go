package budget

// A share is a part of the pool that is carved for one agent and the agents below it: the rest of it, which they have
// neither spent nor reserved, is free for them alone, until the agent ends.

// Carve holds an agent's own limits of tokens and money for it, as far as that much is free. Tool calls are
// limited and not held. Carving again changes nothing.
func (p Pool) Carve(who string) Pool {
	a := p.Account(who)
	if !a.Share.Zero() {
		return p
	}
	room := p.roomFor(a).Plus(a.committed())
	a.Share = Amount{Tokens: max(0, min(a.Limit.Tokens, room.Tokens)), Nano: max(0, min(a.Limit.Nano, room.Nano))}
	return p.withAccount(who, a)
}

// committed is all that the agent has spent and that the pool holds for it, and what agents below it have taken.
func (a Account) committed() Amount { return a.Spent.Plus(a.InUse()).Plus(a.Kept).Plus(a.Below) }

// carved is the rest of the agent's share.
func (a Account) carved() Amount {
	rest := a.Share.Over(a.committed())
	return Amount{Tokens: rest.Tokens, Nano: rest.Nano}
}

// taken is what the agent takes out of the pool, or out of a share above it.
func (a Account) taken() Amount { return a.committed().Plus(a.carved()) }

// sharerOf is the agent whose share an agent below parent uses: parent, or the nearest above it that has one. "": none.
func (p Pool) sharerOf(parent string) string {
	if a := p.Account(parent); a.Share.Zero() {
		return a.Sharer
	}
	return parent
}

// restFor is the rest of the agent's share and of those above it.
func (p Pool) restFor(a Account) Amount {
	rest := a.carved()
	for a.Sharer != "" {
		a = p.Account(a.Sharer)
		rest = rest.Plus(a.carved())
	}
	return rest
}

// sharesWithin returns what shares keep from an agent that may use the rest own of them, of room that is otherwise
// free. If less of a component is free than the shares hold, because a limit was lowered or a provider billed more
// than was reserved, the component is free for every agent: otherwise no agent could use it.
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
