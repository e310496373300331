package metrics

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-run/troupe/mailbox"
)

// liveActor are the shells of one address in memory: one that ends may still have work under way.
type liveActor struct {
	shells int
	name   string // of the agent; empty of a supervisor, and until the agent's task has been read
}

var agentsActiveDesc = prometheus.NewDesc(agentsActive, "Actors in memory on this node, by the name of the agent; the name is empty of supervisors, and of agents whose log is being read.", []string{ownAgent}, nil)

// ActorAlive counts an actor in memory, or its end.
func (r *Recorder) ActorAlive(at mailbox.Address, change int) {
	at = at.Bare()
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.actors[at]
	if a.shells += change; a.shells <= 0 {
		delete(r.actors, at)
		return
	}
	r.actors[at] = a
}

// AgentNamed notes the name of an agent in memory.
func (r *Recorder) AgentNamed(at mailbox.Address, name string) {
	name = r.labels.value(ownAgent, name)
	at = at.Bare()
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.actors[at]; ok {
		a.name = name
		r.actors[at] = a
	}
}

// countActors counts the actors in memory, by the name of the agent.
func (r *Recorder) countActors() map[string]int {
	counts := map[string]int{"": 0} // a node without actors has the metric too
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.actors {
		counts[a.name] += a.shells
	}
	return counts
}

// nameOf is the name of an agent whose start was seen here, or that is in memory.
func (r *Recorder) nameOf(run, agent string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.agents[run+"."+agent].name, r.actors[mailbox.At(run, agent)].name)
}
