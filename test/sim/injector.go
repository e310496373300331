package sim

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// injector injects faults between two steps. Those of appends (faultLostAck, faultLateCopy, faultFailing) are
// injected where appends land.
type injector struct {
	*environment
	population *population
	store      *logStore
	processes  *processes
	throttles  *throttles
	damager    *logDamager
	cancels    int
}

// injections are the faults that the injector knows.
var injections = [...]struct {
	kind   faultSet
	inject func(*injector)
}{
	{faultCrash, (*injector).crashShell},
	{faultPanic, (*injector).panicShell},
	{faultTwoHolders, (*injector).startSecondHolder},
	{faultZombie, (*injector).freezeShell},
	{faultBucket, (*injector).recreateBucket},
	{faultCancel, (*injector).cancelSomething},
	{faultTruncate, func(in *injector) { in.damager.truncateLog() }},
	{faultRot, func(in *injector) { in.damager.flipBit() }},
	{faultGarbage, (*injector).writeGarbage},
	{faultSteer, (*injector).steerAgent},
	{faultClock, (*injector).fireEarly},
	{faultVeto, (*injector).replacePolicy},
	{faultLimits, (*injector).changeLimits},
	{faultSlow, (*injector).passTime},
	{faultHandOver, (*injector).drainShell},
	{faultRefusals, func(in *injector) { in.throttles.startRefusals() }},
	{faultHead, func(in *injector) { in.damager.loseHead() }},
	{faultRunTail, func(in *injector) { in.damager.loseRunTail() }},
}

// injectFault strikes with one of the kinds that are on.
func (in *injector) injectFault() {
	n := in.IntN(len(injections))
	for range injections {
		m := injections[n]
		if in.isOn(m.kind) {
			m.inject(in)
			return
		}
		n = (n + 1) % len(injections)
	}
}

func (in *injector) crashShell() {
	sh := in.population.pickShell()
	if sh == nil {
		return
	}
	if in.percent(10) { // the whole machine
		in.traceLine("all shells crash")
		for _, a := range in.population.actors {
			for len(a.shells) > 0 {
				in.processes.killShell(a.shells[0])
			}
		}
		in.throttles.forgetNode()
		return
	}
	in.traceLine("crash %s", sh.start)
	in.processes.killShell(sh)
}

func (in *injector) panicShell() {
	sh := in.population.pickShell()
	if sh == nil || !sh.isActive() || sh.lease != sh.actor.lease {
		return
	}
	in.traceLine("panic %s", sh.start)
	a := sh.actor
	in.processes.killShell(sh)
	in.reach.hit(placePanicRestart)
	in.processes.restartShell(a)
}

func (in *injector) startSecondHolder() {
	sh := in.population.pickShell()
	if sh == nil || sh.actor.closed || len(sh.actor.shells) >= shellsMax {
		return
	}
	in.traceLine("second holder of %s", sh.actor.id)
	in.processes.takeOver(sh.actor)
}

// shellsMax bounds the shells of one actor that live at once.
const shellsMax = 4

func (in *injector) freezeShell() {
	sh := in.population.pickShell()
	if sh != nil && sh.lost {
		in.processes.regainLease(sh)
		return
	}
	if sh == nil || len(sh.actor.shells) >= shellsMax {
		return
	}
	in.traceLine("freeze %s", sh.start)
	sh.frozen = true
}

// recreateBucket makes the lease bucket anew: its revisions start again.
func (in *injector) recreateBucket() {
	in.traceLine("the lease bucket is made anew")
	in.processes.leases = uint64(in.IntN(2))
}

// cancelSomething cancels the run, or one agent, from outside.
func (in *injector) cancelSomething() {
	if in.cancels++; in.cancels > cancelsMax {
		return
	}
	f := agent.Canceled{Why: "enough", Now: in.percent(50)}
	a := in.population.actors[in.IntN(len(in.population.actors))]
	who := in.store.findDelegating()
	switch {
	case who != "" && in.percent(35): // while its Delegate is under way
		f.Of = who
		in.store.appendCommand(in.population.super, "canceled", f)
	case who != "" && in.percent(50): // or above it, past the supervisor
		in.store.appendCommand(in.population.findActor(mailbox.At(runName, string(spec.Root))), "canceled", f)
	case in.percent(5): // a child that may not be born yet
		in.store.appendCommand(in.population.findActor(mailbox.At(runName, "root-1-0")), "canceled", f)
	case in.percent(50) || a == in.population.super:
		in.store.appendCommand(in.population.super, "canceled", f)
	case in.percent(70):
		f.Of = a.id
		in.store.appendCommand(in.population.super, "canceled", f)
	default:
		in.store.appendCommand(a, "canceled", f)
	}
}

// cancelsMax leaves some runs that end by themselves.
const cancelsMax = 3

