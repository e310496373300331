package actors

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// Messages to a shell, beside mailbox.Message.
type (
	claimed struct {
		place uint64
		err   error
	}
	replayed struct {
		log []mailbox.Message
		err error
	}
	acked struct {
		to      mailbox.Address
		letters []life.Letter
		err     error
	}
	posted struct {
		own worked
		err error
	}
	due    struct{ timer string }
	flush  struct{}
	repost struct{ own worked }
	again  struct {
		to      mailbox.Address
		letters []life.Letter
	}
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

// Pauses of a shell.
const (
	settleHold  = 20 * time.Millisecond // how long a settlement may wait for company (PROTOCOL P21)
	repostPause = time.Second           // before an entry that found no room is appended again
)

// shell is one start of one actor.
type shell struct {
	ctx    context.Context
	cfg    Config
	log    *slog.Logger
	router *actor.PID
	life   *life.Life
	agent  *life.Agent      // one of these two
	super  *life.Supervisor // is the machine

	ahead   []mailbox.Message // read by the tail before the replay is through
	replay  bool              // the replay is through
	last    uint64            // place of the last entry read
	held    []heldNotes       // of entries read while folding
	holding bool              // the flush timer runs
	closing bool              // Closed is on the way
	told    bool              // Over was told
	work    world
}

type heldNotes struct {
	n     uint64
	stamp int64
	notes []life.Note
}

func newShell(ctx context.Context, cfg Config, at mailbox.Address, epoch mailbox.Epoch, router *actor.PID) *shell {
	s := &shell{ctx: ctx, cfg: cfg, router: router, log: cfg.Logger}
	var machine life.Machine
	if at.Agent() == mailbox.Super {
		s.super = &life.Supervisor{Addr: at, Watch: cfg.Events != nil}
		machine = s.super
	} else {
		s.agent = &life.Agent{Addr: at, Watch: cfg.Events != nil}
		machine = s.agent
	}
	s.life = life.New(at, nonce(), epoch, machine)
	return s
}

func nonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// Receive takes one message. Everything that decides is in life.Life and the
// machine behind it.
func (s *shell) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.claim(c)
	case *actor.Stopping:
		s.work.cancelAll()
	case claimed:
		s.readBack(c, m)
	case replayed:
		s.catchUp(c, m)
	case mailbox.Message:
		if !s.replay {
			s.ahead = append(s.ahead, m)
			return
		}
		s.next(c, m)
		s.after(c)
	case acked:
		s.acked(c, m)
	case posted:
		s.posted(c, m)
	case again:
		s.post(c, m.to, m.letters)
	case repost:
		s.append(c, m.own)
	case worked:
		s.work.done(m.key)
		s.append(c, m)
		s.after(c)
	case due:
		s.work.fired(m.timer)
		s.append(c, s.own("woke", m.timer, agent.Woke{Timer: m.timer}))
	case flush:
		s.holding = false
		s.send(c, true)
	}
}

// claim begins this life: nothing is done before its Resumed has come round.
func (s *shell) claim(c actor.Context) {
	e, err := s.life.Claim(s.cfg.Name, "")
	if err != nil {
		panic(err)
	}
	data, err := mailbox.Encode(e)
	if err != nil {
		panic(err)
	}
	self, root := c.Self(), c.ActorSystem().Root
	s.cfg.Post.Append(s.ctx, s.life.Addr, data, func(place uint64, err error) { root.Send(self, claimed{place, err}) })
}

