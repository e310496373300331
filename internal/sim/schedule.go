package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/gate"
)

type actKind uint8

const (
	actRead    actKind = iota // a shell reads its next entry
	actLand                   // an append reaches its log
	actAck                    // its sender hears of it
	actGhost                  // a late copy lands
	actRun                    // a model or a tool comes to its end
	actTimer                  // a timer is due
	actStart                  // somebody takes an actor over
	actLinger                 // letters that waited for company go
	actAnswer                 // a person answers
	actThaw                   // a frozen shell goes on
	actEnough                 // a person who answers nothing ends the run
	actGate                   // a gate is looked at
	actSpeak                  // a person speaks to who waits for children
	actRelease                // a shell that leaves has nothing under way any more
	actRest                   // a shell that waits goes
)

// action is one thing that may happen next.
type action struct {
	kind   actKind
	weight int
	shell  *shell
	actor  *actor
	flight *flight
	run    *run
	i      int
}

// Weights of actions: reading and landing are the common case, a frozen shell
// thaws late.
const (
	usual  = 20
	seldom = 3
	rare   = 1
)

// progress lets one of the things happen that may happen now.
func (s *sim) progress() {
	s.acts = s.acts[:0]
	total := 0
	add := func(a action) {
		total += a.weight
		s.acts = append(s.acts, a)
	}
	for _, a := range s.actors {
		s.offer(a, add)
	}
	for _, f := range s.flights {
		switch {
		case f.acked && !f.from.frozen:
			add(action{kind: actAck, weight: usual, flight: f})
		case !f.acked:
			add(action{kind: actLand, weight: usual, flight: f})
		}
	}
	for i := range s.ghosts {
		add(action{kind: actGhost, weight: rare, i: i})
	}
	for _, r := range s.runs {
		if !r.shell.frozen {
			w := usual / 2
			if r.aborted {
				w = usual
			} else if !r.shell.active() {
				w = seldom // what a silent shell brings comes late
			}
			add(action{kind: actRun, weight: w, run: r})
		}
	}
	if _, at, ok := s.gateDue(); ok && at <= s.now {
		add(action{kind: actGate, weight: usual})
	}
	if total == 0 {
		s.idle()
		return
	}
	n := s.IntN(total)
	for i := range s.acts {
		if n -= s.acts[i].weight; n < 0 {
			s.do(&s.acts[i])
			return
		}
	}
}

// offer lists what may happen at one actor.
func (s *sim) offer(a *actor, add func(action)) {
	active := false
	for _, sh := range a.shells {
		if sh.frozen {
			if !s.quiet {
				add(action{kind: actThaw, weight: rare, shell: sh})
			}
			continue
		}
		active = active || sh.active()
		if sh.leaving {
			if s.mayRelease(sh) {
				add(action{kind: actRelease, weight: usual, shell: sh})
			}
			continue
		}
		if sh.life.N < uint64(len(a.log)) && !(sh.lost && sh.life.Phase == life.Silent) {
			add(action{kind: actRead, weight: usual, shell: sh})
		}
		if sh.lost || sh.life.Phase != life.Alive {
			continue
		}
		if sh.life.Outbox.Held() {
			add(action{kind: actLinger, weight: seldom, shell: sh})
		}
		if s.mayRest(sh) {
			add(action{kind: actRest, weight: seldom, shell: sh})
		}
		for i, t := range sh.timers {
			if t.due <= s.now {
				add(action{kind: actTimer, weight: usual, shell: sh, i: i})
			}
		}
	}
	if !active && (!a.closed && s.wakes(a) || a.closed && a.spoken) && s.now >= a.slow {
		add(action{kind: actStart, weight: usual, actor: a})
	}
	if a.idles() && s.on(Steer) && !s.quiet && s.spoken < spokenMax {
		add(action{kind: actSpeak, weight: seldom, actor: a})
	}
	if st := a.shadow.agent; st != nil && st.State.Query.Query != "" && s.ledger.asked(a.id, st.State.Query.Query) < answersMax {
		switch {
		case s.on(Absent):
			if s.quiet {
				add(action{kind: actEnough, weight: rare})
			}
		case s.quiet || s.permille(s.patience):
			add(action{kind: actAnswer, weight: usual, actor: a})
		}
	}
}

// spokenMax is how often a person speaks to who waits for children.
const spokenMax = 2

// idles: it waits for children in the background.
func (a *actor) idles() bool { return a.shadow.agent != nil && a.shadow.agent.State.Idle }

// answersMax is how many answers people give to one query: they do not know
// that the first one is on its way.
const answersMax = 3

