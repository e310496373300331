package sim

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// A fork of a simulated run begins with the logs of the run at a consistent cut, which is the product's
// (runfile.CutFork), and with the marks that the product appends (internal/control/runimport/forkchange.go). It keeps the
// id of the run, as one that is restored does. A new simulator reads the entries of the cut in the order in
// which they were stored, so its judges know what the logs say, and plays on with the plan of the seed, without
// damage and forged entries.

const (
	forksEvery      = 3 // which of the seeds are forked: see permissionsEvery
	forkSalt        = 0x5eed
	forkFaultSteps  = 120
	forkEntriesMost = 600 // longer runs are not forked: one copies all entries of the run
)

// forker forks a run that has ended.
type forker struct {
	*sim          // the fork
	original *sim // the run
	point    *actor
	marked   bool // the agent of the point has its mark
	kept     map[mailbox.Address]int
}

// playFork forks the run at a random point, if the seed is one of those, and plays the fork to its end.
func (s *sim) playFork(o seedOptions) (fork *sim, err error) {
	if !s.isForked() {
		return nil, nil
	}
	faults := s.faults
	o.Faults = &faults // what is drawn depends on them, and a seed whose faults are given plays the same fork
	f := &forker{sim: newSim(s.seed^forkSalt, o), original: s, kept: map[mailbox.Address]int{}}
	defer func() {
		r := recover()
		if v, ok := r.(violation); ok {
			err = fmt.Errorf("seed %d, fork, step %d: %s", s.seed, f.step, v.text)
		} else if r != nil {
			err = fmt.Errorf("seed %d, fork, step %d: panic: %v\n%s", s.seed, f.step, r, debug.Stack())
		}
		s.script = append(s.script, f.script...)
		s.reach.add(&f.reach)
	}()
	f.seedPlan = s.seedPlan
	f.faults &^= faultTruncate | faultRot | faultHead | faultRunTail | faultGarbage
	f.faultSteps = min(s.faultSteps, forkFaultSteps)
	if !f.copyCut() {
		return nil, nil
	}
	f.runToEnd()
	return f.sim, nil
}

// isForked reports whether the run is one of those that are forked: no log of it was damaged, and no entry was
// forged. Every other team is not forked: more of them end undamaged.
func (s *sim) isForked() bool {
	if s.rate%forksEvery != 0 || s.seed >= teamSeeds && s.seed%2 == 0 || s.isOn(faultGarbage) || len(s.store.order) > forkEntriesMost {
		return false
	}
	return !slices.ContainsFunc(s.population.actors, func(a *actor) bool { return a.damaged || a.shadow.alarmed })
}

// copyCut copies the logs up to a point, and marks them. It reports whether there was one.
func (f *forker) copyCut() bool {
	point, turn := f.drawPoint()
	if point == nil {
		return false
	}
	var entries []mailbox.Message
	for _, a := range f.original.population.actors {
		entries = append(entries, a.log...)
	}
	cut, err := runfile.CutFork(entries, string(point.id), strconv.Itoa(turn))
	if err != nil {
		f.fail(forksRepeatNothing, "%s:%d is a complete turn and has no cut: %v", point.id, turn, err)
	}
	for _, m := range cut {
		f.kept[m.To]++
	}
	f.traceLine("fork at %s:%d", point.id, turn)
	f.now = 1000
	f.store.request, f.processes.nonces = f.original.store.request, f.original.processes.nonces
	f.population.super = f.population.findActor(f.original.population.super.addr)
	next := map[mailbox.Address]int{}
	for _, at := range f.original.store.order {
		if i := next[at]; i < f.kept[at] {
			f.copyEntry(point, turn, f.original.population.byAddr[at].log[i], i)
			next[at]++
		}
	}
	f.markLogs()
	f.reach.hit(placeRunForked)
	return true
}

