package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/mailbox"
)

// worked is a result of our own work that is to become an own entry. It names
// the life that began the work: another one may post it.
type worked struct {
	at        mailbox.Address
	epoch     mailbox.Epoch
	start     string
	kind, key string
	body      any
	small     bool // it stands for a result that did not fit
}

// later sends the shell a message after a pause: what failed is tried again.
func (s *shell) later(c actor.Context, message any) {
	self, root := c.Self(), c.ActorSystem().Root
	time.AfterFunc(repostPause, func() { root.Send(self, message) })
}

// failed: without its log the shell cannot go on. It stops by panic, so that
// its place starts another one after a pause.
func (s *shell) failed(c actor.Context, what string, err error) {
	if s.ctx.Err() != nil || errors.Is(err, mailbox.ErrClosed) {
		c.Stop(c.Self())
		return
	}
	s.log.Error("a log is out of reach", "actor", s.life.Addr, "at", what, "error", err)
	panic(err)
}

// acked: the letters are out, or there was no room: then the same again.
func (s *shell) acked(c actor.Context, m acked) {
	switch {
	case m.err == nil:
		s.life.Outbox.Acked(m.to)
		s.after(c)
	case errors.Is(m.err, mailbox.ErrClosed), s.life.Phase != life.Alive: // the next life sends it
	case errors.Is(m.err, mailbox.ErrFull):
		s.log.Warn("no room for a letter; it is sent again", "from", s.life.Addr, "to", m.to)
		s.later(c, again{m.to, m.letters})
	default:
		s.failed(c, "send", m.err)
	}
}

// own makes a result of this life.
func (s *shell) own(kind, key string, body any) worked {
	return worked{at: s.life.Addr, epoch: s.life.Epoch, start: s.life.Start, kind: kind, key: key, body: body}
}

// append puts a result into our own log; it counts when it comes round. A
// silent shell posts only what a tool itself returned.
func (s *shell) append(c actor.Context, w worked) {
	if (s.life.Phase == life.Silent || w.start != s.life.Start) && w.kind != "returned" || s.life.Phase == life.Closed {
		return
	}
	e, err := s.life.OwnAs(w.epoch, w.start, w.kind, w.key, w.body)
	var data []byte
	if err == nil {
		data, err = mailbox.Encode(e)
	}
	self, root := c.Self(), c.ActorSystem().Root
	if err != nil {
		root.Send(self, posted{w, err})
		return
	}
	id := e.Items[0].ID
	if w.start == s.life.Start && !slices.Contains(s.unread, id) {
		s.unread = append(s.unread, id)
	}
	trap.At(trap.OwnBefore, id)
	s.cfg.Post.Append(s.ctx, s.life.Addr, data, func(_ uint64, err error) {
		trap.At(trap.OwnAcked, id)
		if err != nil {
			root.Send(self, posted{w, err})
		}
	})
	trap.At(trap.OwnSent, id)
}

// cameRound forgets an own entry that was read.
func (s *shell) cameRound(id string) {
	if i := slices.Index(s.unread, id); i >= 0 {
		s.unread = slices.Delete(s.unread, i, i+1)
	}
}

// posted takes the failure of an append to our own log: what is too large is
// replaced by what says so, what found no room is tried again.
func (s *shell) posted(c actor.Context, m posted) {
	full := errors.Is(m.err, mailbox.ErrFull)
	if id := s.id(m.own); !full || id == s.final {
		s.cameRound(id) // it did not, and is not waited for
	}
	switch {
	case errors.Is(m.err, mailbox.ErrClosed):
	case full: // a log is not given without it
		s.later(c, repost{m.own})
	case !m.own.small && (errors.Is(m.err, mailbox.ErrTooLarge) || errors.Is(m.err, mailbox.ErrMalformed)):
		w := m.own
		w.small = true
		w.kind, w.body = life.Smaller(w.kind, w.body)
		s.append(c, w)
	default:
		s.failed(c, m.own.kind, m.err)
	}
}

// over tells that the run is over.
func (s *shell) over() {
	s.told = true
	if s.cfg.Over != nil {
		s.cfg.Over(s.life.Addr.Run(), s.super.State.Result())
	}
}

// send puts letters out: one entry in flight to each receiver.
func (s *shell) send(c actor.Context, held bool) {
	if s.life.Phase != life.Alive {
		return
	}
	for {
		to, letters, ok := s.life.Outbox.Take(held)
		if !ok {
			break
		}
		s.post(c, to, letters)
	}
	if s.life.Outbox.Held() && !s.holding {
		s.holding = true
		self, root := c.Self(), c.ActorSystem().Root
		time.AfterFunc(settleHold, func() { root.Send(self, flush{}) })
	}
}

func (s *shell) post(c actor.Context, to mailbox.Address, letters []life.Letter) {
	self, root := c.Self(), c.ActorSystem().Root
	data, err := mailbox.Encode(s.life.Post(letters))
	if err != nil {
		root.Send(self, acked{to, letters, err})
		return
	}
	trap.At(trap.LetterBefore, letters[0].Kind)
	s.cfg.Post.Append(s.ctx, to, data, func(_ uint64, err error) {
		trap.At(trap.LetterAcked, letters[0].Kind)
		root.Send(self, acked{to, letters, err})
	})
	trap.At(trap.LetterSent, letters[0].Kind)
}