// readBack reads the log up to the claim, beside the actor. A claim made while
// alive (see Reclaim) comes round by the tail.
func (s *shell) readBack(c actor.Context, m claimed) {
	if m.err != nil {
		s.failed(c, "claim", m.err)
		return
	}
	if s.replay {
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	at, post, ctx := s.life.Addr, s.cfg.Post, s.ctx
	go func() {
		var log []mailbox.Message
		err := post.Read(ctx, at, 0, m.place, func(m mailbox.Message) error {
			log = append(log, m)
			return nil
		})
		root.Send(self, replayed{log, err})
	}()
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

// catchUp folds the log and goes on with what the tail has brought meanwhile.
func (s *shell) catchUp(c actor.Context, m replayed) {
	if m.err != nil {
		s.failed(c, "replay", m.err)
		return
	}
	if life.Starts(m.log) > life.StartsMax {
		s.log.Error("too many starts without a checkpoint; the actor is parked", "actor", s.life.Addr)
		return
	}
	s.replay = true
	for _, e := range slices.Concat(m.log, s.ahead) {
		s.next(c, e)
	}
	s.ahead = nil
	s.after(c)
}

// next reads one entry and does what it brings.
func (s *shell) next(c actor.Context, m mailbox.Message) {
	if m.Place <= s.last {
		return // the replay and the tail overlap
	}
	s.last = m.Place
	r := s.life.Next(m)
	if r.Err != nil {
		s.log.Warn("an entry does not count", "error", r.Err)
		if errors.Is(r.Err, life.ErrDamaged) {
			s.append(c, s.own("resumed", s.life.Start, agent.Resumed{Life: s.life.Start, Damaged: r.Err.Error()}))
		}
	}
	s.tell(r, m.At)
	if r.Came {
		s.append(c, s.own("checkpoint", "0", agent.Checkpoint{}))
		s.untold()
		if s.super != nil && s.super.Ended() {
			s.over()
		}
	}
	if r.Reclaim {
		s.claim(c)
	}
	for _, effect := range r.World {
		s.do(c, effect)
	}
}

// after sends what may go, closes the log at the end, and stops.
func (s *shell) after(c actor.Context) {
	if !s.replay {
		return
	}
	s.send(c, false)
	switch {
	case s.life.Phase == life.Closed, s.life.Phase == life.Silent && s.work.idle():
		if s.super != nil && s.life.Phase == life.Closed && !s.told {
			s.over() // the life before may have died between Closed and saying so
		}
		c.Send(s.router, ended{s.life.Addr})
	case s.life.MayClose() && !s.closing:
		s.closing = true
		s.append(c, s.own("closed", "", agent.Closed{N: s.life.N}))
	case s.life.CheckpointDue():
		s.append(c, s.own("checkpoint", "", agent.Checkpoint{}))
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
	s.cfg.Post.Append(s.ctx, to, data, func(_ uint64, err error) { root.Send(self, acked{to, letters, err}) })
}

// acked: the letters are out, or there was no room: then the same again.
func (s *shell) acked(c actor.Context, m acked) {
	switch {
	case m.err == nil:
		s.life.Outbox.Acked(m.to)
		s.after(c)
	case errors.Is(m.err, mailbox.ErrClosed):
	case errors.Is(m.err, mailbox.ErrFull) && s.life.Phase == life.Alive:
		s.log.Warn("no room for a letter; it is sent again", "from", s.life.Addr, "to", m.to)
		self, root := c.Self(), c.ActorSystem().Root
		time.AfterFunc(repostPause, func() { root.Send(self, again{m.to, m.letters}) })
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
	s.cfg.Post.Append(s.ctx, s.life.Addr, data, func(_ uint64, err error) {
		if err != nil {
			root.Send(self, posted{w, err})
		}
	})
}

// posted takes the failure of an append to our own log: what is too large is
// replaced by what says so, what found no room is tried again.
func (s *shell) posted(c actor.Context, m posted) {
	switch {
	case errors.Is(m.err, mailbox.ErrClosed):
	case errors.Is(m.err, mailbox.ErrFull):
		self, root := c.Self(), c.ActorSystem().Root
		time.AfterFunc(repostPause, func() { root.Send(self, repost{m.own}) })
	case !m.own.small && (errors.Is(m.err, mailbox.ErrTooLarge) || errors.Is(m.err, mailbox.ErrMalformed)):
		s.append(c, smaller(m.own))
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
