package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/mailbox"
)

// carryOut carries out one action of the activation.
func (s *shell) carryOut(c actor.Context, action activation.Action) {
	switch a := action.(type) {
	case activation.AppendClaim:
		s.appendClaim(c, a)
	case activation.ReadLog:
		s.readLog(c, a)
	case activation.ReadTail:
		s.readTail(c, a)
	case activation.AppendOwn:
		s.appendOwn(c, a)
	case activation.SendMessages:
		s.sendMessages(c, a)
	case activation.SendAnswer:
		tell := s.tell(c)
		s.cfg.Post.Append(s.ctx, a.Message.To, a.Data, func(_ uint64, err error) { tell(activation.AnswerSent{Message: a.Message, Err: err}) })
	case activation.OwnReadBack:
		failpoint.At(failpoint.OwnRead, a.ID)
	case activation.Later:
		tell := s.tell(c)
		time.AfterFunc(a.Pause, func() { tell(a.Fact) })
	case activation.PublishNotes:
		for _, e := range activation.Tell(s.at, a.Parent, s.cfg.Name, a.N, a.At, a.Notes) {
			s.cfg.Events(e)
		}
	case activation.PublishResult:
		if s.cfg.Over != nil {
			s.cfg.Over(s.at.Run(), a.Result)
		}
	case activation.Warn:
		s.log.Warn(a.Text, a.Args...)
	case activation.Fail:
		s.fail(c, a)
	default:
		if !s.carryOutWork(c, action) {
			s.report(c, action)
		}
	}
}

// report tells the router the state of the activation.
func (s *shell) report(c actor.Context, action activation.Action) {
	switch a := action.(type) {
	case activation.ReportSuperseded:
		c.Send(s.router, silent{s.at, c.Self()})
	case activation.ReportGone:
		c.Send(s.router, left{s.at, c.Self()})
	case activation.ReportEnded:
		c.Send(s.router, ended{s.at, a.Place})
	case activation.ReportPassivated:
		c.Send(s.router, rested{s.at, c.Self(), a.Place, a.Due})
	case activation.ReportHopeless:
		c.Send(s.router, hopeless{s.at, a.Why})
	case activation.ReportForeign:
		c.Send(s.router, foreign{s.at, a.Why})
	case activation.ReportArrived:
		c.Send(s.router, taken{s.at, c.Self(), a.Entries})
	case activation.ReportLevel:
		c.Send(s.router, level{s.at, c.Self(), a.Place})
	default:
		panic(fmt.Sprintf("actors: unknown action %T", action))
	}
}

// tell returns a function that delivers a fact to the activation, from any goroutine.
func (s *shell) tell(c actor.Context) func(of any) {
	self, root := c.Self(), c.ActorSystem().Root
	return func(of any) { root.Send(self, fact{of}) }
}

// deliver returns a function that delivers a result by way of the router, which outlives this
// shell.
func (s *shell) deliver(c actor.Context) func(activation.Own) {
	router, root := s.router, c.ActorSystem().Root
	return func(o activation.Own) { root.Send(router, o) }
}

// storeError returns mailbox.ErrClosed for any error once the process ends.
func storeError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", mailbox.ErrClosed, err)
	}
	return err
}

func (s *shell) appendClaim(c actor.Context, a activation.AppendClaim) {
	tell := s.tell(c)
	failpoint.At(failpoint.ClaimBefore, string(s.at))
	s.cfg.Post.Append(s.ctx, s.at, a.Data, func(place uint64, err error) {
		failpoint.At(failpoint.ClaimAcked, string(s.at))
		tell(activation.ClaimAppended{Place: place, Err: err})
	})
}

// readLog reads the log up to the claim, outside the actor's goroutine.
func (s *shell) readLog(c actor.Context, a activation.ReadLog) {
	tell, at, post, ctx, differs := s.tell(c), s.at, s.cfg.Post, s.ctx, s.cfg.Differs
	go func() {
		var log []mailbox.Message
		err := post.Read(ctx, at, 0, a.Claim.Place, func(m mailbox.Message) error {
			log = append(log, m)
			return nil
		})
		var found map[string]string
		if t, ok := activation.TaskOf(at, log); ok && err == nil && differs != nil && len(t.Hashes) > 0 {
			found = differs(t)
		}
		tell(activation.LogRead{Claim: a.Claim, Log: log, Differences: found, Err: storeError(ctx, err)})
	}()
}

// errPart ends a read that has reached its limit.
var errPart = errors.New("actors: enough for one read")

func (s *shell) readTail(c actor.Context, a activation.ReadTail) {
	self, root := c.Self(), c.ActorSystem().Root
	at, post, ctx := s.at, s.cfg.Post, s.ctx
	go func() {
		var log []mailbox.Message
		err := post.Read(ctx, at, a.After, a.Through, func(e mailbox.Message) error {
			log = append(log, e)
			if len(log) == catchUpMax {
				return errPart
			}
			return nil
		})
		if errors.Is(err, errPart) {
			err = nil
		}
		root.Send(self, caught{a.Through, log, storeError(ctx, err)})
	}()
}

func (s *shell) appendOwn(c actor.Context, a activation.AppendOwn) {
	tell := s.tell(c)
	failpoint.At(failpoint.OwnBefore, a.ID)
	s.cfg.Post.Append(s.ctx, s.at, a.Data, func(_ uint64, err error) {
		failpoint.At(failpoint.OwnAcked, a.ID)
		if err != nil {
			tell(activation.OwnFailed{Own: a.Own, Err: err})
		}
	})
	failpoint.At(failpoint.OwnSent, a.ID)
}

func (s *shell) sendMessages(c actor.Context, a activation.SendMessages) {
	tell, kind := s.tell(c), a.Messages[0].Kind
	failpoint.At(failpoint.LetterBefore, kind)
	s.cfg.Post.Append(s.ctx, a.To, a.Data, func(_ uint64, err error) {
		failpoint.At(failpoint.LetterAcked, kind)
		tell(activation.MessagesSent{To: a.To, Messages: a.Messages, Err: err})
	})
	failpoint.At(failpoint.LetterSent, kind)
}

// fail stops the shell by a panic, because it cannot continue without its log; the router
// starts another shell after a pause.
func (s *shell) fail(c actor.Context, a activation.Fail) {
	if s.ctx.Err() != nil || errors.Is(a.Err, mailbox.ErrClosed) {
		c.Stop(c.Self())
		return
	}
	s.log.Error("a log is out of reach", "actor", s.at, "at", a.At, "error", a.Err)
	panic(a.Err)
}
