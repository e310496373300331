package sim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
)

// scheduler draws what happens next among all that may happen now.
type scheduler struct {
	*environment
	population *population
	store      *logStore
	processes  *processes
	executor   *executor
	throttles  *throttles
	users      *users
	messages   *messageJudge
	coverage   *coverage
	acts       []nextAction
}

// mayPassivate reports whether a node may ask the shell to passivate. The activation decides.
// The shell itself must know that none of its work is under way in the world.
func (sc *scheduler) mayPassivate(sh *shell) bool {
	if !sc.isOn(faultRest) || sc.faultsEnded || !sh.isActive() || sh.state.Stage() != activation.Following || sh.lease != sh.actor.lease {
		return false
	}
	due, ok := sh.logReader().MayPassivate()
	if !ok || due != 0 && due <= sc.now {
		return false
	}
	// a shell that fails this check is behind its log
	if w := sh.actor.shadow.agent; w != nil && !asksPerson(&w.State) && !sh.state.HasUnread() {
		for _, c := range w.State.Calls {
			if c.Stage == agent.Retrying && (due == 0 || due > c.Due) {
				sc.fail(passivationIsSafe, "%s may rest until %d, and the next attempt of %s is due at %d", sh.start, due, c.ID, c.Due)
			}
		}
	}
	for _, r := range sc.executor.jobs {
		if r.shell == sh && !r.aborted && !sh.state.HasUnread() {
			sc.fail(passivationIsSafe, "%s may rest, and %s is under way", sh.start, cmp.Or(r.call, "its model"))
		}
	}
	return true
}

type actKind uint8

const (
	actRead     actKind = iota // a shell reads its next entry
	actLand                    // an append reaches its log
	actAck                     // its sender receives the acknowledgement
	actLateCopy                // a late copy lands
	actRun                     // a model or a tool comes to its end
	actTimer                   // a timer is due
	actStart                   // a node takes an actor over
	actAnswer                  // a person answers
	actThaw                    // a frozen shell continues
	actEnough                  // a person who answers no question ends the run
	actGate                    // a throttle is checked
	actSpeak                   // a person sends a message to an agent that waits for children
	actRest                    // a waiting shell passivates
)

// nextAction is one thing that may happen next.
type nextAction struct {
	kind   actKind
	weight int
	shell  *shell
	actor  *actor
	flight *pendingAppend
	run    *job
	i      int
}

// Weights of actions: reading and landing are the common case, a frozen shell
// thaws late.
const (
	usual  = 20
	seldom = 3
	rare   = 1
)

// runNext lets one of the things happen that may happen now.
func (sc *scheduler) runNext() {
	sc.acts = sc.acts[:0]
	total := 0
	add := func(a nextAction) {
		total += a.weight
		sc.acts = append(sc.acts, a)
	}
	for _, a := range sc.population.actors {
		sc.offerActions(a, add)
	}
	for _, f := range sc.store.pending {
		switch {
		case f.acked && !f.from.frozen:
			add(nextAction{kind: actAck, weight: usual, flight: f})
		case !f.acked:
			add(nextAction{kind: actLand, weight: usual, flight: f})
		}
	}
	for i := range sc.store.copies {
		add(nextAction{kind: actLateCopy, weight: rare, i: i})
	}
	for _, r := range sc.executor.jobs {
		if !r.shell.frozen {
			w := usual / 2
			if r.aborted {
				w = usual
			} else if !r.shell.isActive() {
				w = seldom // the entries of a silent shell come late
			}
			add(nextAction{kind: actRun, weight: w, run: r})
		}
	}
	if _, at, ok := sc.throttles.nextDue(); ok && at <= sc.now {
		add(nextAction{kind: actGate, weight: usual})
	}
	if total == 0 {
		sc.advanceTime()
		return
	}
	n := sc.IntN(total)
	for i := range sc.acts {
		if n -= sc.acts[i].weight; n < 0 {
			sc.executeAction(&sc.acts[i])
			return
		}
	}
}

// offerActions lists what may happen at one actor.
func (sc *scheduler) offerActions(a *actor, add func(nextAction)) {
	active := false
	for _, sh := range a.shells {
		if sh.frozen {
			if !sc.faultsEnded {
				add(nextAction{kind: actThaw, weight: rare, shell: sh})
			}
			continue
		}
		active = active || sh.isActive()
		if sh.mayRead() {
			add(nextAction{kind: actRead, weight: usual, shell: sh})
		}
		if sc.mayPassivate(sh) {
			add(nextAction{kind: actRest, weight: seldom, shell: sh})
		}
		for i, t := range sh.timers {
			switch _, proves := t.fact.(activation.ProveLease); {
			case t.due <= sc.now:
				add(nextAction{kind: actTimer, weight: usual, shell: sh, i: i})
			case proves && !sc.faultsEnded: // a process that was frozen finds all its timers due
				add(nextAction{kind: actTimer, weight: seldom, shell: sh, i: i})
			}
		}
	}
	if !active && (!a.closed && a.needsShell(sc.now) || a.closed && a.reopened) && sc.now >= a.slow {
		add(nextAction{kind: actStart, weight: usual, actor: a})
	}
	if a.isIdle() && sc.isOn(faultSteer) && !sc.faultsEnded && sc.users.messagesSent < spokenMax {
		add(nextAction{kind: actSpeak, weight: seldom, actor: a})
	}
	if st := a.shadow.agent; st != nil && asksPerson(&st.State) && sc.users.mayAnswer(a) {
		switch {
		case sc.isOn(faultAbsent):
			if sc.faultsEnded {
				add(nextAction{kind: actEnough, weight: rare, actor: a})
			}
		case sc.faultsEnded || sc.permille(sc.answerPermille):
			add(nextAction{kind: actAnswer, weight: usual, actor: a})
		}
	}
}