func (s *sim) do(a *action) {
	switch a.kind {
	case actRead:
		s.read(a.shell)
	case actLand:
		s.land(a.flight)
	case actAck:
		s.ack(a.flight)
	case actGhost:
		g := s.ghosts[a.i]
		s.ghosts = slices.Delete(s.ghosts, a.i, a.i+1)
		s.append(g.to, g.data, "ghost of "+g.name)
	case actRun:
		s.finishRun(a.run)
	case actTimer:
		s.fire(a.shell, a.i)
	case actStart:
		a.actor.spoken = false
		s.reachWake(a.actor)
		s.takeover(a.actor)
	case actLinger:
		s.note("linger is over for %s", a.shell.start)
		s.pump(a.shell, true)
	case actAnswer:
		s.answer(a.actor)
	case actThaw:
		s.thaw(a.shell)
	case actGate:
		name, _, _ := s.gateDue()
		s.stepGate(name, gate.Ticked{At: s.now})
	case actRelease:
		s.release(a.shell)
	case actRest:
		s.rest(a.shell)
	case actSpeak:
		s.spoken++
		s.command(a.actor, "steered", agent.Steered{Text: "how far is it?"})
	case actEnough:
		s.command(s.super, "canceled", agent.Canceled{Why: "nobody answers"})
	}
}

// land puts a flight into its log. Its acknowledgement may be lost, then the
// same bytes come again; and it may fail before it has landed.
func (s *sim) land(f *flight) {
	if !s.quiet && s.on(Failing) && s.percent(8) {
		s.note("append fails, to be tried again: %s", f.name) //mutant:gives-up-sending
		return
	}
	f.landed++
	if f.landed == 2 {
		s.reach.hit(LandedTwice)
	}
	s.append(f.to, f.data, f.name)
	if !s.quiet && s.on(LostAck) && s.percent(15) {
		s.note("its acknowledgement is lost")
		return
	}
	f.acked = true
	if !s.quiet && s.on(Ghost) && s.percent(8) {
		s.ghosts = append(s.ghosts, ghost{f.to, f.data, f.name})
	}
}

// ack lets the sender know that its entry is in the log.
func (s *sim) ack(f *flight) {
	s.note("ack to %s: %s", f.from.start, f.name)
	s.flights = slices.DeleteFunc(s.flights, func(x *flight) bool { return x == f })
	if f.letter {
		f.from.life.Outbox.Acked(f.to)
		s.pump(f.from, false)
	}
}

// fire posts that a timer is due.
func (s *sim) fire(sh *shell, i int) {
	t := sh.timers[i]
	sh.timers = slices.Delete(sh.timers, i, i+1)
	s.note("timer %s of %s", t.name, sh.start)
	sh.posted++
	s.post(sh, "woke", t.name+"."+itoa(sh.posted), agent.Woke{Timer: t.name})
}

// idle: nothing can happen but that time passes.
func (s *sim) idle() {
	if !s.quiet {
		for _, a := range s.actors {
			for _, sh := range a.shells {
				if sh.frozen {
					s.thaw(sh)
					return
				}
			}
		}
	}
	var next *timer
	var whose *shell
	for _, a := range s.actors {
		if a.slow > s.now && !a.closed && len(a.shells) == 0 && (next == nil || a.slow < next.due) {
			next, whose = &timer{"slow", a.slow}, nil
		}
		for _, sh := range a.shells {
			for i := range sh.timers {
				if t := &sh.timers[i]; next == nil || t.due < next.due {
					next, whose = t, sh
				}
			}
		}
		if t := s.alarm(a); t != nil && (next == nil || t.due < next.due) {
			next, whose = t, &shell{actor: a}
		}
	}
	if name, at, ok := s.gateDue(); ok && (next == nil || at < next.due) {
		next, whose = &timer{"gate of " + name, at}, nil
	}
	switch {
	case next == nil && s.waitsForPerson():
		return
	case next == nil:
		s.fail("nothing can happen any more: %s", s.describe())
	case whose != nil && s.hangs(whose, next):
		s.fail("nothing happens until the timer %s of %s: %s", next.name, whose.actor.id, s.describe())
	}
	s.note("time passes until %s", next.name)
	s.now = max(s.now, next.due)
}

// hangs: only the wall clock limit would end this wait, and it is not a
// person's. (A log that was spoiled may lose what was waited for.)
func (s *sim) hangs(sh *shell, t *timer) bool {
	if s.softMS > 0 || s.hurtAny() || t.name != "soft" && t.name != "hard" {
		return false
	}
	for _, a := range s.actors {
		if s.retriesAtRest(a) {
			return false
		}
		for _, other := range a.shells {
			// A provider may ask for a pause that is longer than the rest of a limit.
			if slices.ContainsFunc(other.timers, func(t timer) bool { return strings.HasPrefix(t.name, "retry") }) {
				return false
			}
		}
	}
	return !s.waitsForPerson()
}

func (s *sim) waitsForPerson() bool {
	for _, a := range s.actors {
		if st := a.shadow.agent; st != nil && st.State.Query.Query != "" && !a.closed {
			return true
		}
	}
	return false
}

func (s *sim) hurtAny() bool {
	for _, a := range s.actors {
		if a.hurt && !s.forged[a.addr] {
			return true
		}
	}
	return false
}

// answer is a person's decision about an open query.
func (s *sim) answer(a *actor) {
	q := a.shadow.agent.State.Query.Query
	decision := oneOf(s.dice, "approve", "skip", "text", "deny")
	s.ledger.ask(a.id, q)
	s.command(a, "answered", agent.Answered{Query: q, Decision: decision, Text: "it is done"})
}
