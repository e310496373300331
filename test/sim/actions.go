package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/supervisor"
)

// carryOut executes a decision of an activation.
func (ps *processes) carryOut(sh *shell, action activation.Action) {
	a := sh.actor
	switch act := action.(type) {
	case activation.AppendClaim:
		if sh.wasActive && sh.logReader().Damage == "" && len(sh.logReader().Found) == 0 || sh.logReader().Epoch.Lease > a.lease {
			ps.reach.hit(placeReclaimed)
		}
		ps.store.beginAppend(&pendingAppend{from: sh, to: a.addr, data: act.Data, name: "resumed " + sh.start, claim: true})
	case activation.ReadLog:
		sh.claim = &act
	case activation.ReadTail:
		sh.part = &act
	case activation.AppendOwn:
		ps.appendOwn(sh, act)
	case activation.SendMessages:
		name := ""
		for _, t := range act.Messages {
			name += fmt.Sprintf(" %s(%d,%d)", t.Kind, t.N, t.I)
		}
		ps.store.beginAppend(&pendingAppend{from: sh, to: act.To, data: act.Data, name: sh.start + " says" + name, messages: act.Messages})
	case activation.SendAnswer:
		ps.reach.hit(placeRepeatedEnd)
		ps.store.beginAppend(&pendingAppend{from: sh, to: act.Message.To, data: act.Data, name: sh.start + " says again " + act.Message.Kind, answer: &act.Message})
	case activation.Later:
		sh.timers = append(sh.timers, shellTimer{fmt.Sprintf("later %T", act.Fact), ps.now + act.Pause.Milliseconds(), act.Fact})
	case activation.ArmTimer:
		ps.armTimer(sh, act)
	case activation.DisarmTimer:
		sh.disarmTimer(act.Timer)
	case activation.DisarmTimers:
		sh.timers = slices.DeleteFunc(sh.timers, func(t shellTimer) bool { return t.fact == nil })
	case activation.PublishResult:
		if ps.population.super.shadow.super.State.Phase != supervisor.Over && !ps.population.super.damaged {
			ps.fail(runsEnd, "%s publishes the result of a run that goes on", sh.start)
		}
	case activation.Fail:
		ps.traceLine("%s fails: %s: %v", sh.start, act.Doing, act.Err)
		ps.killShell(sh)
	case activation.Warn:
		ps.traceLine("%s warns: %s %v", sh.start, act.Text, act.Args)
	case activation.OwnReadBack, activation.PublishEvents, activation.PublishRestart, activation.PublishState:
	default:
		if !ps.performWork(sh, action) {
			ps.receiveReport(sh, action)
		}
	}
}

// receiveReport is the router: it receives the status of an activation.
func (ps *processes) receiveReport(sh *shell, action activation.Action) {
	a := sh.actor
	switch act := action.(type) {
	case activation.ReportSuperseded, activation.ReportEntriesTaken:
	case activation.ReportGone:
		ps.coverage.noteDrained(sh)
		ps.traceLine("%s is gone, in order", sh.start)
		ps.killShell(sh)
	case activation.ReportPassivated:
		ps.traceLine("%s is at rest", sh.start)
		ps.killShell(sh)
		if !a.closed {
			ps.coverage.notePassivated(a)
		}
	case activation.ReportLogEnded:
		if act.Place >= a.newestPlace() {
			ps.killShell(sh)
		}
	case activation.ReportHopeless:
		ps.traceLine("%s is hopeless: %s", sh.start, act.Why)
		ps.killShell(sh)
	case activation.ReportReachedTail:
		if act.Place < a.newestPlace() {
			ps.learnFact(sh, activation.Detached{Through: a.newestPlace()})
			return
		}
		sh.detached, sh.tail = false, len(a.log)
	default:
		ps.fail(factsAreReadable, "unknown action %T", action)
	}
}

// appendOwn appends an own entry.
func (ps *processes) appendOwn(sh *shell, act activation.AppendOwn) {
	switch {
	case act.Own.Small:
		ps.reach.hit(placeReplaced)
	case act.Own.Kind == "checkpoint" && act.Own.Key == "0": // the first thing that follows from its own claim
		sh.wasActive = true
	case act.Own.Kind == "checkpoint" && act.Own.Key == "":
		ps.reach.hit(placeCheckpointPosted)
	case act.Own.Kind == "started":
		if ps.effects.announced[act.ID] {
			break // decided before: the append found no room, and is repeated
		}
		ps.effects.announced[act.ID] = true
		ps.effects.checkMayBegin(sh, "Begin "+act.Own.Key)
		ps.drift.checkBegin(sh, agent.Begin{})
	}
	ps.store.beginAppend(&pendingAppend{from: sh, to: sh.actor.addr, data: act.Data, name: fmt.Sprintf("%s %s of %s", act.Own.Kind, act.Own.Key, sh.start), own: &act.Own})
}

