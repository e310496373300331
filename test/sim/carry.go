package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/supervisor"
)

// carryOut executes a decision of an activation.
func (s *sim) carryOut(sh *shell, action activation.Action) {
	a := sh.actor
	switch act := action.(type) {
	case activation.AppendClaim:
		if sh.came && sh.reader().Damage == "" && len(sh.reader().Found) == 0 || sh.reader().Epoch.Lease > a.lease {
			s.reach.hit(Reclaimed)
		}
		s.send(&flight{from: sh, to: a.addr, data: act.Data, name: "resumed " + sh.start, claim: true})
	case activation.ReadLog:
		sh.claim = &act
	case activation.ReadTail:
		sh.part = &act
	case activation.AppendOwn:
		s.appendOwn(sh, act)
	case activation.SendMessages:
		name := ""
		for _, t := range act.Messages {
			name += fmt.Sprintf(" %s(%d,%d)", t.Kind, t.N, t.I)
		}
		s.send(&flight{from: sh, to: act.To, data: act.Data, name: sh.start + " says" + name, messages: act.Messages})
	case activation.SendAnswer:
		s.reach.hit(RepeatedEnd)
		s.send(&flight{from: sh, to: act.Message.To, data: act.Data, name: sh.start + " says again " + act.Message.Kind, answer: &act.Message})
	case activation.Later:
		sh.timers = append(sh.timers, timer{fmt.Sprintf("later %T", act.Fact), s.now + act.Pause.Milliseconds(), act.Fact})
	case activation.ArmTimer:
		s.arm(sh, act)
	case activation.DisarmTimer:
		sh.disarm(act.Timer)
	case activation.DisarmTimers:
		sh.timers = slices.DeleteFunc(sh.timers, func(t timer) bool { return t.fact == nil })
	case activation.PublishResult:
		if s.super.shadow.super.State.Phase != supervisor.Over && !s.super.hurt {
			s.fail("%s publishes the result of a run that goes on", sh.start)
		}
	case activation.Fail:
		s.note("%s fails: %s: %v", sh.start, act.At, act.Err)
		s.kill(sh)
	case activation.Warn:
		s.note("%s warns: %s %v", sh.start, act.Text, act.Args)
	case activation.OwnReadBack, activation.PublishNotes:
	default:
		if !s.work(sh, action) {
			s.report(sh, action)
		}
	}
}

// report is the router: it receives the status of an activation.
func (s *sim) report(sh *shell, action activation.Action) {
	a := sh.actor
	switch act := action.(type) {
	case activation.ReportSuperseded, activation.ReportArrived:
	case activation.ReportGone:
		s.reachDrained(sh)
		s.note("%s is gone, in order", sh.start)
		s.kill(sh)
	case activation.ReportPassivated:
		s.note("%s is at rest", sh.start)
		s.kill(sh)
		if !a.closed {
			s.reachRest(a)
		}
	case activation.ReportEnded:
		if act.Place >= a.head() {
			s.kill(sh)
		}
	case activation.ReportHopeless:
		s.note("%s is hopeless: %s", sh.start, act.Why)
		s.kill(sh)
	case activation.ReportLevel:
		if act.Place < a.head() {
			s.learn(sh, activation.Detached{Through: a.head()})
			return
		}
		sh.detached, sh.tail = false, len(a.log)
	default:
		s.fail("unknown action %T", action)
	}
}

// appendOwn appends an own entry.
func (s *sim) appendOwn(sh *shell, act activation.AppendOwn) {
	switch {
	case act.Own.Small:
		s.reach.hit(Replaced)
	case act.Own.Kind == "checkpoint" && act.Own.Key == "0": // the first thing that follows from its own claim
		sh.came = true
	case act.Own.Kind == "checkpoint" && act.Own.Key == "":
		s.reach.hit(CheckpointPosted)
	case act.Own.Kind == "started":
		s.mayBegin(sh, "Begin "+act.Own.Key)
		s.watchDiffering(sh, agent.Begin{})
	}
	s.send(&flight{from: sh, to: sh.actor.addr, data: act.Data, name: fmt.Sprintf("%s %s of %s", act.Own.Kind, act.Own.Key, sh.start), own: &act.Own})
}

// work executes an action that affects the world; it returns false for any other action.
func (s *sim) work(sh *shell, action activation.Action) bool {
	switch act := action.(type) {
	case activation.Perform:
		s.perform(sh, act)
	case activation.AbortWork:
		for _, r := range s.runs {
			if r.shell == sh && r.key == act.Key {
				r.aborted = true
			}
		}
	case activation.EndWork:
		s.giveUpRuns(func(r *run) bool { return r.shell == sh && r.key == act.Key })
	case activation.LeaveGate:
		s.leaveGate(sh)
	default:
		return false
	}
	return true
}

// perform does one effect in the world.
func (s *sim) perform(sh *shell, p activation.Perform) {
	if !sh.came {
		s.fail("%s acts before it has read its own Resumed: %T", sh.start, p.Effect)
	}
	if sh.lost || p.Lease != sh.lease || sh.reader().N < uint64(sh.proven) {
		s.fail("%s begins %T without a lease that it has proven", sh.start, p.Effect)
	}
	s.watchDiffering(sh, p.Effect)
	switch e := p.Effect.(type) {
	case agent.CallModel:
		s.callModel(sh, e)
	case agent.CallTool:
		s.callTool(sh, e)
	case agent.RunHooks:
		s.runHooks(sh, e)
	case agent.AwaitGate:
		s.ask(&ask{shell: sh, model: e.Model, pause: e.Pause})
	default:
		s.fail("unknown effect %T", p.Effect)
	}
}

// arm arms a timer of the machine.
func (s *sim) arm(sh *shell, act activation.ArmTimer) {
	sh.disarm(act.Timer)
	sh.timers = append(sh.timers, timer{name: act.Timer, due: act.Due})
	if !strings.HasPrefix(act.Timer, "retry-") || s.quiet {
		return
	}
	if s.on(Clock) && s.percent(earlyOdds) {
		s.fire(sh, len(sh.timers)-1) // on a clock that runs ahead
		return
	}
	if s.on(Cancel) && s.percent(3*raceOdds) && s.cancels < cancelsMax {
		s.cancels++ // while a call waits for its next attempt
		s.command(sh.actor, "canceled", agent.Canceled{Why: "enough", Now: s.percent(50)})
	}
}

func (sh *shell) disarm(name string) {
	sh.timers = slices.DeleteFunc(sh.timers, func(t timer) bool { return t.fact == nil && t.name == name })
}
