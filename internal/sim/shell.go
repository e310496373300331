package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// shell is the process side of an actor, as the real ones are: it owns a Life,
// reads on, does what the world is asked to do, and posts what comes of it.
type shell struct {
	actor  *actor
	start  string
	lease  uint64
	life   *life.Life
	agent  *life.Agent      // the machine, of an agent
	super  *life.Supervisor // or of a supervisor
	came   bool
	frozen bool
	lost   bool // it knows that its lease has run out
	// Before the entry that it reads now it had read a cancel, or had ended.
	canceled, ended bool
	dead            bool
	closing         bool // Closed is posted
	leaving         bool // it reads no more, and ends what it began
	released        bool // Released is posted
	resting         bool // … because it waits
	timers          []timer
	posted          int
	repeat          []life.Letter // to say once the log is closed
}

type timer struct {
	name string
	due  int64
}

// active: it does what a holder of the actor does.
func (sh *shell) active() bool {
	return !sh.dead && !sh.frozen && !sh.lost && (sh.life.Phase == life.Folding || sh.life.Phase == life.Alive)
}

// launch starts a shell: it claims, and reads the log from its start.
func (s *sim) launch(a *actor) *shell {
	s.nonces++
	sh := &shell{actor: a, start: fmt.Sprintf("S%d", s.nonces), lease: a.lease}
	var m life.Machine
	if a == s.super {
		sh.super = &life.Supervisor{Addr: a.addr}
		m = sh.super
	} else {
		sh.agent = &life.Agent{Addr: a.addr}
		m = sh.agent
	}
	sh.life = life.New(a.addr, sh.start, mailbox.Epoch{Lease: a.lease, Start: a.starts}, m)
	sh.life.Found = s.otherwise(a)
	a.shells = append(a.shells, sh)
	s.note("start %s %s epoch %d.%d", a.id, sh.start, a.lease, a.starts)
	s.claim(sh)
	return sh
}

func (s *sim) claim(sh *shell) {
	e, err := sh.life.Claim("node-"+sh.start, sh.life.Damage)
	if err != nil {
		s.fail("claim: %v", err)
	}
	s.send(sh, sh.actor.addr, s.encode(e), "resumed "+sh.start, false)
}

// takeover acquires the lease anew, as a node does that finds nobody there.
func (s *sim) takeover(a *actor) {
	s.leases++
	a.lease, a.starts = s.leases, 0
	s.launch(a)
}

// restart is a start under the same lease.
func (s *sim) restart(a *actor) {
	a.starts++  //mutant:restart-counts
	s.launch(a) //mutant:restart-launches
}

// post appends an own entry.
func (s *sim) post(sh *shell, kind, key string, body any) {
	e, err := sh.life.Own(kind, key, body)
	var data []byte
	if err == nil {
		data, err = mailbox.Encode(e)
	}
	if err != nil { // as the shells do: what does not fit is replaced, once
		s.reach.hit(Replaced)
		small, instead := life.Smaller(kind, body)
		if e, err = sh.life.Own(small, key, instead); err != nil {
			s.fail("own %s: %v", small, err)
		}
		kind, data = small, s.encode(e)
	}
	s.send(sh, sh.actor.addr, data, fmt.Sprintf("%s %s of %s", kind, key, sh.start), false)
}

// earlyOdds is how often a retry's timer fires at once where clocks run ahead.
const earlyOdds = 40

// raceOdds is how often a cancel is aimed at a Delegate that has just gone out,
// or at a call that waits for its next attempt.
const raceOdds = 5

func (s *sim) send(sh *shell, to mailbox.Address, data []byte, name string, letter bool) {
	if letter {
		for _, f := range s.flights {
			if f.from == sh && f.to == to && f.letter {
				s.fail("%s has two flights to %s", sh.start, to)
			}
		}
	}
	s.flights = append(s.flights, &flight{from: sh, to: to, data: data, name: name, letter: letter})
	if letter && !s.quiet && s.on(Cancel) && s.delegating() == sh.actor.id && s.percent(raceOdds) {
		s.cancel()
	}
}

// read reads the next entry of the log.
func (s *sim) read(sh *shell) {
	m := sh.actor.log[sh.life.N]
	phase := sh.life.Phase
	if sh.agent != nil {
		sh.canceled, sh.ended = sh.agent.State.Cancel != nil, sh.agent.State.Phase == agent.Done
	}
	r := sh.life.Next(m)
	s.note("read %s %s #%d", sh.actor.id, sh.start, sh.life.N)
	s.answerAfterEnd(sh, r)
	s.compare(sh)
	if r.Reclaim {
		if sh.life.Damage == "" && len(sh.life.Found) == 0 {
			s.reach.hit(Reclaimed)
		}
		s.note("claim again %s %s", sh.start, sh.life.Damage)
		s.claim(sh)
	}
	if r.Came {
		sh.came = true
		s.post(sh, "checkpoint", "come", agent.Checkpoint{})
	}
	switch sh.life.Phase {
	case life.Silent:
		if phase != life.Silent {
			s.hush(sh)
		}
		return
	case life.Closed:
		if sh.life.N == uint64(len(sh.actor.log)) {
			s.kill(sh)
		}
		return
	}
	for _, w := range r.World {
		s.perform(sh, w)
	}
	s.pump(sh, false)
	if sh.life.CheckpointDue() {
		s.reach.hit(CheckpointPosted)
		sh.posted++
		s.post(sh, "checkpoint", fmt.Sprint(sh.posted), agent.Checkpoint{})
	}
}

