package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/model"
)

// callModel makes one attempt under the reservation, when the throttle admits it.
func (s *shell) callModel(c actor.Context, e agent.CallModel, p activation.Perform) {
	k := p.Key
	w := s.state.OwnResult("replied", k, nil)
	ctx, deliver := s.work.beginWork(s.ctx, k), s.resultSender(c)
	emit := s.streamDeltas(e)
	find, counts, mayBegin, at := s.cfg.Model, s.state.Agent.State.Counts(), s.mayBegin(p.Lease), s.addr
	blobs, run, caller := s.cfg.Blobs, s.state.Agent.State.Task.Run, s.callerOf(e)
	barred := func(afterMS int64, why string) {
		if isEnding(ctx) {
			return
		}
		w.Kind, w.Body = "barred", agent.Barred{Reservation: e.Reservation, AfterMS: afterMS, Why: why}
		deliver(w)
	}
	begin := func(streams func()) callVerdict {
		if !mayBegin() || ctx.Err() != nil { // the call may have waited long for its turn
			barred(0, "not begun")
			return callVerdict{as: throttle.Neutral}
		}
		began := time.Now()
		client, name, err := find(e.Model)
		var reply model.Reply
		if err == nil {
			req := e.Request
			req.Model, req.Caller = name, caller
			if req.Messages, err = attachMedia(ctx, blobs, run, req.Messages); err == nil {
				if !mayBegin() { // reading the blobs may have taken longer than the lease lasted
					barred(0, "not begun")
					return callVerdict{as: throttle.Neutral}
				}
				failpoint.At(failpoint.ModelBefore, k)
				reply, err = completeCall(ctx, client, req, emitFirst(streams, emit))
				failpoint.At(failpoint.ModelAfter, k)
			}
		}
		v := judgeAttempt(reply, err)
		took := time.Since(began).Milliseconds()
		reply, dropped := activation.TruncateReply(reply)
		if isEnding(ctx) {
			return v
		}
		if err == nil {
			f := agent.Replied{Reservation: e.Reservation, Reply: reply, TookMS: took, Dropped: dropped}
			if counts {
				f.Tokens = tokens.Message(reply.Message)
			}
			w.Body = f
		} else {
			w.Kind, w.Body = "failed", failedFact(ctx, e.Reservation, reply, err, took)
		}
		deliver(w)
		return v
	}
	c.Send(s.cfg.keeper, throttleRequest{door: s.cfg.ThrottleOf(e.Model), rates: s.cfg.Rates(e.Model), priority: throttle.Priority(s.state.Agent.State.Task.Priority), at: at, start: s.start, call: string(at) + "!" + s.start + "." + k,
		tokens: s.state.Agent.State.Estimate() + e.Request.MaxOutput, begin: begin, // the throttle corrects it when the answer is known
		refuse: func(afterMS int64, why throttle.CallOutcome) { barred(afterMS, string(why)) }})
}

// callerOf returns the agent whose turn a model call is.
func (s *shell) callerOf(e agent.CallModel) model.Caller {
	if e.Purpose != agent.ForTurn {
		return model.Caller{}
	}
	t := s.state.Agent.State.Task
	return model.Caller{ID: string(t.ID), Name: t.Name, Node: s.cfg.Name}
}

// isEnding reports whether the process is ending or the shell is superseded. The work that it
// began is lost, and the next activation records that.
func isEnding(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errAborted)
}

// emitFirst returns a callback that calls streams before the first delta.
func emitFirst(streams func(), emit func(model.Delta)) func(model.Delta) {
	began := false
	return func(d model.Delta) {
		if !began {
			began = true
			streams()
		}
		if emit != nil {
			emit(d)
		}
	}
}

// awaitThrottle queues at the throttle for the agent's turn, without a reservation.
func (s *shell) awaitThrottle(c actor.Context, e agent.AwaitThrottle) {
	w, deliver := s.state.OwnResult("admitted", fmt.Sprint(e.Pause), agent.Admitted{Pause: e.Pause}), s.resultSender(c)
	c.Send(s.cfg.keeper, throttleRequest{door: s.cfg.ThrottleOf(e.Model), rates: s.cfg.Rates(e.Model), priority: throttle.Priority(s.state.Agent.State.Task.Priority), at: s.addr, start: s.start, tokens: e.Tokens, admit: func() { deliver(w) }})
}

// leaveThrottle withdraws all requests of this activation from the throttles.
func (s *shell) leaveThrottle(c actor.Context) { c.Send(s.cfg.keeper, withdrawal{s.addr, s.start}) }

// errPanic says that a model client crashed: one attempt of one agent failed. The cost of
// that attempt is unknown.
var errPanic = errors.New("actors: the model client panicked")

func completeCall(ctx context.Context, client model.Client, req model.Request, emit func(model.Delta)) (reply model.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = model.Reply{}, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return client.Complete(ctx, req, emit)
}
