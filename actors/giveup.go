package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// actorHopeless says that no shell of an actor gets through its log.
type actorHopeless struct {
	at  mailbox.Address
	why string
}

// Restarts of a shell that crashes.
const (
	crashPause  = 200 * time.Millisecond // doubled each time
	crashMemory = 10 * time.Minute       // crashes that far apart are not in a row
)

// countCrash counts a crash of a shell; hopeless reports whether there were more than CrashesMax in a row.
func (p *shellPlace) countCrash(now time.Time) (pause time.Duration, hopeless bool) {
	if now.Sub(p.crashed) > crashMemory {
		p.crashes = 0
	}
	p.crashed = now
	p.crashes++
	return crashPause << (p.crashes - 1), p.crashes > CrashesMax
}

// restartCrashed starts another shell after a pause, a bounded number of times.
func (r *router) restartCrashed(c actor.Context, pid *actor.PID) {
	known, ok := r.pids[pid.Id]
	at := known.at
	if !ok || r.ctx.Err() != nil {
		return
	}
	r.forgetShell(c, pid)
	p := r.shells[at]
	switch {
	case p == nil:
		return
	case p.pid == nil || p.pid.Id != pid.Id:
		p.dropSuperseded(pid)
		return
	case p.superseded, r.handOffOf(at) != nil:
		r.vacatePlace(c, at, p)
		return
	}
	p.pid = nil
	pause, hopeless := p.countCrash(time.Now())
	if hopeless {
		r.giveUpActor(c, actorHopeless{at, fmt.Sprintf("its shell crashed %d times in a row", p.crashes)})
		return
	}
	r.cfg.Logger.Error("shell crashed; restarting", "actor", at, "crashes", p.crashes, "after", pause)
	self, root := c.Self(), c.ActorSystem().Root
	time.AfterFunc(pause, func() { root.Send(self, restartShell{at}) })
}

// giveUpActor stops an actor whose shells keep failing, and notifies its supervisor by a command,
// because the actor itself can send nothing any more. If the actor is the supervisor, no
// actor is left that could decide: the run ends in its current state.
func (r *router) giveUpActor(c actor.Context, m actorHopeless) {
	p := r.shells[m.at]
	if p == nil {
		return
	}
	if p.pid != nil {
		c.Stop(p.pid)
		r.forgetShell(c, p.pid)
		p.pid = nil
	}
	r.postLate(c, p.results)
	p.results = nil
	r.cfg.Logger.Error("actor given up", "actor", m.at, "why", m.why)
	if m.at.Agent() == mailbox.Super {
		r.publishHalt(m)
		return
	}
	f := supervisor.GivenUp{Agent: spec.ID(m.at.Agent()), Why: m.why}
	data, err := encodeCommand(fmt.Sprintf("given_up.%s.%d-%d", m.at.Agent(), p.lease, p.starts), f.Kind(), f)
	if err != nil {
		r.cfg.Logger.Error("cannot notify supervisor of a given-up actor", "actor", m.at, "error", err)
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	r.cfg.Post.Append(r.ctx, mailbox.At(m.at.Run(), mailbox.Super), data, func(_ uint64, err error) {
		switch {
		case errors.Is(err, mailbox.ErrFull):
			time.AfterFunc(activation.RetryPause, func() { root.Send(self, m) })
		case err != nil && !errors.Is(err, mailbox.ErrClosed):
			r.cfg.Logger.Error("cannot notify supervisor of a given-up actor", "actor", m.at, "error", err)
		}
	})
}

// publishHalt publishes the end of a run without a supervisor. The end is in no log, because no
// actor is left to read it.
func (r *router) publishHalt(m actorHopeless) {
	result := supervisor.State{Phase: supervisor.Over, Run: supervisor.Opened{Run: m.at.Run()},
		Outcome: spec.Outcome{Reason: spec.ResumeUnsafe, Partial: true, Detail: m.why}}.Result()
	if r.cfg.OnEvent != nil {
		r.cfg.OnEvent(activation.NewPublished(time.Now().UnixMilli(), event.Published{ID: string(m.at.Bare()) + "#given_up", Run: m.at.Run(),
			Agent: m.at.Agent(), Node: r.cfg.Name, Kind: event.KindRunFinished, Data: result}))
	}
	if r.cfg.OnResult != nil {
		r.cfg.OnResult(m.at.Run(), result)
	}
}