// pump puts letters on their way, and closes the log when all is said.
func (s *sim) pump(sh *shell, held bool) {
	if sh.life.Phase != life.Alive || sh.lost || sh.leaving {
		return
	}
	for {
		to, letters, ok := sh.life.Outbox.Take(held)
		if !ok {
			break
		}
		name := ""
		for _, t := range letters {
			name += fmt.Sprintf(" %s(%d,%d)", t.Kind, t.N, t.I)
		}
		s.send(sh, to, s.encode(sh.life.Post(letters)), sh.start+" says"+name, true)
	}
	if sh.life.MayClose() && !sh.closing {
		sh.closing = true
		last, err := sh.life.Closing()
		if err != nil {
			s.fail("close: %v", err)
		}
		s.post(sh, "closed", "end", last)
	}
}

// hush silences a shell: nothing of it is sent again, and of what it does in
// the world only what a tool returns is still posted.
func (s *sim) hush(sh *shell) {
	s.note("silent %s", sh.start)
	sh.timers = nil
	s.drop(sh)
	s.quitGate(sh)
	var lost []*run
	s.runs = slices.DeleteFunc(s.runs, func(r *run) bool {
		if r.shell == sh && r.lease != 0 {
			s.bill(r)
			lost = append(lost, r)
		}
		return r.shell == sh && (r.lease != 0 || r.hooks != nil)
	})
	s.givenUp(lost)
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

// kill ends a shell and all that its process had in hand.
func (s *sim) kill(sh *shell) {
	s.drop(sh)
	sh.dead = true
	s.quitGate(sh)
	var lost []*run
	s.runs = slices.DeleteFunc(s.runs, func(r *run) bool {
		if r.shell != sh {
			return false
		}
		if r.lease != 0 {
			s.bill(r)
			lost = append(lost, r)
		}
		return true
	})
	s.givenUp(lost)
	a := sh.actor
	a.shells = slices.DeleteFunc(a.shells, func(x *shell) bool { return x == sh })
}

// perform does one effect in the world.
func (s *sim) perform(sh *shell, effect any) {
	if !sh.came {
		s.fail("%s acts before it has read its own Resumed: %T", sh.start, effect)
	}
	if sh.lost {
		return
	}
	s.watchDiffering(sh, effect)
	switch e := effect.(type) {
	case agent.CallModel:
		s.callModel(sh, e)
	case agent.Begin:
		s.mayBegin(sh, "Begin "+e.Call)
		s.post(sh, "started", fmt.Sprintf("%s.%d", e.Call, e.Attempt), agent.Started{Call: e.Call, Attempt: e.Attempt, Life: sh.start})
	case agent.CallTool:
		s.callTool(sh, e)
	case agent.RunHooks:
		s.runHooks(sh, e)
	case agent.AbortHooks:
		s.abort(sh, func(r *run) bool { return r.hooks != nil && r.hooks.ID == e.ID })
	case agent.AwaitGate:
		s.ask(&ask{shell: sh, model: e.Model, pause: e.Pause})
	case agent.LeaveGate:
		s.leaveGate(sh)
	case agent.AbortModel:
		s.leaveGate(sh)
		s.abort(sh, func(r *run) bool { return r.lease == e.Lease })
	case agent.AbortTool:
		s.abort(sh, func(r *run) bool { return r.lease == 0 && r.call == e.Call })
	case agent.Arm:
		sh.arm(e.Timer, e.Due)
		if strings.HasPrefix(e.Timer, "retry-") && !s.quiet && s.on(Clock) && s.percent(earlyOdds) {
			s.fire(sh, len(sh.timers)-1) // on a clock that runs ahead
			return
		}
		if strings.HasPrefix(e.Timer, "retry-") && !s.quiet && s.on(Cancel) && s.percent(3*raceOdds) && s.cancels < cancelsMax {
			s.cancels++ // while a call waits for its next attempt
			s.command(sh.actor, "canceled", agent.Canceled{Why: "enough", Now: s.percent(50)})
		}
	case supervisor.Arm:
		sh.arm(e.Timer, e.Due)
	case supervisor.Disarm:
		sh.timers = slices.DeleteFunc(sh.timers, func(t timer) bool { return t.name == e.Timer })
	case supervisor.Publish:
		s.ledger.published++
		if s.ledger.published > 1 {
			s.fail("the run is published twice")
		}
	default:
		s.fail("unknown effect %T", effect)
	}
}

func (sh *shell) arm(name string, due int64) {
	sh.timers = slices.DeleteFunc(sh.timers, func(t timer) bool { return t.name == name })
	sh.timers = append(sh.timers, timer{name, due})
}

func (s *sim) abort(sh *shell, which func(*run) bool) {
	for _, r := range s.runs {
		if r.shell == sh && which(r) {
			r.aborted = true
		}
	}
}
