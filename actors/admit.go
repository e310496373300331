package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/mailbox"
)

// pressedLinger is how long who waits stays in memory while runs are queued.
const pressedLinger = 2 * time.Second

// press: runs are queued for want of memory.
type press struct{}

// Press asks who waits for a person or a child to leave memory soon, because runs are
// queued. A supervisor is asked only while its run is parked: it hears of every turn.
func (n *Node) Press() { n.system.Root.Send(n.router, press{}) }

// admitted reports whether an address may have a shell: everybody but the supervisor of a
// run that is queued (see Config.Admit).
func (r *router) admitted(at mailbox.Address, data []byte, stamp int64) bool {
	if r.cfg.Admit == nil || at.Agent() != mailbox.Super || r.shells[at] != nil {
		return true
	}
	if _, gone := r.gone[at]; gone {
		return true
	}
	if _, holds := r.cfg.Holds(at); !holds {
		return true
	}
	kind := ""
	if data != nil {
		kind = life.KindOf(data)
	}
	return r.cfg.Admit(at, kind, stamp)
}

// pressed asks the shells that have read nothing for a moment.
func (r *router) pressed(c actor.Context) {
	now, asked := time.Now(), 0
	for _, p := range r.shells {
		if p.pid == nil || p.silent || p.detached || len(p.elders) > 0 || now.Sub(p.touched) < pressedLinger {
			continue
		}
		if asked++; asked > restsAtOnce {
			return // the others at the next press
		}
		p.touched = now
		c.Send(p.pid, rest{early: true})
	}
}
