package actors

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/mailbox"
)

// Messages to a shell, beside mailbox.Message.
type (
	claimed struct {
		place uint64
		err   error
	}
	replayed struct {
		claim claimed
		log   []mailbox.Message
		found map[string]string // what this node has otherwise than the task says
		err   error
	}
	reclaim struct{}
	acked   struct {
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

// Pauses of a shell.
const (
	settleHold  = 20 * time.Millisecond // how long a settlement may wait for company (PROTOCOL P21)
	repostPause = time.Second           // before what found no room, or no leader, is tried again
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
	behind  behind            // while that went on, the shell was detached
	taken   int               // read, and the router not told
	replay  bool              // the replay is through
	last    uint64            // place of the last entry read
	held    []heldNotes       // of entries read while folding
	holding bool              // the flush timer runs
	closing bool              // Closed is on the way
	marked  uint64            // how much was read when the last Checkpoint went off
	told    bool              // Over was told
	answers answers           // of a log that is closed
	unread  []string          // ids of own entries that have not come round
	leaving bool              // it is to be frozen once the replay is through
	frozen  bool              // the log is being handed over: see handover.go
	fell    bool              // the router knows that the shell is silent
	final   string            // id of the Released that was appended
	resting bool              // it is frozen because it had nothing to do: see rest.go
	missed  bool              // since it was frozen something came that was not stepped
	due     int64             // when it is to be woken, with resting

	postponed []any  // effects that wait for the lease: see holds.go
	proof     string // id of the entry after which they are done
	under     uint64 // the lease under which this shell was last seen to be in force
	proving   uint64 // the lease at the time when proof was sent
	work      world

	awaited map[string]bool // timers of members that were given more time: see signs.go
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
	s.work.busy = func(change int) { cfg.Busy(at, change) }
	s.life = life.New(at, nonce(), epoch, machine)
	s.life.Rules, s.under = cfg.Rules, epoch.Lease
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
	defer s.sayPanic()
	if s.frozen {
		s.whileFrozen(c)
		return
	}
	switch m := c.Message().(type) {
	case *actor.Started:
		s.claim(c)
	case *actor.Stopping:
		s.work.cancelAll()
		s.leaveGate(c)
	case reclaim:
		s.claim(c)
	case claimed:
		s.readBack(c, m)
	case replayed:
		s.catchUp(c, m)
	case mailbox.Message:
		if !s.replay {
			s.ahead = append(s.ahead, m) // at most ReadAhead
			return
		}
		s.next(c, m)
		s.after(c)
		s.took(c, 1)
	case behind:
		s.catchUpTail(c, m)
	case caught:
		s.caught(c, m)
	case acked:
		s.acked(c, m)
	case posted:
		s.posted(c, m)
	case answered, answerAgain:
		s.answered(c, m)
	case again:
		if s.life.Phase == life.Alive {
			s.post(c, m.to, m.letters)
		}
	case repost:
		s.append(c, m.own)
	case worked:
		if m.start == s.life.Start { // else its key may be that of another attempt
			s.work.done(m.key)
		}
		s.append(c, m)
		s.after(c)
	case certain:
		s.certain(c)
	case unbegun:
		s.unbegun(c, m)
	case spent:
		s.spent(c, m)
	case freeze:
		s.freeze(c)
	case rest:
		s.rest(c, m)
	case due:
		s.work.fired(m.timer)
		if s.awaitsSign(c, m.timer) {
			return
		}
		s.append(c, s.own("woke", m.timer, agent.Woke{Timer: m.timer}))
	case flush:
		s.holding = false
		s.send(c, true)
	}
}

// sayPanic logs what the shell stops of, and lets it stop.
func (s *shell) sayPanic() {
	if p := recover(); p != nil {
		s.log.Error("a shell panicked", "actor", s.life.Addr, "panic", p, "stack", string(debug.Stack()))
		panic(p)
	}
}

// next reads one entry and does what it brings.
func (s *shell) next(c actor.Context, m mailbox.Message) {
	if m.Place <= s.last {
		return // the replay and the tail overlap
	}
	s.last = m.Place
	trap.At(trap.Read, string(m.To.Bare()))
	if s.life.Phase == life.Alive { // else it is an old one, read again
		trap.Entry(trap.OwnReading, m.Data)
	}
	r := s.life.Next(m)
	if s.isForeign(c) {
		return
	}
	trap.At(trap.OwnRead, r.Own)
	if r.Err != nil {
		s.log.Warn("an entry does not count", "error", r.Err)
	}
	if r.Own != "" {
		s.cameRound(r.Own)
	}
	s.answers.add(r)
	if r.Came {
		s.append(c, s.own("checkpoint", "0", agent.Checkpoint{}))
		s.untold()
	}
	s.tell(r, m.At)
	if r.Came && s.super != nil && s.super.Ended() {
		s.over()
	}
	switch {
	case r.Reclaim && !s.holds():
		s.fallSilent(c)
		return
	case r.Reclaim:
		s.claim(c)
	}
	s.begin(c, r.World)
	if s.proof != "" && r.Own == s.proof {
		s.proven(c)
	}
}

// after sends what may go, closes the log at the end, and stops.
func (s *shell) after(c actor.Context) {
	if s.life.Phase == life.Silent {
		s.fallSilent(c)
	}
	if s.idleForGood() {
		c.Send(s.router, left{s.life.Addr, c.Self()})
		return
	}
	if !s.replay {
		return
	}
	s.send(c, false)
	switch {
	case s.life.Phase == life.Closed:
		if s.super != nil && !s.told && !s.life.Buried {
			s.over() // the life before may have died between Closed and saying so
		}
		s.endAfterAnswers(c)
	case s.life.MayClose() && !s.closing && !s.work.hooking():
		s.closing = true
		s.close(c)
	case s.life.CheckpointDue() && s.life.N-s.marked >= life.CheckpointGap:
		s.marked = s.life.N
		s.append(c, s.own("checkpoint", "", agent.Checkpoint{}))
	}
}
