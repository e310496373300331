package term

import "github.com/troupe-run/troupe/agent/spec"

// isFrozen reports whether the budget of an agent, or that of an agent above it, is frozen.
func (t *Tree) isFrozen(id string) bool {
	for at := range t.frozen {
		if at == id || spec.ID(id).IsBelow(spec.ID(at)) {
			return true
		}
	}
	return false
}

// noteFreeze notes whether the budget of an agent is frozen, by the event that says so, and marks the agents that wait for it.
func (t *Tree) noteFreeze(id string, frozen bool) {
	if t.frozen == nil {
		t.frozen = map[string]bool{}
	}
	delete(t.frozen, id)
	if frozen {
		t.frozen[id] = true
	}
	for at, m := range t.agents {
		m.frozen = t.isFrozen(at)
	}
}
