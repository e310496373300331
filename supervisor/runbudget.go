package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// runBudget is the budget of a run: the pool, the requests that wait for it, and the allowances that the pool holds for
// members. A request is answered in order of arrival, and no allowance is granted while one waits.
type runBudget struct {
	Pool    budget.Pool
	Frozen  bool // no turn is granted but closing ones
	queue   reservationQueue
	holders allowanceHolders
}

// Waiting is how many reservations wait for others to settle.
func (b runBudget) Waiting() int { return b.queue.length() }

// isAmple reports whether every request would be granted: none waits, nothing is frozen, and no provider has billed
// beyond its own rules.
func (b runBudget) isAmple() bool {
	return b.Waiting() == 0 && !b.holders.recalling && !b.Frozen && b.Pool.Overrun.Zero()
}

// grantAllowance adds an allowance to the grant that was just made, if the agent asked for one and the run allows
// attempts without a request (ahead).
func (b runBudget) grantAllowance(m Member, f agent.Reserve, ahead bool) (runBudget, *budget.Allowance) {
	if !ahead || f.Ahead < 1 || f.Request.Final || m.Stopping { //mutant:allowance-while-others-wait
		return b, nil
	}
	pool, granted, ok := b.Pool.Grant(string(m.ID), min(f.Ahead, agent.GrantsAheadMax))
	if !ok {
		return b, nil
	}
	b.Pool, b.holders = pool, b.holders.with(m.ID, f.Reservation)
	return b, &granted
}

// takeBack ends a member's allowance; of it, keep stays reserved for the member's closing turn.
func (b runBudget) takeBack(id spec.ID, keep budget.Amount) runBudget {
	b.Pool, b.holders = b.Pool.TakeBack(string(id), keep), b.holders.without(id)
	return b
}

// describeShortage returns the limit that a stop reason names: the agent's own if less of it is free than of the
// run's. nil: no limit is short.
func (b runBudget) describeShortage(id spec.ID, f agent.Reserve, why spec.Reason) *event.BudgetShort {
	if b.Frozen || !b.Pool.Overrun.Zero() {
		return nil // a person froze the budget, or a provider billed too much: no limit is short
	}
	account := b.Pool.Account(string(id))
	need := leastNeed(f.Request)
	part := func(a budget.Amount) int64 { return a.Tokens }
	short := event.BudgetShort{Of: event.ShortTokens, Whose: event.OfRun}
	switch why {
	case spec.TokenBudget:
	case spec.CostBudget:
		short.Of, part = event.ShortUSD, func(a budget.Amount) int64 { return a.Nano }
	case spec.MaxToolCalls:
		short.Of, part = event.ShortCalls, func(a budget.Amount) int64 { return a.Calls }
	default:
		return nil
	}
	limit, spent := b.Pool.Limit, b.Pool.Spent
	free := b.Pool.RoomFor(string(id)).Plus(account.Held).Plus(account.Kept)
	unspent := limit.Room(spent.Plus(b.Pool.Held).Plus(b.Pool.Kept)).Plus(account.Held).Plus(account.Kept)
	short.Carved = part(unspent) - part(free)
	if own := account.Limit.Room(account.Spent); part(own) < part(free) {
		short.Whose, short.Carved, limit, spent, free = event.OfAgent, 0, account.Limit, account.Spent, own
	}
	if at := b.Pool.ShortSubtree(string(id), componentOf[short.Of]); at != "" {
		t := b.Pool.Account(at).Subtree
		short.Whose, short.Subtree, short.Carved, limit, spent = event.OfSubtree, spec.ID(at), 0, t.Limit, t.Used.Minus(t.Held).Minus(account.Kept)
		free = t.Limit.Room(t.Used).Plus(account.Held).Plus(account.Kept)
	}
	short.Limit, short.Used, short.Free, short.Need = part(budget.Amount(limit)), part(spent), max(0, part(free)), part(need)
	return &short
}

// componentOf is the component of the budget that an event names.
var componentOf = map[string]budget.Short{event.ShortTokens: budget.ShortTokens, event.ShortUSD: budget.ShortMoney, event.ShortCalls: budget.ShortCalls}

// leastNeed is what an attempt with the least output can cost at most, and the closing turn that must fit after it.
func leastNeed(r budget.AttemptRequest) budget.Amount {
	need := r.ClosingBound()
	if !r.Final {
		output := max(r.OutputMin, 1)
		need = r.Price.Bound(r.Input, output)
		r.Input += output
		need = need.Plus(r.ClosingBound())
	}
	need.Calls = 1
	return need
}
