package term

import "github.com/troupe-run/troupe/agent/spec"

// frozenAgents are the agents whose budget, with that of those below them, a person froze.
type frozenAgents map[string]bool

// has reports whether the budget of an agent, or that of an agent above it, is frozen.
func (f frozenAgents) has(id string) bool {
	for at := range f {
		if at == id || spec.ID(id).IsBelow(spec.ID(at)) {
			return true
		}
	}
	return false
}

// note notes whether the budget of an agent is frozen, by the event that says so, and marks the agents that wait for it.
func (f *frozenAgents) note(id string, frozen bool, agents map[string]*member) {
	if *f == nil {
		*f = frozenAgents{}
	}
	delete(*f, id)
	if frozen {
		(*f)[id] = true
	}
	for at, m := range agents {
		m.frozen = f.has(at)
	}
}