func (sc *scheduler) executeAction(a *nextAction) {
	switch a.kind {
	case actRead:
		sc.processes.readNext(a.shell)
	case actLand:
		sc.store.landAppend(a.flight)
	case actAck:
		sc.store.acknowledge(a.flight)
	case actLateCopy:
		g := sc.store.copies[a.i]
		sc.store.copies = slices.Delete(sc.store.copies, a.i, a.i+1)
		sc.store.appendEntry(g.to, g.data, "late copy of "+g.name)
	case actRun:
		sc.executor.finishJob(a.run)
	case actTimer:
		sc.processes.fireTimer(a.shell, a.i)
	case actStart:
		a.actor.reopened = false
		sc.coverage.noteReactivated(a.actor)
		sc.processes.takeOver(a.actor)
	case actAnswer:
		sc.users.answerQuery(a.actor)
	case actThaw:
		sc.processes.thawShell(a.shell)
	case actGate:
		name, _, _ := sc.throttles.nextDue()
		sc.throttles.stepLimiter(name, throttle.TimePassed{At: sc.now})
	case actRest:
		sc.processes.learnFact(a.shell, activation.Passivate{})
	case actSpeak:
		sc.users.messagesSent++
		sc.store.appendCommand(a.actor, "steered", agent.Steered{Text: "how far is it?"})
	case actEnough:
		to := sc.population.super
		if to.closed && to.damaged { // its log lost the agent: the control service cancels that itself
			to = a.actor
		}
		sc.store.appendCommand(to, "canceled", agent.Canceled{Why: "nobody answers"})
	}
}

// advanceTime advances the time, because nothing else can happen.
func (sc *scheduler) advanceTime() {
	if !sc.faultsEnded {
		for _, a := range sc.population.actors {
			for _, sh := range a.shells {
				if sh.frozen {
					sc.processes.thawShell(sh)
					return
				}
			}
		}
	}
	if sc.store.injector.releaseOthers() {
		return
	}
	var next *shellTimer
	var whose *shell
	for _, a := range sc.population.actors {
		if a.slow > sc.now && !a.closed && len(a.shells) == 0 && (next == nil || a.slow < next.due) {
			next, whose = &shellTimer{name: "slow", due: a.slow}, nil
		}
		for _, sh := range a.shells {
			for i := range sh.timers {
				if t := &sh.timers[i]; next == nil || t.due < next.due {
					next, whose = t, sh
				}
			}
		}
		if t := a.dueTimer(); t != nil && (next == nil || t.due < next.due) {
			next, whose = t, &shell{actor: a}
		}
	}
	if name, at, ok := sc.throttles.nextDue(); ok && (next == nil || at < next.due) {
		next, whose = &shellTimer{name: "gate of " + name, due: at}, nil
	}
	switch {
	case next == nil && (sc.population.awaitsUser() || sc.population.awaitsThaw()):
		return
	case next == nil && sc.messages.reused:
		// The counts of both sides are equal, and a message was taken for one that was read
		// before: nothing reveals that, so a user cancels the run.
		sc.messages.reused = false
		sc.cancelStuckRun()
		return
	case next == nil && sc.restartEndedActor():
		return
	case next == nil:
		sc.fail(runsEnd, "nothing can happen any more: %s", sc.population.describeActors())
	case whose != nil && sc.isHung(whose, next):
		sc.fail(runsEnd, "nothing happens until the timer %s of %s: %s", next.name, whose.actor.id, sc.population.describeActors())
	}
	sc.traceLine("time passes until %s", next.name)
	sc.now = max(sc.now, next.due)
}

// isHung reports whether only the wall clock limit would end this wait, and the wait is not for a
// person. (A damaged log may have lost what was waited for.)
func (sc *scheduler) isHung(sh *shell, t *shellTimer) bool {
	if sc.softMS > 0 || sc.population.anyDamaged() || t.name != "soft" && t.name != "hard" {
		return false
	}
	for _, a := range sc.population.actors {
		if a.awaitsRetry() {
			return false
		}
		for _, other := range a.shells {
			// A provider may ask for a pause that is longer than the rest of a limit.
			if slices.ContainsFunc(other.timers, func(t shellTimer) bool { return strings.HasPrefix(t.name, "retry") }) {
				return false
			}
		}
	}
	return !sc.population.awaitsUser() && !sc.population.awaitsThaw()
}

// cancelStuckRun cancels the run as a user does. If the log of the supervisor is closed, it reaches
// no agent, and the control service appends the cancel to the log of each
// (internal/control/damaged.go).
func (sc *scheduler) cancelStuckRun() {
	stuck := []*actor{sc.population.super}
	if sc.population.super.closed {
		stuck = slices.DeleteFunc(slices.Clone(sc.population.actors), func(a *actor) bool { return a.closed })
	}
	for _, a := range stuck {
		sc.store.appendCommand(a, "canceled", agent.Canceled{Why: "nothing happens", Now: true})
	}
}

// restartEndedActor restarts the shell of an actor with a damaged log, once, which has ended and not closed its log:
// a claim that found no room came after the end (docs/chaos.md).
func (sc *scheduler) restartEndedActor() bool {
	for _, a := range sc.population.actors {
		if a.damaged && !a.closed && !a.restarted && len(a.shells) > 0 && a.shells[0].logReader().MayClose() {
			a.restarted = true
			sc.processes.killShell(a.shells[0])
			return true
		}
	}
	return false
}
