package runfile

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// EachFact decodes the facts in the logs of agents; own says that the agent wrote the entry itself. What
// cannot be decoded is left out.
func EachFact(entries []mailbox.Message, do func(m mailbox.Message, fact agent.Fact, own bool)) {
	for _, m := range entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil || m.To.Agent() == mailbox.Super {
			continue
		}
		for _, item := range e.Items {
			fact, ok, err := agent.Decode(item.Kind, func(into any) error { return mailbox.Unmarshal(item.Body, into) })
			if ok && err == nil {
				do(m, fact, e.From == "" || e.From == m.To)
			}
		}
	}
}

// HasEnd reports whether the log of the run is closed: no decision follows.
func HasEnd(entries []mailbox.Message) bool {
	for i := len(entries) - 1; i >= 0; i-- {
		m := entries[i]
		if m.To.Agent() != mailbox.Super {
			continue
		}
		if e, err := mailbox.Decode(m.Data); err == nil && e.From == m.To && len(e.Items) > 0 && e.Items[0].Kind == (agent.Closed{}).Kind() {
			return true
		}
	}
	return false
}

// EachAgent calls do for every agent that has a log, in the order of their first entries, with the name of its
// definition; "" if no entry has it.
func EachAgent(entries []mailbox.Message, do func(id, name string)) {
	var ids []string
	names := map[string]string{}
	for _, m := range entries {
		if id := m.To.Agent(); id != mailbox.Super {
			if _, known := names[id]; !known {
				ids, names[id] = append(ids, id), ""
			}
		}
	}
	EachFact(entries, func(m mailbox.Message, fact agent.Fact, _ bool) {
		if f, ok := fact.(agent.Submitted); ok {
			names[m.To.Agent()] = f.Task.Name
		}
	})
	for _, id := range ids {
		do(id, names[id])
	}
}