func (in *injector) steerAgent() {
	a := in.population.actors[in.IntN(len(in.population.actors))]
	if a != in.population.super {
		in.store.appendCommand(a, "steered", agent.Steered{Text: fmt.Sprintf("mind %d", in.step), Now: in.percent(50)})
	}
}

// fireEarly fires a timer before it is due: the node's clock runs ahead.
func (in *injector) fireEarly() {
	if in.softMS > 0 && slices.ContainsFunc(in.population.actors, (*actor).isIdle) && in.percent(30) {
		in.now += in.softMS // the time is over of who only waits for children
		return
	}
	sh := in.population.pickShell()
	if sh == nil || !sh.isActive() || !sh.wasActive || len(sh.timers) == 0 {
		return
	}
	if i := in.IntN(len(sh.timers)); sh.timers[i].fact == nil {
		in.processes.fireTimer(sh, i)
	}
}

func (in *injector) replacePolicy() {
	in.store.appendCommand(in.population.super, "policy_set", supervisor.PolicySet{Policy: drawPolicy(in.dice)})
}

// changeLimits changes the limits of the live run: up, or down to what is committed.
func (in *injector) changeLimits() {
	st := in.population.super.shadow.super.State
	l := st.Run.Limits
	if st.Phase == "" {
		return
	}
	set := supervisor.LimitSet{}
	switch in.IntN(6) {
	case 5:
		set.Freeze = true
	case 0:
		l.Tokens = max(1, st.Pool.Spent.Tokens+st.Pool.Held.Tokens)
	case 1:
		l.Tokens = max(1, st.Pool.Spent.Tokens+st.Pool.Held.Tokens+st.Pool.Kept.Tokens)
	case 2:
		l.Tokens += int64(in.between(500, 20_000))
	case 3:
		l.Depth = in.between(1, 3)
	default:
		l.Children, l.Agents = in.between(1, 3), in.between(2, 6)
	}
	set.Limits = l
	in.store.appendCommand(in.population.super, "limit_set", set)
}

// passTime lets a long time pass.
func (in *injector) passTime() {
	ms := int64(in.between(1000, 61_000))
	in.now += ms
	in.traceLine("%d ms pass", ms)
}

// writeGarbage writes what no actor of the run wrote.
func (in *injector) writeGarbage() {
	a := in.population.actors[in.IntN(len(in.population.actors))]
	if a.closed && in.percent(80) {
		return
	}
	stranger := mailbox.At(runName, "stranger")
	if a != in.population.super && in.percent(50) {
		stranger = mailbox.At(runName, "root-9-9")
	}
	body, _ := mailbox.Marshal(map[string]any{"l": 1, "c": "1-0", "a": 1, "t": "forged", "i": "root-1-0"})
	kind := oneOf(in.dice, "granted", "returned", "replied", "started", "reserve", "delegate", "finish", "submitted", "canceled",
		"opened", "report_log", "closed", "resumed", "messaged", "send", "nonsense")
	e := mailbox.Entry{Form: mailbox.Form, From: stranger, Items: []mailbox.Item{{N: uint64(in.IntN(90)), I: 0, Kind: kind, Body: body}}}
	switch in.IntN(6) {
	case 0: // bytes
		data := make([]byte, in.between(0, 40))
		for i := range data {
			data[i] = byte(in.IntN(256))
		}
		in.store.appendEntry(a.addr, data, "garbage bytes")
		a.noteForged(data)
		return
	case 1: // another run
		e.From = "02OTHER.super"
	case 2: // from itself, of no activation
		e.From, e.Items[0].N = a.addr, 0
		e.Items[0].Kind = oneOf(in.dice, "replied", "started", "checkpoint", "closed", "woke", "granted")
	case 3: // a command without an id, or of an unknown kind
		e.From, e.Items[0].N = "", 0
		if in.percent(50) && kind != "canceled" && kind != "opened" {
			e.Items[0].ID = fmt.Sprintf("forged%d", in.step)
		}
	}
	if e.From == stranger {
		in.population.forged[stranger] = true
	}
	data := in.store.encodeEntry(e)
	in.store.appendEntry(a.addr, data, "garbage "+string(e.From)+" "+kind)
	a.noteForged(data)
}

// drainShell makes a shell drain: it reads no more, so it begins nothing more; the work that it
// began ends and enters the log, then Released.
func (in *injector) drainShell() {
	sh := in.population.pickShell()
	if sh == nil || !sh.isActive() || sh.isLeaving() || sh.lease != sh.actor.lease {
		return
	}
	in.traceLine("hand over %s", sh.start)
	in.processes.learnFact(sh, activation.Drain{})
}

// raceOdds is how often a cancel is aimed at a Delegate that has just gone out,
// or at a call that waits for its next attempt.
const raceOdds = 5
