package actors

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// newerLog says that a log is newer than this program: nodes that know its form act on it.
type newerLog struct {
	at  mailbox.Address
	why string
}

// leaveNewerLog notes a log that no shell of this node may act on, and reports it.
func (r *router) leaveNewerLog(m newerLog) {
	if r.newer == nil {
		r.newer = map[mailbox.Address]struct{}{}
	}
	r.newer[m.at] = struct{}{}
	r.cfg.Logger.Error("a log was written by a newer troupe: upgrade this node, which leaves the log to others", "actor", m.at, "why", m.why)
	if r.cfg.OnEvent != nil {
		r.cfg.OnEvent(activation.NewPublished(time.Now().UnixMilli(), event.Published{ID: fmt.Sprintf("%s#foreign.%s", m.at, r.cfg.Name), Run: m.at.Run(),
			Agent: m.at.Agent(), Node: r.cfg.Name, Kind: event.KindWarningRaised,
			Data: event.Warning{What: "node " + r.cfg.Name + " is too old for this log and leaves it to others", Why: m.why}}))
	}
	if r.cfg.OnNewerLog != nil {
		r.cfg.OnNewerLog(m.at, m.why)
	}
}
