package supervisor

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// Output holds the effects of a step, and its events for observers.
type Output struct {
	Effects []Effect
	Events  []event.Event
}

// publishEvent adds an event to those of the current step. The code that makes a decision publishes it.
func (s State) publishEvent(kind event.Kind, data any) State {
	s.events = append(slices.Clip(s.events), event.Event{Kind: kind, Data: data})
	return s
}

// publishBudget adds an event about the budget. Its figures are those after the step.
func (s State) publishBudget(kind event.Kind, id spec.ID, reservation int, why spec.Reason) State {
	return s.publishEvent(kind, event.BudgetChanged{Agent: id, Reservation: reservation, Why: why})
}

// publishShortage is publishBudget with the limit that does not cover an attempt.
func (s State) publishShortage(kind event.Kind, id spec.ID, f agent.Reserve, why spec.Reason) State {
	return s.publishEvent(kind, event.BudgetChanged{Agent: id, Reservation: f.Reservation, Why: why, Short: s.describeShortage(id, f, why)})
}

// describeShortage returns the limit that a stop reason names: the agent's own if less of it is free than of the
// run's. nil: no limit is short.
func (s State) describeShortage(id spec.ID, f agent.Reserve, why spec.Reason) *event.BudgetShort {
	if s.Frozen || !s.Pool.Overrun.Zero() {
		return nil // a person froze the budget, or a provider billed too much: no limit is short
	}
	account := s.Pool.Account(string(id))
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
	limit, spent := s.Pool.Limit, s.Pool.Spent
	free := s.Pool.RoomFor(string(id)).Plus(account.Held).Plus(account.Kept)
	unspent := limit.Room(spent.Plus(s.Pool.Held).Plus(s.Pool.Kept)).Plus(account.Held).Plus(account.Kept)
	short.Carved = part(unspent) - part(free)
	if own := account.Limit.Room(account.Spent); part(own) < part(free) {
		short.Whose, short.Carved, limit, spent, free = event.OfAgent, 0, account.Limit, account.Spent, own
	}
	if at := s.Pool.ShortSubtree(string(id), componentOf[short.Of]); at != "" {
		t := s.Pool.Account(at).Subtree
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

// takeEvents takes the events out of the state. Events about the budget get its figures,
// and the end of the run comes last: both reflect the state after the step.
func (s State) takeEvents(wasOver bool) (State, []event.Event) {
	events := slices.Clip(s.events)
	s.events = nil
	p := s.Pool
	for i, e := range events {
		if d, ok := e.Data.(event.BudgetChanged); ok {
			d.Limit, d.Used, d.Reserved, d.Ahead, d.Kept, d.Carved = p.Limit, p.Spent.Tokens, p.Held.Tokens, p.Ahead.Tokens, p.Kept.Tokens, p.Carved.Tokens
			d.Unknown, d.Overrun, d.Frozen = p.Unknown.Tokens, p.Overrun.Tokens, s.Frozen
			d.UsedUSD, d.ReservedUSD, d.Estimated = float64(p.Spent.Nano)/1e9, float64(p.Held.Nano)/1e9, s.before.estimated || s.Run.estimatesPrices()
			events[i].Data = d
		}
	}
	if s.Phase == Over && !wasOver {
		events = append(events, event.Event{Kind: event.KindRunFinished, Data: s.Result()})
	}
	return s, events
}
