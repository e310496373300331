package sim

import (
	"fmt"
	"runtime/debug"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// sim is one run of one seed. It has no goroutine and no clock.
type sim struct {
	*environment
	population *population
	store      *logStore
	processes  *processes
	scheduler  *scheduler
	injector   *injector
	judges     *judges
}

// newSim wires the parts of the simulator.
func newSim(seed int64, o seedOptions) *sim {
	env := &environment{dice: newDice(seed), seed: seed, tracing: o.Trace, records: o.Record}
	env.seedPlan = newPlan(env.dice, o.Faults)
	if seed >= teamSeeds {
		env.allowTeam()
	}
	js := &judges{}
	p := newPopulation(env, js)
	js.wireJudges(p)
	store, ps, ex, th, in := &logStore{}, &processes{}, &executor{}, &throttles{}, &injector{}
	tj := &throttleJudge{environment: env, throttles: th}
	tj.resetState()
	model := &fakeModel{environment: env, population: p, throttles: th}
	model.hostile = &hostileModel{environment: env, model: model}
	damager := &logDamager{environment: env, population: p, store: store, processes: ps, messages: js.messages, run: js.run}
	*store = logStore{environment: env, population: p, processes: ps, injector: in}
	*ps = processes{environment: env, population: p, store: store, executor: ex, throttles: th, injector: in,
		effects: js.effects, drift: js.drift, coverage: js.coverage}
	*ex = executor{environment: env, processes: ps, throttles: th, model: model, hooks: &fakeHooks{env},
		budget: js.budget, effects: js.effects}
	*th = throttles{environment: env, store: store, processes: ps, executor: ex, injector: in, judge: tj, budget: js.budget,
		all: map[string]throttle.Throttle{}, storms: map[string]int64{}}
	*in = injector{environment: env, population: p, store: store, processes: ps, throttles: th, damager: damager}
	us := &users{environment: env, store: store, questions: map[askedQuestion]int{}}
	sc := &scheduler{environment: env, population: p, store: store, processes: ps, executor: ex, throttles: th, users: us,
		messages: js.messages, coverage: js.coverage}
	return &sim{environment: env, population: p, store: store, processes: ps, scheduler: sc, injector: in, judges: js}
}

// simulateSeed simulates one seed to its end.
func simulateSeed(seed int64, o seedOptions) (res seedResult) {
	s := newSim(seed, o)
	defer func() {
		r := recover()
		if v, ok := r.(violation); ok {
			res.Err = fmt.Errorf("seed %d, step %d: %s", seed, s.step, v.text)
		} else if r != nil {
			res.Err = fmt.Errorf("seed %d, step %d: panic: %v\n%s", seed, s.step, r, debug.Stack())
		}
		s.fillResult(&res)
	}()
	s.openRun()
	s.runToEnd()
	if res.Err = simulateLane(seed); res.Err != nil {
		return res
	}
	res.fork, res.Err = s.playFork(o)
	return res
}

// runToEnd plays the run to its end.
func (s *sim) runToEnd() {
	for !s.population.allClosed() {
		s.step++
		switch {
		case !s.faultsEnded && s.step > s.faultSteps:
			s.stopFaults()
		case s.step > s.faultSteps+endStepsMax:
			s.fail(runsEnd, "the run does not end: %s", s.population.describeActors())
		}
		s.now += int64(s.IntN(tickMSMax))
		if !s.faultsEnded {
			s.injector.changeUse()
		} else {
			s.injector.thawSubtrees()
		}
		if !s.faultsEnded && !s.isForming() && s.permille(s.rate) {
			s.injector.injectFault()
			continue
		}
		s.scheduler.runNext()
	}
	s.judges.run.checkEnd()
}

// fillResult reports what the seed came to.
func (s *sim) fillResult(res *seedResult) {
	res.Seed, res.Steps, res.Agents, res.Faults = s.seed, s.step, len(s.population.actors)-1, s.faults
	res.Begun = s.population.countBegun()
	res.Reach, res.Script = s.reach, s.script
	if !s.records {
		return
	}
	res.Super = s.population.super.shadow.super.State
	if f := res.fork; f != nil {
		res.Fork = &seedResult{}
		f.fillResult(res.Fork)
		res.Fork.Seed = s.seed
	}
	for _, a := range s.population.actors {
		res.Mailboxes = append(res.Mailboxes, actorLog{a.addr, a.log, a.damaged, a.forged})
		if a.shadow.agent != nil {
			res.Logs = append(res.Logs, agentLog{a.id, a.shadow.facts, a.shadow.rotten})
		}
	}
}

// seedOptions are the options of simulateSeed.
type seedOptions struct {
	Faults *faultSet // instead of the seed's own choice
	Trace  bool      // keep the script
	Record bool      // keep the facts that were stepped
}

// agentLog is the facts that an agent's machine stepped, in order.
type agentLog struct {
	Agent  spec.ID
	Facts  []activation.Fact
	Rotten bool // bits of it were changed: it contains what no actor wrote
}

// actorLog is the log of an actor at the end of a run.
type actorLog struct {
	At      mailbox.Address
	Entries []mailbox.Message
	Damaged bool            // by the simulator
	Forged  map[string]bool // entries that no actor wrote, by their bytes
}

// seedResult is the outcome of a seed.
type seedResult struct {
	Seed   int64
	Steps  int
	Agents int
	Begun  int // agents that have begun
	Faults faultSet
	Err    error // the invariant that was broken
	Reach  reachCounts
	Script []string   // with seedOptions.Trace
	Logs   []agentLog // with seedOptions.Record

	Mailboxes []actorLog       // with seedOptions.Record
	Super     supervisor.State // with seedOptions.Record: at the end of the log of the run
	Fork      *seedResult      // with seedOptions.Record; nil: the run was not forked
	fork      *sim
}

// Bounds of a run.
const (
	endStepsMax = 20_000 // steps within which a run ends once faults have stopped
	tickMSMax   = 25     // how far the clock goes in one step
)

// openRun opens the run, as a client does.
func (s *sim) openRun() {
	s.now = 1000
	s.population.super = s.population.findActor(mailbox.At(runName, mailbox.Super))
	if s.isOn(faultCancel) && s.permille(5) {
		s.injector.cancelSomething() // before Opened
	}
	s.store.appendCommand(s.population.super, "opened", s.opened)
	if s.isOn(faultLateCopy) && s.percent(20) {
		s.store.request--
		s.store.appendCommand(s.population.super, "opened", s.opened)
	}
}

// stopFaults ends all faults: from here on the run has to end by itself.
func (s *sim) stopFaults() {
	s.faultsEnded = true
	s.traceLine("calm: no fault happens from here on")
	s.injector.releaseOthers()
	for _, a := range s.population.actors {
		a.slow = 0
		for _, sh := range a.shells {
			if sh.frozen {
				s.processes.thawShell(sh)
			}
		}
	}
}
