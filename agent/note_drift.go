package agent

import (
	"fmt"
	"maps"
	"slices"
)

// Unsafe is checkpoint.resume_unsafe: the agent does not go on by itself
// after its start, because nobody but a person can say that it may. Call is the
// side effect of unknown outcome, or Differs what the node has otherwise than the
// record says.
type Unsafe struct {
	Query   string   `json:"query"`
	Call    string   `json:"call,omitempty"`
	Differs []string `json:"differs,omitempty"`
}

// drift tells how the node in force differs from the record.
func (n *notes) drift(before, after State) {
	for _, k := range slices.Sorted(maps.Keys(after.Drift.Found)) {
		found := after.Drift.Found[k]
		if old, known := before.Drift.Found[k]; known && old == found {
			continue
		}
		n.add("warning.raised", Warned{What: fmt.Sprintf("this node has another %s than the run was begun with", k),
			Why: fmt.Sprintf("recorded %s, here %s", after.recorded(k), orNone(found))})
	}
	if q := after.Query; q.Query != before.Query.Query && q.Reason == ResumeUnsafe {
		u := Unsafe{Query: q.Query, Call: q.Call}
		if after.halted() {
			u.Differs = after.grave()
		}
		n.add("checkpoint.resume_unsafe", u)
	}
}
