package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget/tokens"
	"github.com/troupe-run/troupe/gate"
	"github.com/troupe-run/troupe/model"
)

// callModel makes one attempt under the lease, when the gate lets it in.
func (s *shell) callModel(c actor.Context, e agent.CallModel) {
	k := leaseKey(e.Lease)
	w := s.own("replied", k, nil)
	ctx, deliver := s.work.begin(s.ctx, k), s.deliver(c)
	emit := s.deltas(e)
	find, counts, mayBegin, at := s.cfg.Model, s.agent.State.Counts(), s.mayBegin(), s.life.Addr
	blobs, run := s.cfg.Blobs, s.agent.State.Task.Run
	barred := func(afterMS int64, why string) {
		if ending(ctx) {
			return
		}
		w.kind, w.body = "barred", agent.Barred{Lease: e.Lease, AfterMS: afterMS, Why: why}
		deliver(w)
	}
	begin := func(streams func()) verdict {
		if !mayBegin() || ctx.Err() != nil { // it has waited for its turn
			barred(0, "not begun")
			return verdict{as: gate.Neutral}
		}
		began := time.Now()
		client, name, err := find(e.Model)
		var reply model.Reply
		if err == nil {
			req := e.Request
			req.Model = name
			if req.Messages, err = shown(ctx, blobs, run, req.Messages); err == nil {
				if !mayBegin() { // the blobs may have taken longer than the lease lasted
					barred(0, "not begun")
					return verdict{as: gate.Neutral}
				}
				reply, err = complete(ctx, client, req, first(streams, emit))
			}
		}
		v := told(reply, err)
		took := time.Since(began).Milliseconds()
		reply, dropped := life.TruncateReply(reply)
		if ending(ctx) {
			return v
		}
		if err == nil {
			f := agent.Replied{Lease: e.Lease, Reply: reply, TookMS: took, Dropped: dropped}
			if counts {
				f.Tokens = tokens.Message(reply.Message)
			}
			w.body = f
		} else {
			w.kind, w.body = "failed", failure(ctx, e.Lease, reply, err, took)
		}
		deliver(w)
		return v
	}
	c.Send(s.cfg.keeper, ask{door: s.cfg.Gate(e.Model), at: at, start: s.life.Start, call: string(at) + "!" + s.life.Start + "." + k,
		tokens: s.agent.State.Anchor.Tokens + e.Request.MaxOutput, begin: begin, // corrected by what is counted
		refuse: func(afterMS int64, why gate.Verdict) { barred(afterMS, string(why)) }})
}

// ending: the process is, or the shell has fallen silent. What was begun is lost,
// and the next life says so.
func ending(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errAborted)
}

// first calls streams before the first delta.
func first(streams func(), emit func(model.Delta)) func(model.Delta) {
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

// awaitGate waits for the agent's turn, without a lease.
func (s *shell) awaitGate(c actor.Context, e agent.AwaitGate) {
	w, deliver := s.own("admitted", fmt.Sprint(e.Pause), agent.Admitted{Pause: e.Pause}), s.deliver(c)
	c.Send(s.cfg.keeper, ask{door: s.cfg.Gate(e.Model), at: s.life.Addr, start: s.life.Start, tokens: e.Tokens, admit: func() { deliver(w) }})
}

// leaveGate: nothing that this life asks for is to be let in any more.
func (s *shell) leaveGate(c actor.Context) { c.Send(s.cfg.keeper, leave{s.life.Addr, s.life.Start}) }

// errPanic: a bug in a client is a failed attempt of one agent. Nobody knows
// what it cost.
var errPanic = errors.New("actors: the client of the model crashed")

func complete(ctx context.Context, client model.Client, req model.Request, emit func(model.Delta)) (reply model.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = model.Reply{}, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return client.Complete(ctx, req, emit)
}
