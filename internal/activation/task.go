package activation

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

// TaskOf reads the task of an agent from its log, if the log holds one, with the model that a fork has set, and with
// the tools that were added and removed since.
func TaskOf(at mailbox.Address, log []mailbox.Message) (t spec.Task, ok bool) {
	if at.Agent() == mailbox.Super {
		return t, false
	}
	super := mailbox.At(at.Run(), mailbox.Super)
	var set *agent.ModelSet
	var changes []agent.ContextSet
	for _, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil || e.From != super && e.From != "" {
			continue
		}
		for _, item := range e.Items {
			var f agent.Submitted
			var newest agent.ModelSet
			var change agent.ContextSet
			switch {
			case e.From == super && !ok && item.Kind == f.Kind() && mailbox.Unmarshal(item.Body, &f) == nil:
				t, ok = f.Task, true
			case e.From == "" && item.Kind == newest.Kind() && mailbox.Unmarshal(item.Body, &newest) == nil:
				set = &newest
			case e.From == super && item.Kind == change.Kind() && mailbox.Unmarshal(item.Body, &change) == nil:
				changes = append(changes, change)
			}
		}
	}
	if ok && set != nil {
		t = set.Apply(t)
	}
	for _, f := range changes {
		t = f.Apply(t)
	}
	return t, ok
}
