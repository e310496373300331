package activation

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

// TaskOf reads the task of an agent from its log, if the log holds one.
func TaskOf(at mailbox.Address, log []mailbox.Message) (spec.Task, bool) {
	if at.Agent() == mailbox.Super {
		return spec.Task{}, false
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
	return spec.Task{}, false
}
