package actors

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/mailbox"
)

// Read-ahead is bounded for each actor (PROTOCOL P18): one with more entries
// waiting is detached from the tail and catches up by its own read, so that it
// holds no more of them in memory than this, and stalls nobody.
const (
	ReadAhead  = 64  // entries that wait for a shell until it is detached
	takenEvery = 16  // entries after which a shell says so
	catchUpMax = 256 // entries of one read of a detached shell
)

type (
	// taken: the shell has read so many of what the router sent it.
	taken struct {
		at  mailbox.Address
		pid *actor.PID
		n   int
	}
	// behind: the shell is detached; its log goes on at least to this place.
	behind struct{ through uint64 }
	// caught is what a detached shell has read for itself.
	caught struct {
		behind behind
		log    []mailbox.Message
		err    error
	}
	// level: the shell has read up to last and asks for the tail.
	level struct {
		at   mailbox.Address
		pid  *actor.PID
		last uint64
	}
)

// forward brings an entry to its shell, unless that one is detached.
func (r *router) forward(c actor.Context, p *place, m mailbox.Message) {
	p.head, p.touched = m.Place, time.Now()
	switch {
	case p.pid == nil || p.detached:
	case p.waiting >= ReadAhead:
		p.detached = true
		c.Send(p.pid, behind{p.head})
	default:
		p.waiting++
		c.Send(p.pid, m)
	}
}

// level attaches a shell again, if nothing has come since it read. What comes
// from now on reaches it by the tail.
func (r *router) level(c actor.Context, m level) {
	p := r.shells[m.at]
	switch {
	case p == nil || p.pid != m.pid:
	case m.last < p.head:
		c.Send(p.pid, behind{p.head})
	default:
		p.detached, p.waiting = false, 0
	}
}

func (r *router) taken(m taken) {
	if p := r.shells[m.at]; p != nil && p.pid == m.pid && !p.detached {
		p.waiting -= m.n
	}
}

// took counts what came by the tail.
func (s *shell) took(c actor.Context, n int) {
	s.taken += n
	if s.taken >= takenEvery {
		c.Send(s.router, taken{s.life.Addr, c.Self(), s.taken})
		s.taken = 0
	}
}

// catchUpTail reads what a detached shell was not sent, a part at a time. What
// it was sent before it has read by now.
func (s *shell) catchUpTail(c actor.Context, m behind) {
	if !s.replay {
		s.behind = m
		return
	}
	if s.last >= m.through {
		s.taken = 0
		c.Send(s.router, level{s.life.Addr, c.Self(), s.last})
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	at, post, ctx, after := s.life.Addr, s.cfg.Post, s.ctx, s.last
	go func() {
		var log []mailbox.Message
		err := post.Read(ctx, at, after, m.through, func(e mailbox.Message) error {
			log = append(log, e)
			if len(log) == catchUpMax {
				return errPart
			}
			return nil
		})
		if errors.Is(err, errPart) {
			err = nil
		}
		root.Send(self, caught{m, log, err})
	}()
}

var errPart = errors.New("actors: enough for one read")

// caught steps what a detached shell has read, and goes on.
func (s *shell) caught(c actor.Context, m caught) {
	for _, e := range m.log {
		s.next(c, e)
		s.after(c)
	}
	s.goOn(c, m)
}

// goOn reads what has come after the part that was read.
func (s *shell) goOn(c actor.Context, m caught) {
	switch {
	case s.ctx.Err() != nil:
	case m.err != nil || len(m.log) == 0:
		s.log.Warn("a log is out of reach; it is read again", "actor", s.life.Addr, "error", m.err)
		s.later(c, m.behind)
	default:
		s.catchUpTail(c, m.behind)
	}
}
