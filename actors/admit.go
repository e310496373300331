package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// earlyIdleTimeout is the idle timeout of waiting actors while runs are queued.
const earlyIdleTimeout = 2 * time.Second

// passivateEarly says that runs are queued because memory is short.
type passivateEarly struct{}

// PassivateEarly asks actors that wait for a person or a child to passivate soon, because runs are
// queued. A supervisor is asked only while its run is parked, because it receives a message
// for every turn.
func (n *Node) PassivateEarly() { n.system.Root.Send(n.router, passivateEarly{}) }

// isAdmitted reports whether an address has a shell or may get one: the actors of a queued
// run may not (see Config.Admit).
func (r *router) isAdmitted(m mailbox.Message) bool {
	if r.cfg.Admit == nil || r.shells[m.To] != nil {
		return true
	}
	if _, gone := r.gone[m.To]; gone {
		return true
	}
	if _, holds := r.cfg.Holds(m.To); !holds {
		return true // findShell refuses it
	}
	return r.cfg.Admit(m)
}

// askEarlyPassivation asks the shells to passivate that have read no entry for earlyIdleTimeout.
func (r *router) askEarlyPassivation(c actor.Context) {
	now, asked := time.Now(), 0
	for _, p := range r.shells {
		if p.pid == nil || p.superseded || p.detached || len(p.supersededShells) > 0 || now.Sub(p.touched) < earlyIdleTimeout {
			continue
		}
		if asked++; asked > passivationsAtOnce {
			return // the next passivateEarly asks the others
		}
		p.touched = now
		c.Send(p.pid, factMessage{activation.Passivate{Early: true}})
	}
}
