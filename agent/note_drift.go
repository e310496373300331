package agent

import (
	"fmt"
	"maps"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// drift notes how the current node differs from the record.
func (n *notes) drift(before, after State) {
	for _, k := range slices.Sorted(maps.Keys(after.Drift.Found)) {
		found := after.Drift.Found[k]
		if old, known := before.Drift.Found[k]; known && old == found {
			continue
		}
		n.add(event.KindWarningRaised, event.Warning{What: fmt.Sprintf("this node has another %s than the run was begun with", k),
			Why: fmt.Sprintf("recorded %s, here %s", after.recorded(k), orNone(found))})
	}
	if q := after.Query; q.Query != before.Query.Query && q.Reason == spec.ResumeUnsafe {
		u := event.ResumeUnsafe{Query: q.Query, Call: q.Call}
		if after.halted() {
			u.Differs = after.grave()
		}
		n.add(event.KindCheckpointResumeUnsafe, u)
	}
}
