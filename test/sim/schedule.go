package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
)

type actKind uint8

const (
	actRead   actKind = iota // a shell reads its next entry
	actLand                  // an append reaches its log
	actAck                   // its sender receives the acknowledgement
	actGhost                 // a late copy lands
	actRun                   // a model or a tool comes to its end
	actTimer                 // a timer is due
	actStart                 // a node takes an actor over
	actAnswer                // a person answers
	actThaw                  // a frozen shell continues
	actEnough                // a person who answers no question ends the run
	actGate                  // a gate is checked
	actSpeak                 // a person sends a message to an agent that waits for children
	actRest                  // a waiting shell passivates
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
				w = seldom // the entries of a silent shell come late
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
		if sh.mayRead() {
			add(action{kind: actRead, weight: usual, shell: sh})
		}
		if s.mayRest(sh) {
			add(action{kind: actRest, weight: seldom, shell: sh})
		}
		for i, t := range sh.timers {
			switch _, proves := t.fact.(activation.ProveLease); {
			case t.due <= s.now:
				add(action{kind: actTimer, weight: usual, shell: sh, i: i})
			case proves && !s.quiet: // a process that was frozen finds all its timers due
				add(action{kind: actTimer, weight: seldom, shell: sh, i: i})
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
				add(action{kind: actEnough, weight: rare, actor: a})
			}
		case s.quiet || s.permille(s.patience):
			add(action{kind: actAnswer, weight: usual, actor: a})
		}
	}
}

// spokenMax is how often a person sends a message to an agent that waits for children.
const spokenMax = 2

// idles reports whether the agent waits for children in the background.
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
	case actAnswer:
		s.answer(a.actor)
	case actThaw:
		s.thaw(a.shell)
	case actGate:
		name, _, _ := s.gateDue()
		s.stepGate(name, throttle.Ticked{At: s.now})
	case actRest:
		s.learn(a.shell, activation.Passivate{})
	case actSpeak:
		s.spoken++
		s.command(a.actor, "steered", agent.Steered{Text: "how far is it?"})
	case actEnough:
		to := s.super
		if to.closed && to.hurt { // its log lost the agent: the control service cancels that itself
			to = a.actor
		}
		s.command(to, "canceled", agent.Canceled{Why: "nobody answers"})
	}
}

// land puts a flight into its log. Its acknowledgement may be lost, then the
// same bytes come again; and it may fail before it has landed.
func (s *sim) land(f *flight) {
	if !s.quiet && s.on(Failing) && s.percent(8) {
		s.note("append fails, to be tried again: %s", f.name) //mutant:gives-up-sending
		return
	}
	if !s.quiet && s.on(Failing) && s.percent(fullOdds) {
		s.note("the store is full: %s", f.name)
		s.endFlight(f, mailbox.ErrFull)
		return
	}
	f.landed++
	if f.landed == 2 {
		s.reach.hit(LandedTwice)
	}
	s.append(f.to, f.data, f.name)
	f.place = s.byAddr[f.to].head()
	if !s.quiet && s.on(LostAck) && s.percent(15) {
		s.note("its acknowledgement is lost")
		return
	}
	f.acked = true
	if !s.quiet && s.on(Ghost) && s.percent(8) {
		s.ghosts = append(s.ghosts, ghost{f.to, f.data, f.name})
	}
}

// fullOdds is how often a store has no room for a while, in percent.
const fullOdds = 2

// ack lets the sender know that its entry is in the log.
func (s *sim) ack(f *flight) {
	s.note("ack to %s: %s", f.from.start, f.name)
	s.endFlight(f, nil)
}

// endFlight ends a flight.
func (s *sim) endFlight(f *flight, err error) {
	s.flights = slices.DeleteFunc(s.flights, func(x *flight) bool { return x == f })
	switch {
	case f.claim:
		s.learn(f.from, activation.ClaimAppended{Place: f.place, Err: err})
	case f.messages != nil:
		s.learn(f.from, activation.MessagesSent{To: f.to, Messages: f.messages, Err: err})
	case f.answer != nil:
		s.learn(f.from, activation.AnswerSent{Message: *f.answer, Err: err})
	case err != nil:
		s.learn(f.from, activation.OwnFailed{Own: *f.own, Err: err})
	}
}

// fire has a timer fire, or a fact come that had to wait.
func (s *sim) fire(sh *shell, i int) {
	t := sh.timers[i]
	sh.timers = slices.Delete(sh.timers, i, i+1)
	s.note("timer %s of %s", t.name, sh.start)
	if t.fact != nil {
		s.learn(sh, t.fact)
		return
	}
	_, unseen := sh.state.UnseenPool(t.name)
	s.learn(sh, activation.TimerFired{Timer: t.name, Served: unseen && !s.quiet && s.percent(20)})
}

// idle advances the time, because nothing else can happen.
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
			next, whose = &timer{name: "slow", due: a.slow}, nil
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
		next, whose = &timer{name: "gate of " + name, due: at}, nil
	}
	switch {
	case next == nil && s.waitsForPerson():
		return
	case next == nil && s.ledger.reused:
		// The counts of both sides are equal, and a message was taken for one that was read
		// before: nothing reveals that, so a user cancels the run.
		s.ledger.reused = false
		s.command(s.super, "canceled", agent.Canceled{Why: "nothing happens", Now: true})
		return
	case next == nil:
		s.fail("nothing can happen any more: %s", s.describe())
	case whose != nil && s.hangs(whose, next):
		s.fail("nothing happens until the timer %s of %s: %s", next.name, whose.actor.id, s.describe())
	}
	s.note("time passes until %s", next.name)
	s.now = max(s.now, next.due)
}

// hangs reports whether only the wall clock limit would end this wait, and the wait is not for a
// person. (A log that was spoiled may lose what was waited for.)
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
