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
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// callModel makes one attempt under the reservation, when the throttle admits it.
func (s *shell) callModel(c actor.Context, e agent.CallModel, p activation.Perform) {
	k := p.Key
	a := &modelAttempt{call: e, key: k, result: s.state.OwnResult("replied", k, nil), deliver: s.resultSender(c), find: s.cfg.Model, blobs: s.cfg.Blobs, run: s.state.Agent.State.Task.Run,
		caller: s.callerOf(e), emit: s.streamDeltas(e), counts: s.state.Agent.State.Counts(), mayBegin: s.mayBegin(p.Lease)}
	a.ctx = s.work.beginWork(s.ctx, k)
	c.Send(s.cfg.keeper, throttleRequest{name: s.cfg.ThrottleOf(e.Model), rates: s.cfg.Rates(e.Model), priority: throttle.Priority(s.state.Agent.State.Task.Priority), at: s.addr, start: s.start, call: string(s.addr) + "!" + s.start + "." + k,
		tokens: s.state.Agent.State.Estimate() + e.Request.MaxOutput, begin: a.begin, // the throttle corrects it when the answer is known
		refuse: func(afterMS int64, why throttle.CallOutcome) { a.bar(afterMS, string(why)) }})
}

// modelAttempt is one attempt of a model call.
type modelAttempt struct {
	ctx      context.Context
	call     agent.CallModel
	key      string
	result   activation.OwnResult
	deliver  func(activation.OwnResult)
	find     func(model string) (model.Client, string, error)
	blobs    mailbox.Blobs
	run      string
	caller   model.Caller
	emit     func(model.Delta)
	counts   bool // the tokens of the reply
	mayBegin func() bool

	reply model.Reply
	err   error
}

// begin makes the attempt. Its goroutine waits for the model as long as that takes: what its frame and that of complete
// hold is part of the memory of each agent that waits, so the reply is judged by a function of its own.
func (a *modelAttempt) begin(streams func()) callVerdict {
	began := time.Now()
	if !a.complete(streams) {
		a.bar(0, "not begun")
		return callVerdict{as: throttle.Neutral}
	}
	return a.report(time.Since(began).Milliseconds())
}

// complete calls the model. It reports whether the attempt has begun.
//
//go:noinline
func (a *modelAttempt) complete(streams func()) bool {
	if !a.mayBegin() || a.ctx.Err() != nil { // the call may have waited long for its turn
		return false
	}
	client, name, err := a.find(a.call.Model)
	if err != nil {
		a.err = err
		return true
	}
	req := a.call.Request
	req.Model, req.Caller = name, a.caller
	if req.Messages, a.err = attachMedia(a.ctx, a.blobs, a.run, req.Messages); a.err != nil {
		return true
	}
	if !a.mayBegin() { // reading the blobs may have taken longer than the lease lasted
		return false
	}
	failpoint.At(failpoint.ModelBefore, a.key)
	a.completeCall(client, req, emitFirst(streams, a.emit))
	failpoint.At(failpoint.ModelAfter, a.key)
	return true
}

// report delivers the outcome to the agent, and returns what it says about the throttle.
//
//go:noinline
func (a *modelAttempt) report(took int64) callVerdict {
	v := judgeAttempt(a.reply, a.err)
	reply, dropped := activation.TruncateReply(a.reply)
	if isEnding(a.ctx) {
		return v
	}
	w := a.result
	if a.err == nil {
		f := agent.Replied{Reservation: a.call.Reservation, Reply: reply, TookMS: took, Dropped: dropped}
		if a.counts {
			f.Tokens = tokens.Message(reply.Message)
		}
		w.Body = f
	} else {
		w.Kind, w.Body = "failed", failedFact(a.ctx, a.call.Reservation, reply, a.err, took)
	}
	a.deliver(w)
	return v
}

// bar reports that the attempt did not begin.
func (a *modelAttempt) bar(afterMS int64, why string) {
	if isEnding(a.ctx) {
		return
	}
	w := a.result
	w.Kind, w.Body = "throttled", agent.Throttled{Reservation: a.call.Reservation, AfterMS: afterMS, Why: why}
	a.deliver(w)
}

// callerOf returns the agent whose turn a model call is.
func (s *shell) callerOf(e agent.CallModel) model.Caller {
	if e.Purpose != agent.ForTurn {
		return model.Caller{}
	}
	t := s.state.Agent.State.Task
	return model.Caller{ID: string(t.ID), Name: t.Name, Node: s.cfg.Name}
}

// isEnding reports whether the node is stopping or the shell is superseded. The work that it
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
	c.Send(s.cfg.keeper, throttleRequest{name: s.cfg.ThrottleOf(e.Model), rates: s.cfg.Rates(e.Model), priority: throttle.Priority(s.state.Agent.State.Task.Priority), at: s.addr, start: s.start, tokens: e.Tokens, admit: func() { deliver(w) }})
}

// leaveThrottle withdraws all requests of this activation from the throttles.
func (s *shell) leaveThrottle(c actor.Context) { c.Send(s.cfg.keeper, withdrawal{s.addr, s.start}) }

// errPanic says that a model client crashed: one attempt of one agent failed. The cost of
// that attempt is unknown.
var errPanic = errors.New("actors: the model client panicked")

func (a *modelAttempt) completeCall(client model.Client, req model.Request, emit func(model.Delta)) {
	defer func() {
		if p := recover(); p != nil {
			a.reply, a.err = model.Reply{}, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	a.reply, a.err = client.Complete(a.ctx, req, emit)
	if !a.reply.Usage.InRange() { // as one that was not reported: the whole reservation is spent
		a.reply.Usage, a.reply.UsageKnown = model.Usage{}, false
	}
}
