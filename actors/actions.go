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
		deliver := s.factSender(c)
		s.cfg.Post.Append(s.ctx, a.Message.To, a.Data, func(_ uint64, err error) { deliver(activation.AnswerSent{Message: a.Message, Err: err}) })
	case activation.OwnReadBack:
		failpoint.At(failpoint.OwnRead, a.ID)
	case activation.Later:
		deliver := s.factSender(c)
		time.AfterFunc(a.Pause, func() { deliver(a.Fact) })
	case activation.PublishEvents:
		for _, e := range activation.EventsOf(s.addr, a.Parent, s.cfg.Name, a.N, a.Stamp, a.Events) {
			s.cfg.OnEvent(e)
		}
	case activation.PublishRestart:
		s.cfg.OnEvent(a.Event(s.addr, s.cfg.Name))
	case activation.PublishState:
		if s.cfg.OnRunChanged != nil {
			s.cfg.OnRunChanged(s.addr.Run(), a.Place, a.State)
		}
	case activation.PublishResult:
		if s.cfg.OnResult != nil {
			s.cfg.OnResult(s.addr.Run(), a.Result)
		}
	case activation.Warn:
		s.log.Warn(a.Text, a.Args...)
	case activation.Fail:
		s.failShell(c, a)
	default:
		if !s.carryOutWork(c, action) {
			s.notifyRouter(c, action)
		}
	}
}

// notifyRouter sends the router the message of each Report action.
func (s *shell) notifyRouter(c actor.Context, action activation.Action) {
	switch a := action.(type) {
	case activation.ReportSuperseded:
		c.Send(s.router, shellSuperseded{s.addr, c.Self()})
	case activation.ReportGone:
		c.Send(s.router, shellGone{s.addr, c.Self()})
	case activation.ReportLogEnded:
		c.Send(s.router, logEnded{s.addr, a.Place})
	case activation.ReportPassivated:
		c.Send(s.router, shellPassivated{s.addr, c.Self(), a.Place, a.Due})
	case activation.ReportHopeless:
		c.Send(s.router, actorHopeless{s.addr, a.Why})
	case activation.ReportNewerLog:
		c.Send(s.router, newerLog{s.addr, a.Why})
	case activation.ReportEntriesTaken:
		c.Send(s.router, entriesTaken{s.addr, c.Self(), a.Entries})
	case activation.ReportReachedTail:
		c.Send(s.router, reachedTail{s.addr, c.Self(), a.Place})
	default:
		panic(fmt.Sprintf("actors: unknown action %T", action))
	}
}

// factSender returns a function that delivers a fact to the activation, from any goroutine.
func (s *shell) factSender(c actor.Context) func(of any) {
	self, root := c.Self(), c.ActorSystem().Root
	return func(of any) { root.Send(self, factMessage{of}) }
}

// resultSender returns a function that delivers a result by way of the router, which outlives this
// shell.
func (s *shell) resultSender(c actor.Context) func(activation.OwnResult) {
	router, root := s.router, c.ActorSystem().Root
	return func(o activation.OwnResult) { root.Send(router, o) }
}

// storeError returns mailbox.ErrClosed for any error once the node is stopping.
func storeError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", mailbox.ErrClosed, err)
	}
	return err
}

// appendClaim appends the claim. Its callback delivers the fact also if the append succeeded, because
// the activation must know the claim's place to read the log up to it.
func (s *shell) appendClaim(c actor.Context, a activation.AppendClaim) {
	deliver := s.factSender(c)
	failpoint.At(failpoint.ClaimBefore, string(s.addr))
	s.cfg.Post.Append(s.ctx, s.addr, a.Data, func(place uint64, err error) {
		failpoint.At(failpoint.ClaimAcked, string(s.addr))
		deliver(activation.ClaimAppended{Place: place, Err: err})
	})
}

// readLog reads the log up to the claim and compares this node with the task's Hashes, in a goroutine.
func (s *shell) readLog(c actor.Context, a activation.ReadLog) {
	deliver, at, post, ctx, differs := s.factSender(c), s.addr, s.cfg.Post, s.ctx, s.cfg.Differs
	go func() {
		var log []mailbox.Message
		err := post.Read(ctx, at, 0, a.Claim.Place, func(m mailbox.Message) error {
			log = append(log, m)
			return nil
		})
		var differences map[string]string
		if t, ok := activation.TaskOf(at, log); ok && err == nil && differs != nil && len(t.Hashes) > 0 {
			differences = differs(t)
		}
		deliver(activation.LogRead{Claim: a.Claim, Log: log, Differences: differences, Err: storeError(ctx, err)})
	}()
}

// errPart ends a read that has reached its limit.
var errPart = errors.New("actors: enough for one read")

// readTail reads at most catchUpMax entries, so that one read holds a bounded part of the log in memory;
// the activation asks for the rest.
func (s *shell) readTail(c actor.Context, a activation.ReadTail) {
	self, root := c.Self(), c.ActorSystem().Root
	at, post, ctx := s.addr, s.cfg.Post, s.ctx
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
		root.Send(self, logCaught{a.Through, log, storeError(ctx, err)})
	}()
}

// appendOwn appends an entry to the actor's own log. It reports only a failure: on success the activation reads the
// entry back.
func (s *shell) appendOwn(c actor.Context, a activation.AppendOwn) {
	deliver := s.factSender(c)
	failpoint.At(failpoint.OwnBefore, a.ID)
	s.cfg.Post.Append(s.ctx, s.addr, a.Data, func(_ uint64, err error) {
		failpoint.At(failpoint.OwnAcked, a.ID)
		if err != nil {
			deliver(activation.OwnFailed{Own: a.Own, Err: err})
		}
	})
	failpoint.At(failpoint.OwnSent, a.ID)
}

// sendMessages appends an entry with outbox messages to the log of their receiver, and reports the result.
func (s *shell) sendMessages(c actor.Context, a activation.SendMessages) {
	deliver, kind := s.factSender(c), a.Messages[0].Kind
	failpoint.At(failpoint.OutboxBefore, kind)
	s.cfg.Post.Append(s.ctx, a.To, a.Data, func(_ uint64, err error) {
		failpoint.At(failpoint.OutboxAcked, kind)
		deliver(activation.MessagesSent{To: a.To, Messages: a.Messages, Err: err})
	})
	failpoint.At(failpoint.OutboxSent, kind)
}

// failShell stops the shell, which cannot continue without its log. If the store has closed or the
// node is stopping, that is all. Otherwise it panics: the router starts another shell after a pause, at most
// CrashesMax times in a row, and then gives the actor up.
func (s *shell) failShell(c actor.Context, a activation.Fail) {
	if s.ctx.Err() != nil || errors.Is(a.Err, mailbox.ErrClosed) {
		c.Stop(c.Self())
		return
	}
	s.log.Error("cannot read or write log; restarting the actor", "actor", s.addr, "at", a.Doing, "error", a.Err)
	panic(a.Err)
}
