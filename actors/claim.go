package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/mailbox"
)

// claim begins this life: nothing is done before its Resumed has come round.
func (s *shell) claim(c actor.Context) {
	e, err := s.life.Claim(s.cfg.Name, s.life.Damage)
	if err != nil {
		panic(err)
	}
	data, err := mailbox.Encode(e)
	if err != nil {
		panic(err)
	}
	self, root := c.Self(), c.ActorSystem().Root
	trap.At(trap.ClaimBefore, string(s.life.Addr))
	s.cfg.Post.Append(s.ctx, s.life.Addr, data, func(place uint64, err error) {
		trap.At(trap.ClaimAcked, string(s.life.Addr))
		root.Send(self, claimed{place, err})
	})
}

// readBack reads the log up to the claim, beside the actor. A claim made while
// alive (see Reclaim) comes round by the tail.
func (s *shell) readBack(c actor.Context, m claimed) {
	switch {
	case errors.Is(m.err, mailbox.ErrFull):
		s.log.Warn("no room for a claim; it is made again", "actor", s.life.Addr)
		s.later(c, reclaim{})
		return
	case m.err != nil:
		s.failed(c, "claim", m.err)
		return
	case s.replay:
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	at, post, ctx, differs := s.life.Addr, s.cfg.Post, s.ctx, s.cfg.Differs
	go func() {
		var log []mailbox.Message
		err := post.Read(ctx, at, 0, m.place, func(m mailbox.Message) error {
			log = append(log, m)
			return nil
		})
		var found map[string]string
		if t, ok := life.Given(at, log); ok && err == nil && differs != nil && len(t.Hashes) > 0 {
			found = differs(t)
		}
		root.Send(self, replayed{m, log, found, err})
	}()
}

// catchUp folds the log and goes on with what the tail has brought meanwhile.
func (s *shell) catchUp(c actor.Context, m replayed) {
	switch {
	case m.err != nil && s.ctx.Err() == nil && !errors.Is(m.err, mailbox.ErrClosed):
		// Nobody leads the log, or its blocks do not decode: no shell could read it now.
		s.log.Warn("a log is out of reach; it is read again", "actor", s.life.Addr, "error", m.err)
		s.later(c, m.claim)
		return
	case m.err != nil:
		s.failed(c, "replay", m.err)
		return
	case life.Starts(m.log) > life.StartsMax && !life.Buried(m.log): // a deleted log kills nobody
		c.Send(s.router, hopeless{s.life.Addr, fmt.Sprintf("%d starts in a row did not get through the log", life.StartsMax)})
		return
	}
	s.replay, s.life.Found = true, m.found
	for _, e := range slices.Concat(m.log, s.ahead) {
		s.next(c, e)
	}
	s.took(c, len(s.ahead))
	s.ahead = nil
	s.after(c)
	if s.leaving {
		s.freeze(c)
		return
	}
	if s.behind.through > 0 {
		s.catchUpTail(c, s.behind)
	}
}