// drawPoint draws a complete turn of an agent.
func (f *forker) drawPoint() (*actor, int) {
	if busy := f.original.population.busyTurns; len(busy) > 0 && f.percent(80) {
		p := busy[f.IntN(len(busy))]
		return p.actor, p.turn
	}
	var agents []*actor
	for _, a := range f.original.population.actors {
		if st := a.shadow.agent; st != nil && st.State.Phase == agent.Done && st.State.Turned(st.State.Turn) {
			agents = append(agents, a)
		}
	}
	if len(agents) == 0 {
		return nil, 0
	}
	a := agents[f.IntN(len(agents))]
	return a, f.IntN(a.shadow.agent.State.Turn + 1)
}

// copyEntry reads an entry of the cut. The log of the point's agent gets its mark before the last one.
func (f *forker) copyEntry(point *actor, turn int, m mailbox.Message, i int) {
	f.now = max(f.now, m.At)
	a := f.population.findActor(m.To)
	a.slow = 0
	if m.To == point.addr && i == f.kept[m.To]-1 && (a.shadow.agent == nil || a.shadow.agent.State.Phase != agent.Done) {
		f.markAgent(a, nil, turn == 0)
		f.marked = true
	}
	m.Place = a.newestPlace() + 1
	a.log = append(a.log, m)
	a.shadow.readEntry()
	if e, err := mailbox.Decode(m.Data); err == nil && e.From == m.To {
		f.processes.leases = max(f.processes.leases, e.Epoch.Lease)
		for _, item := range e.Items {
			f.noteOriginal(a.id, item)
		}
	}
	if was := f.original.population.byAddr[m.To].shadow.states; !f.marked && a.shadow.states[i] != was[i] {
		f.fail(forksRepeatNothing, "the fork knows another state of %s after entry %d than the original did", a.id, i+1)
	}
	f.point = f.population.byAddr[point.addr]
}

// noteOriginal notes what the original has called: the fork does not call it again by itself.
func (f *forker) noteOriginal(who spec.ID, item mailbox.Item) {
	var b struct {
		Reservation int    `msgpack:"l"`
		Call        string `msgpack:"c"`
		Attempt     int    `msgpack:"a"`
	}
	if mailbox.Unmarshal(item.Body, &b) != nil {
		return
	}
	switch item.Kind {
	case "replied", "failed":
		f.judges.budget.called[reservationKey{who, b.Reservation}]++
	case "started":
		f.judges.effects.begun[callKey{who, b.Call, b.Attempt}] = 1
	}
}

// markLogs ends the copied logs as a fork does: with other limits and another model, at times, and with a
// mark for each agent at work.
func (f *forker) markLogs() {
	super := f.population.super
	st := super.shadow.super.State
	if st.Phase != supervisor.Over && f.percent(40) {
		set := supervisor.LimitSet{Patch: true, By: "fork"}
		set.Limits.Tokens = max(1, st.Pool.Spent.Tokens+int64(f.IntN(5000)))
		f.store.appendCommand(super, set.Kind(), set)
	}
	st.Members(func(m supervisor.Member) {
		a := f.population.byAddr[mailbox.At(runName, string(m.ID))]
		if a == nil || m.Done || a == f.point && f.marked {
			return
		}
		if s := a.shadow.agent.State; s.Phase != "" && s.Phase != agent.Done {
			f.markAgent(a, &s, false)
		}
	})
	if f.isOn(faultModels) {
		f.injector.setModel()
	}
}

// markAgent marks the log of an agent, and notes what its original had under way. first: before its task.
func (f *forker) markAgent(a *actor, st *agent.State, first bool) {
	mark := agent.Forked{Of: "other@" + string(f.population.super.id), Note: "Your directory is another one.", First: first}
	f.store.appendCommand(a, mark.Kind(), mark)
	if st == nil {
		return
	}
	for _, c := range st.Calls {
		if c.Stage == agent.Running && c.Class != model.Read {
			f.judges.effects.originals[callKey{a.id, c.ID, c.Attempt}] = true
		}
	}
}
