package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// Limits of read-ahead, which is bounded for each actor (PROTOCOL P18): an actor with more
// entries waiting is detached from the tail and catches up by reading for itself, so that it
// holds no more of them in memory than this, and does not stall other actors.
const (
	readAhead  = 64  // entries that may wait for a shell before it is detached
	catchUpMax = 256 // entries of one read of a detached shell
)

type (
	// entriesTaken says how many of the router's entries the shell has read.
	entriesTaken struct {
		at  mailbox.Address
		pid *actor.PID
		n   int
	}
	// reachedTail says that the shell has read up to last and asks for the tail.
	reachedTail struct {
		at   mailbox.Address
		pid  *actor.PID
		last uint64
	}
)

// Unread counts the entries that one shell was sent and has not read. Its methods must not block, and several goroutines
// call them.
type Unread interface {
	Sent()
	Read()
	// Forget ends the count: the shell has ended, and its log still has the entries.
	Forget()
}

// forwardEntry sends an entry to its shell, unless the shell is detached.
func (r *router) forwardEntry(c actor.Context, p *shellPlace, m mailbox.Message) {
	p.head, p.touched = m.Place, time.Now()
	switch {
	case p.pid == nil || p.detached:
	case p.waiting >= readAhead:
		p.detached = true
		c.Send(p.pid, factMessage{activation.Detached{Through: p.head}})
	default:
		p.waiting++
		if known, ok := r.pids[p.pid.Id]; ok && known.unread != nil {
			known.unread.Sent()
		}
		c.Send(p.pid, m)
	}
}

// attachShell attaches a shell again if no entry has arrived since its last read. From then on,
// entries reach it through the tail.
func (r *router) attachShell(c actor.Context, m reachedTail) {
	p := r.shells[m.at]
	switch {
	case p == nil || p.pid != m.pid:
	case m.last < p.head:
		c.Send(p.pid, factMessage{activation.Detached{Through: p.head}})
	default:
		p.detached, p.waiting = false, 0
	}
}

func (r *router) countTaken(m entriesTaken) {
	if p := r.shells[m.at]; p != nil && p.pid == m.pid && !p.detached {
		p.waiting -= m.n
	}
}
