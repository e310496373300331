package budget

import "strings"

// Subtree is the limit of an agent and the agents below it together, and what they use of it. It may be set, raised and
// lowered while they work.
type Subtree struct {
	Set    bool
	Limit  Limit  // a component of zero is not limited
	Frozen bool   // no reservation is opened
	Used   Amount // spent, held and kept by the agent and those below it
	Held   Amount // part of Used: open reservations and allowances
}

// unlimitedAmount is the room of a subtree without a limit.
var unlimitedAmount = Limit{}.Room(Amount{})

// SetSubtree sets the limit of an agent and those below it, whose ids begin with the agent's and a hyphen. What they
// have spent and hold stays: it counts against the limit.
func (p Pool) SetSubtree(who string, limit Limit, frozen bool) Pool {
	if p.accounts == nil {
		return p
	}
	found, ok := p.accounts.Get(who)
	if !ok {
		return p
	}
	a := *found
	if !a.Subtree.Set {
		a.Subtree = Subtree{Set: true, Used: a.uses(), Held: a.InUse()}
		accounts := p.accounts
		it := accounts.Iterator()
		for it.Seek(who + "-"); !it.Done(); { // in their order, the agents below come first, then the agent's own charge
			id, below, _ := it.Next()
			if !strings.HasPrefix(id, who+"-") && !strings.HasPrefix(id, who+"/") {
				break
			}
			a.Subtree.Used, a.Subtree.Held = a.Subtree.Used.Plus(below.uses()), a.Subtree.Held.Plus(below.InUse())
			if below.LimitedBy == a.LimitedBy { // no agent between the two has a limit
				next := *below
				next.LimitedBy = who
				accounts = accounts.Set(id, &next)
			}
		}
		p.accounts = accounts
	}
	a.Subtree.Limit, a.Subtree.Frozen = limit, frozen
	p.accounts = p.accounts.Set(who, &a)
	return p
}

// uses is what the agent itself has spent and holds.
func (a Account) uses() Amount { return a.Spent.Plus(a.InUse()).Plus(a.Kept) }

// addToSubtrees adds what an account uses more than before to the subtrees that the agent is in.
func (p Pool) addToSubtrees(before Account, a *Account) Pool {
	used, held := a.uses().Minus(before.uses()), a.InUse().Minus(before.InUse())
	if used.Zero() && held.Zero() {
		return p
	}
	if a.Subtree.Set {
		a.Subtree.Used, a.Subtree.Held = a.Subtree.Used.Plus(used), a.Subtree.Held.Plus(held)
	}
	for above := a.LimitedBy; above != ""; {
		next := p.Account(above)
		next.Subtree.Used, next.Subtree.Held = next.Subtree.Used.Plus(used), next.Subtree.Held.Plus(held) //mutant:subtree-counts-only-itself
		p.accounts = p.accounts.Set(above, &next)
		above = next.LimitedBy
	}
	return p
}

// nearestLimit is the nearest agent with a subtree limit at parent or above it; "": none.
func (p Pool) nearestLimit(parent string) string {
	if a := p.Account(parent); !a.Subtree.Set {
		return a.LimitedBy
	}
	return parent
}

// eachSubtree calls visit for the subtrees with a limit that an agent is in, the smallest first.
func (p Pool) eachSubtree(who string, a Account, visit func(who string, t Subtree)) {
	if a.Subtree.Set {
		visit(who, a.Subtree)
	}
	for above := a.LimitedBy; above != ""; {
		next := p.Account(above)
		visit(above, next.Subtree)
		above = next.LimitedBy
	}
}

// subtreeRoom is what the limits of the subtrees of an agent leave, and most what they would leave if no
// agent there held anything.
func (p Pool) subtreeRoom(a Account) (room, most Amount) {
	room, most = unlimitedAmount, unlimitedAmount
	p.eachSubtree("", a, func(_ string, t Subtree) {
		room = leastOf(room, t.Limit.Room(t.Used))
		most = leastOf(most, t.Limit.Room(t.Used.Minus(t.Held)))
	})
	return room, most
}

// ShortSubtree is the agent whose subtree limit leaves the least of a component, if it leaves no more than the run
// and the agent's own limit do; "": another limit is short.
func (p Pool) ShortSubtree(who string, of Short) (tightest string) {
	a := p.Account(who)
	part := func(x Amount) int64 {
		switch of {
		case ShortMoney:
			return x.Nano
		case ShortCalls:
			return x.Calls
		}
		return x.Tokens
	}
	least := min(part(p.runRoom(a)), part(a.Limit.Room(a.Spent.Plus(a.Kept))))
	p.eachSubtree(who, a, func(at string, t Subtree) {
		if room := part(t.Limit.Room(t.Used)); room <= least && room < Unlimited/2 {
			least, tightest = room, at
		}
	})
	return tightest
}

// FrozenBy is the nearest agent, at or above one, whose subtree is frozen; "": none.
func (p Pool) FrozenBy(who string) (frozen string) {
	p.eachSubtree(who, p.Account(who), func(at string, t Subtree) {
		if t.Frozen && frozen == "" {
			frozen = at
		}
	})
	return frozen
}
