package actors

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// latePosted says that a result of a tool without a shell was appended, or why not. A tool
// may return when its actor has no shell: the shell that began the call crashed, and no other
// starts, because the log is handed off or the actor is given up. The tool's result is
// evidence, and any process may post it (PROTOCOL P4), so the router posts it.
type latePosted struct {
	own activation.OwnResult
	err error
}

// postLate appends the results that waited for a shell. A hand-off waits for them.
func (r *router) postLate(c actor.Context, results []activation.OwnResult) {
	for _, o := range results {
		id, data, err := activation.EncodeEvidence(o)
		if id == "" {
			continue // a later activation decides the outcome of a model call
		}
		if l := r.handOffOf(o.At); l != nil {
			l.waits[id] = struct{}{}
		}
		self, root := c.Self(), c.ActorSystem().Root
		if err != nil {
			root.Send(self, latePosted{o, err})
			continue
		}
		r.cfg.Post.Append(r.ctx, o.At, data, func(_ uint64, err error) { root.Send(self, latePosted{o, err}) })
	}
}

// latePosted takes note that a result is in the log, or appends it again if there was no
// room.
func (r *router) latePosted(c actor.Context, m latePosted) {
	switch {
	case errors.Is(m.err, mailbox.ErrFull) && r.ctx.Err() == nil:
		self, root := c.Self(), c.ActorSystem().Root
		time.AfterFunc(activation.RetryPause, func() { root.Send(self, lateAgain{m.own}) })
		return
	case m.err != nil && !errors.Is(m.err, mailbox.ErrClosed):
		r.cfg.Logger.Error("what a tool returned was not appended", "actor", m.own.At, "call", m.own.Key, "error", m.err)
	}
	id, _, _ := activation.EncodeEvidence(m.own)
	for _, l := range r.handOffs {
		if _, waits := l.waits[id]; waits {
			delete(l.waits, id)
			l.checkDone()
		}
	}
}

// lateAgain says that the pause before the next attempt is over.
type lateAgain struct{ own activation.OwnResult }
