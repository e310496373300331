package actors

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/mailbox"
)

// Messages to a shell, in addition to mailbox.Message and activation.OwnResult.
type (
	// factMessage carries a fact to the activation.
	factMessage struct{ of any }
	// timerDue says that a timer has fired.
	timerDue struct{ timer string }
	// logCaught is the part of the log that a detached shell has read for itself.
	logCaught struct {
		through uint64
		log     []mailbox.Message
		err     error
	}
)

// shell runs one activation of one actor. It decides nothing: activation.Step decides, and
// the shell carries out the actions that Step returns (actions.go, work.go).
type shell struct {
	ctx    context.Context
	cfg    *Config // of the node
	log    *slog.Logger
	router *actor.PID
	addr   mailbox.Address
	start  string // nonce of the activation
	state  activation.State
	work   activeWork
	unread Unread // entries that the router has sent; nil: they are not counted
	named  bool   // Named has been called
	// replayed says that the router knows of the end of the replay.
	replayed bool
}

func newShell(ctx context.Context, cfg *Config, at mailbox.Address, epoch mailbox.Epoch, router *actor.PID, unread Unread) *shell {
	s := &shell{unread: unread, ctx: ctx, cfg: cfg, log: cfg.Logger, router: router, addr: at, start: newNonce()}
	s.state = activation.New(at, s.start, epoch, cfg.Name, cfg.OnEvent != nil)
	s.work.busy = func(change int) { cfg.Busy(at, change) }
	return s
}

func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// receive takes one message.
func (s *shell) receive(c actor.Context) {
	defer s.logPanic()
	switch m := c.Message().(type) {
	case *actor.Started:
		s.learnFact(c, activation.Activate{})
	case *actor.Stopping:
		s.work.cancelAll()
		s.leaveThrottle(c)
	case mailbox.Message:
		if s.unread != nil {
			s.unread.Read()
		}
		s.passFailpoints(m)
		s.learnFact(c, activation.EntryArrived{Message: m})
	case logCaught:
		for _, e := range m.log {
			s.passFailpoints(e)
			s.learnFact(c, activation.EntryRead{Message: e})
		}
		s.learnFact(c, activation.TailRead{Through: m.through, Entries: len(m.log), Err: m.err})
	case activation.OwnResult:
		s.learnFact(c, activation.WorkDone{Own: m})
	case timerDue:
		s.work.timerFired(m.timer)
		pool, unseen := s.state.UnseenPool(m.timer)
		s.learnFact(c, activation.TimerFired{Timer: m.timer, Served: unseen && s.cfg.Serves(pool)})
	case factMessage:
		s.passReplay(m.of)
		s.learnFact(c, m.of)
	}
}

// learnFact steps a fact and carries out the actions that follow.
func (s *shell) learnFact(c actor.Context, fact any) {
	e := activation.Input{Now: time.Now().UnixMilli(), Fact: fact}
	switch fact.(type) {
	case activation.LogRead, activation.EntryArrived, activation.EntryRead, activation.ProveLease, activation.Passivate:
		e.Lease, e.LeaseHeld = s.cfg.Holds(s.addr)
	}
	state, actions := activation.Step(s.state, e)
	s.state = state
	s.reportName()
	s.reportReplay(c, fact)
	for _, action := range actions {
		s.carryOut(c, action)
	}
}

// reportReplay reports once that the log is replayed, or cannot be read now.
func (s *shell) reportReplay(c actor.Context, fact any) {
	_, read := fact.(activation.LogRead)
	if claimed, ok := fact.(activation.ClaimAppended); s.replayed || !read && (!ok || claimed.Err == nil) {
		return
	}
	s.replayed = true
	c.Send(s.router, shellReplayed{c.Self()})
}

// reportName reports the name of the agent once, when its task is known.
func (s *shell) reportName() {
	if s.named || s.state.Agent == nil || s.state.Agent.State.Task.Name == "" {
		return
	}
	s.named = true
	s.cfg.Named(s.addr, s.state.Agent.State.Task.Name)
}

// passFailpoints passes the failpoints before an entry is read.
func (s *shell) passFailpoints(m mailbox.Message) {
	if !s.state.WouldRead(m) {
		return
	}
	failpoint.At(failpoint.Read, string(m.To.Bare()))
	if s.state.Reader.Phase == activation.Active { // otherwise it is an old entry, read again
		failpoint.AtEntry(failpoint.OwnReading, m.Data)
	}
}

// passReplay passes the failpoints before the entries that a replay steps, all of them before
// the first.
func (s *shell) passReplay(fact any) {
	f, ok := fact.(activation.LogRead)
	if !failpoint.Enabled || !ok {
		return
	}
	for _, m := range s.state.ReplayEntries(f) {
		failpoint.At(failpoint.Read, string(m.To.Bare()))
	}
}

// logPanic logs the panic that stops the shell, and lets it stop.
func (s *shell) logPanic() {
	if p := recover(); p != nil {
		s.log.Error("a shell panicked", "actor", s.addr, "panic", p, "stack", string(debug.Stack()))
		panic(p)
	}
}
