package term

import (
	"github.com/troupe-run/troupe/agent/event"
)

// setCalls replaces what was counted of an agent. The limit of tool calls counts each call of a reply that may run, a
// delegation and a question among them. While an agent works that is what was dispatched, because no event has the count of
// the pool; a call that a guardrail holds back is corrected by the end of the agent, or by the result.
func (t *Tree) setCalls(m *member, calls int) {
	t.Calls += calls - m.counted
	m.counted = calls
}

// chargeUnknown adds what the pool was charged for calls of unknown usage to the agent that settled them: no event of the
// agent has an amount.
func chargeUnknown(m *member, before int64, kind event.Kind, d event.BudgetChanged) {
	if charged := d.Unknown - before; m != nil && charged > 0 && kind == event.KindBudgetSettled {
		m.tokens += charged
	}
}

// applyResult sets what each agent was charged by the result. An agent that was given up has reported nothing of it.
func (t *Tree) applyResult(r event.Result) {
	for _, a := range r.Agents {
		m := t.agents[string(a.ID)]
		if m == nil {
			continue
		}
		t.setCalls(m, max(m.counted, a.Calls))
		if a.Tokens > 0 {
			m.tokens = a.Tokens
		}
	}
}
