package cluster

import (
	"math"
	"sync/atomic"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/mailbox"
)

// actorCounter counts the actors of this node, and the entries that they have not read.
type actorCounter struct{ live, resting, unread atomic.Int64 }

// observeActors subscribes to the status reports of the actors.
func (n *actorCounter) observeActors(cfg *actors.Config) {
	alive := cfg.Alive
	cfg.Alive = func(at mailbox.Address, change int) {
		n.live.Add(int64(change))
		if alive != nil {
			alive(at, change)
		}
	}
	cfg.Passivated = func(_ mailbox.Address, change int) { n.resting.Add(int64(change)) }
	cfg.CountUnread = func() actors.Unread { return &shellUnread{total: &n.unread} }
}

func (n *actorCounter) readCounts() (live, resting int64) { return n.live.Load(), n.resting.Load() }

// shellUnread counts the entries that one shell has not read.
type shellUnread struct {
	own   atomic.Int64
	total *atomic.Int64 // of the node
}

// forgotten is far below what a shell that still reads can make of it.
const forgotten = math.MinInt64 / 2

// Sent counts an entry that the shell was sent.
func (u *shellUnread) Sent() {
	u.own.Add(1)
	u.total.Add(1)
}

// Read counts an entry that the shell has read. After Forget it changes nothing.
func (u *shellUnread) Read() {
	if u.own.Add(-1) >= 0 {
		u.total.Add(-1)
	}
}

// Forget takes what the shell has not read out of the total.
func (u *shellUnread) Forget() {
	if left := u.own.Swap(forgotten); left > 0 {
		u.total.Add(-left)
	}
}
