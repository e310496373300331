package life

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Given is the task of an agent by its log, if it has one.
func Given(at mailbox.Address, log []mailbox.Message) (agent.Task, bool) {
	if at.Agent() == mailbox.Super {
		return agent.Task{}, false
	}
	super := mailbox.At(at.Run(), mailbox.Super)
	for _, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil || e.From != super {
			continue
		}
		for _, item := range e.Items {
			var f agent.Submitted
			if item.Kind == f.Kind() && mailbox.Unmarshal(item.Body, &f) == nil {
				return f.Task, true
			}
		}
	}
	return agent.Task{}, false
}
