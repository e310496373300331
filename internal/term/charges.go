package term

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// countCall counts a call that the limit of tool calls counts: each call of a reply that may run, a delegation and a
// question among them. While an agent works it is what was dispatched, because no event has the count of the pool; a
// call that a guardrail holds back is corrected by the end of the agent.
func (t *Tree) countCall(m *member) {
	m.counted++
	t.Calls++
}

// setCalls replaces what was counted of an agent by the count of its end or of the result.
func (t *Tree) setCalls(m *member, calls int) {
	t.Calls += calls - m.counted
	m.counted = calls
}

// chargeUnknown adds what the pool was charged for calls of unknown usage to the agent that settled them: no event of the
// agent has an amount.
func (t *Tree) chargeUnknown(e client.Event, d event.BudgetChanged) {
	charged := d.Unknown - t.Budget.Unknown
	if m := t.agents[string(d.Agent)]; m != nil && charged > 0 && e.Kind == event.KindBudgetSettled {
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
