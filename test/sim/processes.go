package sim

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// processes are the nodes' processes: they start shells under leases, carry out what activations decide, and end.
type processes struct {
	*environment
	population *population
	store      *logStore
	executor   *executor
	throttles  *throttles
	injector   *injector
	effects    *effectJudge
	drift      *driftJudge
	coverage   *coverage
	nonces     int    // shells that were started
	leases     uint64 // revision of the newest lease
}

// drawDifferences returns how the configuration on the node of a new shell differs from the
// agent's task. A node compares them when it finds the task in the log that it reads.
func (ps *processes) drawDifferences(a *actor, through uint64) map[string]string {
	st := a.shadow.agent
	if ps.faultsEnded || !ps.isOn(faultDiffering) || st == nil || st.State.Phase == "" || !a.hasTask(through) || ps.percent(40) {
		return nil
	}
	return oneOf(ps.dice, nil,
		map[string]string{"prompt": "2"}, map[string]string{"prompt": "3", "tool/look": ""}, map[string]string{"tool/note": "idempotent:2"},
		map[string]string{"tool/pay": "read:1"}, map[string]string{"route": ""}, map[string]string{"workspace": "", "hooks": "9"})
}

// thawShell makes a frozen shell continue. If its lease has run out meanwhile, the shell notices
// before it affects the world, unless its fence fails.
func (ps *processes) thawShell(sh *shell) {
	sh.frozen = false
	ps.traceLine("thaw %s", sh.start)
	if sh.lease != sh.actor.lease && !ps.isOn(faultUnfenced) {
		sh.lost = true // it begins nothing
		if ps.isOn(faultZombie) && ps.percent(regainOdds) {
			ps.regainLease(sh)
		}
	}
}

// regainOdds is how often a node that thaws takes its lease again at once, in percent.
const regainOdds = 50

// regainLease gives a node the lease back that it lost, as after a network outage. Meanwhile
// another node may have claimed the log: the activation must have read all entries up to
// now before it begins anything (PROTOCOL P27).
func (ps *processes) regainLease(sh *shell) {
	a := sh.actor
	// In a recreated bucket the revision may equal the one that the lease had before. Nothing
	// tells that apart from a lease that was never lost: a known gap (ARCHITECTURE).
	if ps.leases++; ps.leases == sh.lease {
		ps.leases++
	}
	a.lease, a.starts = ps.leases, 0
	sh.lost, sh.lease, sh.mustRead = false, a.lease, len(a.log)
	ps.traceLine("%s holds the log again, under lease %d", sh.start, a.lease)
}

// fireTimer has a timer fire, or a fact come that had to wait.
func (ps *processes) fireTimer(sh *shell, i int) {
	t := sh.timers[i]
	sh.timers = slices.Delete(sh.timers, i, i+1)
	ps.traceLine("timer %s of %s", t.name, sh.start)
	if t.fact != nil {
		ps.learnFact(sh, t.fact)
		return
	}
	_, unseen := sh.state.UnseenPool(t.name)
	ps.learnFact(sh, activation.TimerFired{Timer: t.name, Served: unseen && !ps.faultsEnded && ps.percent(20)})
}

// launchShell starts a shell: it claims, and reads the log from its start. The tail sends it
// the entries that are appended from now on.
func (ps *processes) launchShell(a *actor) *shell {
	ps.nonces++
	sh := &shell{actor: a, start: fmt.Sprintf("S%d", ps.nonces), lease: a.lease, tail: len(a.log)}
	sh.state = activation.New(a.addr, sh.start, mailbox.Epoch{Lease: a.lease, Start: a.starts}, "node-"+sh.start, false)
	sh.state.StartsMax = startsMax
	a.shells = append(a.shells, sh)
	ps.traceLine("start %s %s epoch %d.%d", a.id, sh.start, a.lease, a.starts)
	ps.learnFact(sh, activation.Activate{})
	return sh
}

// startsMax is higher than any seed reaches: no actor is given up.
const startsMax = 1 << 30

// takeOver acquires a new lease, as a node does that finds no holder.
func (ps *processes) takeOver(a *actor) {
	ps.leases++
	a.lease, a.starts = ps.leases, 0
	ps.launchShell(a)
}

// restartShell starts a new activation under the same lease.
func (ps *processes) restartShell(a *actor) {
	a.starts++        //mutant:restart-counts
	ps.launchShell(a) //mutant:restart-launches
}

// learnFact makes an activation decide about a fact, and about the facts that follow at once.
func (ps *processes) learnFact(sh *shell, fact any) {
	sh.inbox = append(sh.inbox, fact)
	if sh.learning {
		return
	}
	sh.learning = true
	for len(sh.inbox) > 0 && !sh.dead {
		next := sh.inbox[0]
		sh.inbox = sh.inbox[1:]
		ps.stepFact(sh, next)
	}
	sh.learning = false
}

// stepFact steps one fact and carries out the resulting actions.
func (ps *processes) stepFact(sh *shell, fact any) {
	phase, read := sh.logReader().Phase, sh.logReader().N
	if sh.state.Agent != nil {
		st := &sh.state.Agent.State
		sh.canceled, sh.ended = st.Cancel != nil, st.Phase == agent.Done
	}
	sh.postponing = sh.state.IsPostponing()
	var actions []activation.Action
	sh.state, actions = activation.Step(sh.state, activation.Input{Now: ps.now, Lease: sh.lease, LeaseHeld: !sh.lost, Fact: fact})
	if sh.logReader().N > read {
		ps.traceLine("read %s %s #%d", sh.actor.id, sh.start, sh.logReader().N)
		sh.actor.shadow.compareShell(sh)
	}
	if phase != activation.Superseded && sh.logReader().Phase == activation.Superseded {
		ps.traceLine("superseded %s", sh.start)
		ps.store.dropAppends(sh)
	}
	for _, action := range actions {
		if sh.dead {
			return
		}
		ps.carryOut(sh, action)
	}
}

// postResult delivers the result of work.
func (ps *processes) postResult(sh *shell, kind, key string, body any) {
	ps.learnFact(sh, activation.WorkDone{Own: sh.state.OwnResult(kind, key, body)})
}

// killShell ends a shell and all work of its process.
func (ps *processes) killShell(sh *shell) {
	ps.store.dropAppends(sh)
	sh.dead = true
	ps.throttles.removeShell(sh)
	ps.executor.giveUpJobs(func(r *job) bool { return r.shell == sh })
	a := sh.actor
	a.shells = slices.DeleteFunc(a.shells, func(x *shell) bool { return x == sh })
}
