package sim

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// shell is the part of an actor in one process: an activation, driven by the same Step as
// the shells of package actors, and what its node knows. It carries actions out in the
// world and the logs of the simulator.
type shell struct {
	actor  *actor
	start  string
	lease  uint64
	state  activation.State
	came   bool // it has been active
	frozen bool
	lost   bool // its node knows that its lease has run out
	proven int  // entries that it must read before it may begin anything: see regain
	// Set if, before the entry that it reads now, the shell had read a cancel, had ended, or had
	// postponed effects.
	canceled, ended, postponing bool
	dead                        bool
	timers                      []timer
	inbox                       []any // facts to learn
	learning                    bool

	tail     int                  // entries of the log that the tail has sent, or never will
	detached bool                 // the tail sends nothing
	claim    *activation.ReadLog  // it reads its log
	part     *activation.ReadTail // it reads the entries that the tail did not send
}

// timer is a timer of the machine, or a fact that follows after a pause.
type timer struct {
	name string
	due  int64
	fact any
}

// reader returns the reader of the activation.
func (sh *shell) reader() *activation.LogReader { return sh.state.Reader }

// active reports whether the shell acts as the holder of the actor.
func (sh *shell) active() bool {
	return !sh.dead && !sh.frozen && !sh.lost && sh.reader().Phase != activation.Superseded
}

// leaving reports whether the shell drains or passivates.
func (sh *shell) leaving() bool {
	stage := sh.state.Stage()
	return stage == activation.Draining || stage == activation.Passivating
}

// launch starts a shell: it claims, and reads the log from its start. The tail sends it
// the entries that are appended from now on.
func (s *sim) launch(a *actor) *shell {
	s.nonces++
	sh := &shell{actor: a, start: fmt.Sprintf("S%d", s.nonces), lease: a.lease, tail: len(a.log)}
	sh.state = activation.New(a.addr, sh.start, mailbox.Epoch{Lease: a.lease, Start: a.starts}, "node-"+sh.start, false)
	sh.state.StartsMax = startsMax
	a.shells = append(a.shells, sh)
	s.note("start %s %s epoch %d.%d", a.id, sh.start, a.lease, a.starts)
	s.learn(sh, activation.Activate{})
	return sh
}

// startsMax is higher than any seed reaches: no actor is given up.
const startsMax = 1 << 30

// takeover acquires a new lease, as a node does that finds no holder.
func (s *sim) takeover(a *actor) {
	s.leases++
	a.lease, a.starts = s.leases, 0
	s.launch(a)
}

// restart starts a new activation under the same lease.
func (s *sim) restart(a *actor) {
	a.starts++  //mutant:restart-counts
	s.launch(a) //mutant:restart-launches
}

// learn makes an activation decide about a fact, and about the facts that follow at once.
func (s *sim) learn(sh *shell, fact any) {
	sh.inbox = append(sh.inbox, fact)
	if sh.learning {
		return
	}
	sh.learning = true
	for len(sh.inbox) > 0 && !sh.dead {
		next := sh.inbox[0]
		sh.inbox = sh.inbox[1:]
		s.stepFact(sh, next)
	}
	sh.learning = false
}

// stepFact steps one fact and carries out the resulting actions.
func (s *sim) stepFact(sh *shell, fact any) {
	phase, read := sh.reader().Phase, sh.reader().N
	if sh.state.Agent != nil {
		st := &sh.state.Agent.State
		sh.canceled, sh.ended = st.Cancel != nil, st.Phase == agent.Done
	}
	sh.postponing = sh.state.IsPostponing()
	var actions []activation.Action
	sh.state, actions = activation.Step(sh.state, activation.Event{Now: s.now, Lease: sh.lease, Held: !sh.lost, Fact: fact})
	if sh.reader().N > read {
		s.note("read %s %s #%d", sh.actor.id, sh.start, sh.reader().N)
		s.compare(sh)
	}
	if phase != activation.Superseded && sh.reader().Phase == activation.Superseded {
		s.note("superseded %s", sh.start)
		s.drop(sh)
	}
	for _, action := range actions {
		if sh.dead {
			return
		}
		s.carryOut(sh, action)
	}
}

// done delivers the result of work.
func (s *sim) done(sh *shell, kind, key string, body any) {
	s.learn(sh, activation.WorkDone{Own: sh.state.Own(kind, key, body)})
}

// earlyOdds is how often a retry's timer fires at once where clocks run ahead.
const earlyOdds = 40

// raceOdds is how often a cancel is aimed at a Delegate that has just gone out,
// or at a call that waits for its next attempt.
const raceOdds = 5

func (s *sim) send(f *flight) {
	sh := f.from
	if f.messages != nil {
		for _, o := range s.flights {
			if o.from == sh && o.to == f.to && o.messages != nil {
				s.fail("%s has two flights to %s", sh.start, f.to)
			}
		}
	}
	s.flights = append(s.flights, f)
	if f.messages != nil && !s.quiet && s.on(Cancel) && s.delegating() == sh.actor.id && s.percent(raceOdds) {
		s.cancel()
	}
}

// drop ends the flights of a shell: each may still land as a ghost.
func (s *sim) drop(sh *shell) {
	s.flights = slices.DeleteFunc(s.flights, func(f *flight) bool {
		if f.from != sh {
			return false
		}
		if !s.quiet && f.landed == 0 && s.on(Ghost) && s.percent(50) {
			s.ghosts = append(s.ghosts, ghost{f.to, f.data, f.name})
		}
		return true
	})
}

// kill ends a shell and all work of its process.
func (s *sim) kill(sh *shell) {
	s.drop(sh)
	sh.dead = true
	s.quitGate(sh)
	s.giveUpRuns(func(r *run) bool { return r.shell == sh })
	a := sh.actor
	a.shells = slices.DeleteFunc(a.shells, func(x *shell) bool { return x == sh })
}

// giveUpRuns ends work whose result no shell will receive.
func (s *sim) giveUpRuns(which func(*run) bool) {
	var lost []*run
	s.runs = slices.DeleteFunc(s.runs, func(r *run) bool {
		if !which(r) {
			return false
		}
		if r.lease != 0 {
			s.bill(r)
			lost = append(lost, r)
		}
		return true
	})
	s.givenUp(lost)
}
