package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// hopeless says that no shell of an actor gets through its log.
type hopeless struct {
	at  mailbox.Address
	why string
}

// Restarts of a shell that crashes.
const (
	crashPause  = 200 * time.Millisecond // doubled each time
	crashMemory = 10 * time.Minute       // crashes that far apart are not in a row
)

// crash counts one: hopeless says that it is one too many in a row.
func (p *place) crash(now time.Time) (pause time.Duration, hopeless bool) {
	if now.Sub(p.crashed) > crashMemory {
		p.crashes = 0
	}
	p.crashed = now
	p.crashes++
	return crashPause << (p.crashes - 1), p.crashes > CrashesMax
}

// giveUp parks an actor whose shell cannot live, and says so to its supervisor:
// as a command, for the actor itself can say nothing any more. When it is the
// supervisor, nobody is left who could decide: the run is over as it stands.
func (r *router) giveUp(c actor.Context, m hopeless) {
	p := r.shells[m.at]
	if p == nil {
		return
	}
	if p.pid != nil {
		c.Stop(p.pid)
		r.released(p.pid)
		p.pid = nil
	}
	p.results = nil
	r.cfg.Logger.Error("an actor is given up", "actor", m.at, "why", m.why)
	if m.at.Agent() == mailbox.Super {
		r.halt(m)
		return
	}
	f := supervisor.GivenUp{Agent: agent.ID(m.at.Agent()), Why: m.why}
	data, err := command(fmt.Sprintf("given_up.%s.%d-%d", m.at.Agent(), p.lease, p.starts), f.Kind(), f)
	if err != nil {
		r.cfg.Logger.Error("a supervisor was not told", "actor", m.at, "error", err)
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	r.cfg.Post.Append(r.ctx, mailbox.At(m.at.Run(), mailbox.Super), data, func(_ uint64, err error) {
		switch {
		case errors.Is(err, mailbox.ErrFull):
			time.AfterFunc(repostPause, func() { root.Send(self, m) })
		case err != nil && !errors.Is(err, mailbox.ErrClosed):
			r.cfg.Logger.Error("a supervisor was not told", "actor", m.at, "error", err)
		}
	})
}

// halt tells of a run without a supervisor. It is in no log: nobody is left to
// read it.
func (r *router) halt(m hopeless) {
	result := supervisor.State{Phase: supervisor.Over, Run: supervisor.Opened{Run: m.at.Run()},
		Outcome: agent.Outcome{Reason: agent.ResumeUnsafe, Partial: true, Detail: m.why}}.Result()
	if r.cfg.Events != nil {
		r.cfg.Events(life.Event{V: 1, ID: string(m.at.Bare()) + "#given_up", TS: life.Stamp(time.Now().UnixMilli()), Run: m.at.Run(),
			Agent: m.at.Agent(), Node: r.cfg.Name, Kind: "run.finished", Data: result})
	}
	if r.cfg.Over != nil {
		r.cfg.Over(m.at.Run(), result)
	}
}
