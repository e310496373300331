package supervisor

import (
	"slices"

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
			d.UsedUSD, d.ReservedUSD, d.Estimated = float64(p.Spent.Nano)/budget.NanoPerUSD, float64(p.Held.Nano)/budget.NanoPerUSD, s.before.estimated || s.Run.estimatesPrices()
			events[i].Data = d
		}
	}
	if s.Phase == Over && !wasOver {
		events = append(events, event.Event{Kind: event.KindRunFinished, Data: s.Result()})
	}
	return s, events
}
