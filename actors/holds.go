package actors

import (
	"slices"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// A node begins things only for logs that it holds. The order of the log is
// what keeps two nodes from acting at once; that a node waits by itself while
// its lease is over is defence, and saves work (PROTOCOL P4). A lease that is
// over ends nothing: if nobody else has claimed the log by the time when this
// node holds it again, the shell goes on with what it began (P3).
type (
	// silent: the shell decides nothing more, though it may have tools under way.
	silent struct {
		at  mailbox.Address
		pid *actor.PID
	}
	// spent: work that a silent shell began has ended, and its result was
	// posted by the shell after it.
	spent struct{ start, key string }
	// certain: it is looked again whether postponed effects may be done.
	certain struct{}
	// unbegun: the lease had ended just before a call was to begin, so it did not.
	unbegun struct {
		start, key string
		effect     any
	}
)

// silentPause keeps two nodes that both believe in a lease, as after a sleep of
// the machine, from claiming a log in turns without a rest.
const silentPause = 200 * time.Millisecond

// silent makes room for another shell of an address. Where this node still
// holds the log there must be one: nobody else will wake it.
func (r *router) silent(c actor.Context, m silent) {
	p := r.shells[m.at]
	if p == nil || p.pid != m.pid {
		return
	}
	p.silent = true
	r.wakeLater(c, m.at)
}

// wakeLater has a log looked at again that this node holds, and whose shell has
// gone or is about to go.
func (r *router) wakeLater(c actor.Context, at mailbox.Address) {
	if _, ok := r.cfg.Holds(at); ok && r.leaves(at) == nil {
		self, root := c.Self(), c.ActorSystem().Root
		time.AfterFunc(silentPause, func() { root.Send(self, wake{at}) })
	}
}

// left ends a shell that has fallen silent, or was frozen, and has nothing under
// way. Its address may be taken again.
func (r *router) left(c actor.Context, m left) {
	c.Stop(m.pid)
	r.released(m.pid)
	if p := r.shells[m.at]; p != nil && p.pid == m.pid {
		r.vacate(m.at, p)
		r.wakeLater(c, m.at)
	} else if p != nil {
		p.without(m.pid)
	}
}

// vacate removes a place whose shell is gone. While an elder has work under way
// it has the place, so that somebody posts what that work brings.
func (r *router) vacate(at mailbox.Address, p *place) {
	if len(p.elders) == 0 {
		delete(r.shells, at)
		return
	}
	p.pid, p.silent = p.elders[0], true
	p.without(p.pid)
}

func (p *place) without(elder *actor.PID) {
	p.elders = slices.DeleteFunc(p.elders, func(e *actor.PID) bool { return e == elder })
}

// holds reports whether the shell may still try to act.
func (s *shell) holds() bool {
	_, ok := s.cfg.Holds(s.life.Addr)
	return ok
}

// mayBegin returns the check that is made just before a call begins (PROTOCOL P27):
// the lease must still hold, and be the one under which this activation was last
// seen to be in force. Between the decision and the call the process may have been
// frozen; if the lease was lost and taken again meanwhile, somebody else may have
// claimed the log in between, and that claim may not have been read yet. The check
// may be called from any goroutine.
func (s *shell) mayBegin() func() bool {
	holds, at, under := s.cfg.Holds, s.life.Addr, s.under
	return func() bool {
		lease, ok := holds(at)
		return ok && lease == under
	}
}

// sendUnbegun returns what tells the shell that a call did not begin.
func (s *shell) sendUnbegun(c actor.Context, key string, effect any) func() {
	self, root, start := c.Self(), c.ActorSystem().Root, s.life.Start
	return func() { root.Send(self, unbegun{start, key, effect}) }
}

// unbegun postpones a call that did not begin until the activation is proven again.
func (s *shell) unbegun(c actor.Context, m unbegun) {
	if m.start == s.life.Start {
		s.work.done(m.key)
		s.postpone(c, m.effect)
	}
	s.after(c)
}

// postpone keeps effects until the lease holds and the activation is proven.
func (s *shell) postpone(c actor.Context, effects ...any) {
	if s.life.Phase != life.Alive || s.leaving {
		return
	}
	if len(s.postponed) == 0 {
		s.later(c, certain{})
	}
	s.postponed = append(s.postponed, effects...)
}

// fallSilent makes the shell decide and begin nothing more. A model call is
// given up, for nobody would read its answer; a tool comes to its end, and what
// it returned is posted as evidence.
func (s *shell) fallSilent(c actor.Context) {
	s.life.Silence()
	if s.fell {
		return
	}
	s.fell, s.postponed = true, nil
	s.work.giveUp()
	s.leaveGate(c)
	c.Send(s.router, silent{s.life.Addr, c.Self()})
}

// spent notes the end of work whose result another shell has posted.
func (s *shell) spent(c actor.Context, m spent) {
	if m.start == s.life.Start {
		s.work.done(m.key)
	}
	s.after(c)
}

// idleForGood reports whether the shell is silent and has nothing under way.
func (s *shell) idleForGood() bool { return s.life.Phase == life.Silent && s.work.idle() }

// begin does effects, or postpones them while the lease is over.
func (s *shell) begin(c actor.Context, effects []any) {
	if len(effects) == 0 || s.leaving { // what never begins here, the next life begins
		return
	}
	if len(s.postponed) == 0 && s.mayBegin()() {
		for _, effect := range effects {
			s.do(c, effect)
		}
		return
	}
	s.postpone(c, effects...)
}

// certain looks whether the log is held again. Somebody else may have claimed it
// meanwhile, and that may not have been read yet: an entry of our own is sent
// after it, and what was postponed waits until that one has come round.
func (s *shell) certain(c actor.Context) {
	lease, held := s.cfg.Holds(s.life.Addr)
	switch {
	case len(s.postponed) == 0 || s.life.Phase != life.Alive:
	case !held:
		s.later(c, certain{})
	default:
		s.proving = lease
		w := s.own("checkpoint", "held-"+strconv.FormatUint(s.life.N, 10), agent.Checkpoint{})
		s.proof = s.id(w)
		s.append(c, w)
	}
}

// proven does what was postponed: nobody claimed the log before this place.
func (s *shell) proven(c actor.Context) {
	effects := s.postponed
	s.proof, s.postponed, s.under = "", nil, s.proving
	s.begin(c, s.withoutAborted(c, effects))
}

// withoutAborted removes tool calls that were aborted while they were postponed:
// they never begin, and the log says so.
func (s *shell) withoutAborted(c actor.Context, effects []any) []any {
	aborted := map[string]bool{}
	for _, effect := range effects {
		if e, ok := effect.(agent.AbortTool); ok {
			aborted[e.Call] = true
		}
	}
	return slices.DeleteFunc(effects, func(effect any) bool {
		e, ok := effect.(agent.CallTool)
		if !ok || !aborted[e.Call] {
			return false
		}
		s.append(c, s.own("returned", key(e.Call, e.Attempt), agent.Returned{Call: e.Call, Attempt: e.Attempt, Killed: true, Error: true,
			Text: "never began: it was aborted while the node did not hold the log"}))
		return true
	})
}
