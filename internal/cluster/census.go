package cluster

import (
	"sync/atomic"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/mailbox"
)

// actorCounter counts the actors of this node.
type actorCounter struct{ live, resting atomic.Int64 }

// observeActors subscribes to the status reports of the actors.
func (n *actorCounter) observeActors(cfg *actors.Config) {
	alive := cfg.Alive
	cfg.Alive = func(at mailbox.Address, change int) {
		n.live.Add(int64(change))
		if alive != nil {
			alive(at, change)
		}
	}
	cfg.Resting = func(_ mailbox.Address, change int) { n.resting.Add(int64(change)) }
}

func (n *actorCounter) readCounts() (live, resting int64) { return n.live.Load(), n.resting.Load() }
