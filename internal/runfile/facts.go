package runfile

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// EachFact decodes the facts in the logs of agents; own says that the agent wrote the entry itself. What cannot be decoded
// is left out.
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