// performWork executes an action that affects the world; it returns false for any other action.
func (ps *processes) performWork(sh *shell, action activation.Action) bool {
	switch act := action.(type) {
	case activation.Perform:
		ps.performEffect(sh, act)
	case activation.AbortWork:
		for _, r := range ps.executor.jobs {
			if r.shell == sh && r.key == act.Key {
				r.aborted = true
			}
		}
	case activation.EndWork:
		ps.executor.giveUpJobs(func(r *job) bool { return r.shell == sh && r.key == act.Key })
	case activation.LeaveThrottle:
		ps.throttles.withdrawRequest(sh)
	default:
		return false
	}
	return true
}

// performEffect does one effect in the world.
func (ps *processes) performEffect(sh *shell, p activation.Perform) {
	if !sh.wasActive {
		ps.fail(onlyTheCurrentActs, "%s acts before it has read its own Resumed: %T", sh.start, p.Effect)
	}
	if sh.lost || p.Lease != sh.lease || sh.logReader().N < uint64(sh.mustRead) {
		ps.fail(onlyTheCurrentActs, "%s begins %T without a lease that it has proven", sh.start, p.Effect)
	}
	ps.drift.checkBegin(sh, p.Effect)
	switch e := p.Effect.(type) {
	case agent.CallModel:
		ps.executor.callModel(sh, e)
	case agent.CallTool:
		ps.executor.callTool(sh, e)
	case agent.RunHooks:
		ps.executor.runHooks(sh, e)
	case agent.AwaitThrottle:
		ps.throttles.requestAdmission(&throttleRequest{shell: sh, model: e.Model, pause: e.Pause})
	default:
		ps.fail(factsAreReadable, "unknown effect %T", p.Effect)
	}
}

// armTimer arms a timer of the machine.
func (ps *processes) armTimer(sh *shell, act activation.ArmTimer) {
	sh.disarmTimer(act.Timer)
	sh.timers = append(sh.timers, shellTimer{name: act.Timer, due: act.Due})
	if !strings.HasPrefix(act.Timer, "retry-") || ps.faultsEnded {
		return
	}
	if ps.isOn(faultClock) && ps.percent(earlyOdds) {
		ps.fireTimer(sh, len(sh.timers)-1) // on a clock that runs ahead
		return
	}
	if ps.isOn(faultCancel) && ps.percent(3*raceOdds) && ps.injector.cancels < cancelsMax {
		ps.injector.cancels++ // while a call waits for its next attempt
		ps.store.appendCommand(sh.actor, "canceled", agent.Canceled{Why: "enough", Now: ps.percent(50)})
	}
}

// earlyOdds is how often a retry's timer fires at once where clocks run ahead.
const earlyOdds = 40

// readNext brings a shell its next entries: its log, a part of it, or an entry of the tail.
func (ps *processes) readNext(sh *shell) {
	a := sh.actor
	switch {
	case sh.claim != nil:
		claim := sh.claim.Claim
		sh.claim = nil
		f := activation.LogRead{Claim: claim, Differences: ps.drawDifferences(a, claim.Place)}
		if !ps.faultsEnded && ps.isOn(faultFailing) && ps.percent(8) {
			f.Err = errNoLeader
		} else {
			f.Log = a.entriesBetween(0, claim.Place)
		}
		ps.learnFact(sh, f)
	case sh.part != nil:
		part := *sh.part
		sh.part = nil
		entries := a.entriesBetween(part.After, part.Through)
		entries = entries[:min(len(entries), partMax)]
		for _, m := range entries {
			ps.learnFact(sh, activation.EntryRead{Message: m})
		}
		ps.learnFact(sh, activation.TailRead{Through: part.Through, Entries: len(entries)})
	case !ps.faultsEnded && ps.percent(detachOdds):
		ps.traceLine("%s is detached from the tail", sh.start)
		sh.detached = true
		ps.learnFact(sh, activation.Detached{Through: a.newestPlace()})
	default:
		m := a.log[sh.tail]
		sh.tail++
		ps.learnFact(sh, activation.EntryArrived{Message: m})
	}
}

// errNoLeader means that a log has no leader for a while.
var errNoLeader = errors.New("no leader")

// Bounds of reading.
const (
	partMax    = 4 // entries of one part
	detachOdds = 1 // in percent: how often a shell is too slow for the tail
)
