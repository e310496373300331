package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// foreign says that a log is newer than this program: it is left to nodes that
// know it.
type foreign struct {
	at  mailbox.Address
	why string
}

// isForeign gives the log up, once.
func (s *shell) isForeign(c actor.Context) bool {
	if s.life.Foreign == "" {
		return false
	}
	if !s.fell {
		c.Send(s.router, foreign{s.life.Addr, s.life.Foreign})
	}
	s.fallSilent(c)
	return true
}

// foreignLog notes a log that no shell of this node is for, and tells everyone.
func (r *router) foreignLog(m foreign) {
	if r.foreign == nil {
		r.foreign = map[mailbox.Address]struct{}{}
	}
	r.foreign[m.at] = struct{}{}
	r.cfg.Logger.Error("a log was written by a newer troupe: upgrade this node, which leaves the log to others", "actor", m.at, "why", m.why)
	if r.cfg.Events != nil {
		r.cfg.Events(life.Event{V: 1, ID: fmt.Sprintf("%s#foreign.%s", m.at, r.cfg.Name), TS: life.Stamp(time.Now().UnixMilli()), Run: m.at.Run(),
			Agent: m.at.Agent(), Node: r.cfg.Name, Kind: "warning.raised",
			Data: agent.Warned{What: "node " + r.cfg.Name + " is too old for this log and leaves it to others", Why: m.why}})
	}
	if r.cfg.Foreign != nil {
		r.cfg.Foreign(m.at, m.why)
	}
}
