package sim

import (
	"errors"
	"hash/maphash"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// shadowReader reads a log the moment it grows, with a LogReader that has no start and so
// never acts: its state is what the log implies, and every shell must have the
// same state at the same entry.
type shadowReader struct {
	*environment
	population *population
	judges     *judges
	actor      *actor
	reader     *activation.LogReader
	agent      *activation.Agent
	super      *activation.Supervisor

	facts  []activation.Fact // that were stepped, with seedOptions.Record
	states []uint64          // the state after each entry, as a hash of its canonical form
	buf    []byte

	// The entry being read.
	entry  mailbox.Entry
	cursor int
	index  int // outbox messages made of it so far

	emitted []*sentMessage
	settled int // how many of emitted are known to have landed, from the start
	byKey   map[messageKey]*sentMessage
	applied map[messageKey]bool
	asked   map[string]bool            // requests of clients
	high    map[mailbox.Address]uint64 // highest n stepped, per sender
	reports map[string]bool            // the activations that appended ReportLog, in the supervisor's
	covered uint64                     // the highest ack floor that a current activation claimed
	judge   *agentJudge                // of an agent

	// Of a damaged log.
	cut     uint64 // the log was cut to this many entries
	heard   uint64 // the supervisor had read reports of this many entries
	granted int    // … and of this many reservations
	regrown uint64 // index of the first Resumed after the cut
	rotten  bool
	done    bool // its agent had ended before
	alarmed bool // the damage was noticed
	late    bool // but only after its end
	// alarmedAt is the entry of the supervisor's log with the report of the damage; 0: none has come.
	alarmedAt uint64
}

// sentMessage is an outbox message that the log made its actor send.
type sentMessage struct {
	messageKey
	to     mailbox.Address
	kind   string
	body   string
	landed bool
}

var hashSeed = maphash.MakeSeed()

// resetReader makes a shadow that has read nothing.
func (w *shadowReader) resetReader(p *population, a *actor) {
	*w = shadowReader{environment: p.environment, population: p, judges: p.judges, actor: a, byKey: map[messageKey]*sentMessage{}, applied: map[messageKey]bool{}, asked: map[string]bool{},
		high: map[mailbox.Address]uint64{}, reports: map[string]bool{}}
	if a.id == mailbox.Super {
		w.super = &activation.Supervisor{Addr: a.addr}
	} else {
		w.agent = &activation.Agent{Addr: a.addr}
		w.judge = newAgentJudge(p, a)
	}
	w.reader = activation.Watch(a.addr, w)
}

// readAgain reads a damaged log from its start.
func (w *shadowReader) readAgain() {
	old := *w
	w.resetReader(old.population, old.actor)
	if old.super != nil {
		w.judges.budget.others, w.judges.models.set = supervisor.OthersUse{}, nil
		w.judges.contexts = newRunContextJudge(old.population)
	}
	w.cut, w.heard, w.granted, w.rotten, w.done, w.high = old.cut, old.heard, old.granted, old.rotten, old.done, old.high
	for int(w.reader.N) < len(w.actor.log) {
		w.readEntry()
	}
}

// readEntry reads the next entry of the log.
func (w *shadowReader) readEntry() {
	a := w.actor
	m := a.log[w.reader.N]
	phase := w.reader.Phase
	e, err := mailbox.Decode(m.Data)
	w.entry, w.cursor, w.index = e, 0, 0
	if err != nil {
		w.entry = mailbox.Entry{}
	}
	if err == nil && e.From == a.addr && e.Floor > 0 && !a.damaged && phase != activation.Closed {
		w.checkFloor(e)
	}
	if err == nil && e.From == a.addr && e.Start != w.currentActivation() && len(e.Items) > 0 && e.Items[0].Kind == "started" {
		w.reach.hit(placeStartedSuperseded)
	}
	evidence := w.evidenceFor(e)
	r := w.reader.Next(m)
	if evidence != "" && w.isRunning(evidence) {
		w.fail(factsCountOnce, "%s: what a tool returned for the running call %s does not count", a.id, evidence)
	}
	if errors.Is(r.Err, activation.ErrDamaged) {
		if !a.damaged {
			w.fail(damageIsNoticed, "a whole log is called damaged: %v", r.Err)
		}
		w.reach.hit(placeDamagedByHash)
	} else if r.Err != nil && !w.isOn(faultGarbage) && !a.damaged {
		w.fail(factsAreReadable, "an entry of our own does not read: %v", r.Err)
	}
	if w.reader.Phase == activation.Closed && phase != activation.Closed {
		w.checkClosed()
	}
	if err == nil && e.From != a.addr && e.From != "" {
		w.judges.messages.checkLanded(a, e, phase == activation.Closed)
	}
	w.buf = canonicalState(w.buf[:0], w.agent, w.super)
	w.states = append(w.states, maphash.Bytes(hashSeed, w.buf))
}

// checkFloor checks that a claimed ack floor is true, whichever activation claims it.
func (w *shadowReader) checkFloor(e mailbox.Entry) {
	for w.settled < len(w.emitted) && w.emitted[w.settled].landed {
		w.settled++
	}
	if w.settled < len(w.emitted) && w.emitted[w.settled].n <= e.Floor && !w.population.isDamaged(w.emitted[w.settled].to) {
		t := w.emitted[w.settled]
		w.fail(floorsAreTrue, "%s claims that all messages up to %d are out, but %s(%d,%d) to %s is not", w.actor.id, e.Floor, t.kind, t.n, t.i, t.to)
	}
	if e.Floor > uint64(len(w.actor.log)) {
		w.fail(floorsAreTrue, "%s claims a floor of %d before it is there", w.actor.id, e.Floor)
	}
	if e.Start == w.currentActivation() { // the claim of a superseded activation is only logged
		w.covered = max(w.covered, e.Floor)
	}
}

// evidenceFor returns the running call whose result an own entry contains,
// whichever activation posts it.
func (w *shadowReader) evidenceFor(e mailbox.Entry) string {
	if w.agent == nil || e.From != w.actor.addr || len(e.Items) != 1 || e.Items[0].Kind != "returned" || w.reader.Phase == activation.Closed {
		return ""
	}
	var f agent.Returned
	if mailbox.Unmarshal(e.Items[0].Body, &f) != nil {
		return ""
	}
	for _, c := range w.agent.State.Calls {
		if c.ID == f.Call && c.Attempt == f.Attempt && c.Stage == agent.Running {
			return c.ID
		}
	}
	return ""
}

func (w *shadowReader) isRunning(call string) bool {
	for _, c := range w.agent.State.Calls {
		if c.ID == call && c.Stage == agent.Running {
			return true
		}
	}
	return false
}

// currentActivation is the activation of the newest claim in the log.
func (w *shadowReader) currentActivation() string {
	if w.agent != nil {
		return w.agent.State.Activation
	}
	return w.super.State.Activation
}

// checkClosed checks a closed log: every outbox message was delivered.
func (w *shadowReader) checkClosed() {
	a := w.actor
	a.closed = true
	if a.damaged {
		return
	}
	if !w.Ended() {
		w.fail(floorsAreTrue, "%s closes before it has ended", a.id)
	}
	if w.super != nil && w.super.State.Halted {
		return // no actor waits for answers; the closed log answers later requests
	}
	for _, t := range w.emitted {
		if !t.landed && !w.population.isDamaged(t.to) {
			w.fail(floorsAreTrue, "%s closes, but %s(%d,%d) to %s never arrived", a.id, t.kind, t.n, t.i, t.to)
		}
	}
}

// Ended is part of activation.Machine.
func (w *shadowReader) Ended() bool {
	if w.agent != nil {
		return w.agent.Ended()
	}
	return w.super.Ended()
}

// Rests is part of activation.Machine.
func (w *shadowReader) Rests() (int64, bool) {
	if w.agent != nil {
		return w.agent.Rests()
	}
	return w.super.Rests()
}

// Step is part of activation.Machine: it steps the machine and checks the step.
func (w *shadowReader) Step(f activation.Fact) activation.Stepped {
	a := w.actor
	key := w.identifyItem(f)
	if f.From != "" && !f.Damaged {
		sender := w.population.byAddr[f.From]
		again := sender != nil && sender.damaged && f.Kind == "finish"             // a log that lost entries counts its messages anew
		if w.applied[key] && !again && !a.damaged && !w.population.super.damaged { // … and so does one that lost its tail
			w.fail(factsCountOnce, "%s steps %s(%d,%d) of %s twice", a.id, f.Kind, key.n, key.i, f.From)
		}
		w.applied[key] = true
	}
	if w.entry.From == "" {
		id := w.entry.Items[w.cursor-1].ID
		if w.asked[id] {
			w.fail(factsCountOnce, "%s does what was asked by %s twice", a.id, id)
		}
		w.asked[id] = true
	}
	if f.Kind == "resumed" && a.damaged {
		w.noteResumed(f)
	}
	if w.super != nil && f.Kind == (agent.ReportLog{}).Kind() {
		w.reports[decodeFact[agent.ReportLog](w.population, f).Activation] = true
	}
	if sender := w.population.byAddr[f.From]; f.Damaged && sender != nil && w.super != nil {
		m, _ := w.super.State.Member(spec.ID(f.From.Agent()))
		sender.shadow.alarmed, sender.shadow.late, sender.shadow.alarmedAt = true, m.Done, f.N
		if !sender.damaged && !a.damaged { // rot in our own log may change what we have read
			w.fail(damageIsNoticed, "the log of %s is whole and is called short", sender.id)
		}
	}
	if f.From != "" && !f.Damaged {
		w.high[f.From] = max(w.high[f.From], key.n)
	}
	var out activation.Stepped
	if w.agent != nil {
		if w.records {
			w.facts = append(w.facts, f)
		}
		before := w.agent.State
		out = w.agent.Step(f)
		w.judges.futures.checkAgent(before, w.agent.State, f)
		w.judge.checkStep(before, f, out)
	} else {
		before := w.super.State
		out = w.super.Step(f)
		w.judges.futures.checkSupervisor(before, f)
		w.judges.run.checkStep(before, f, out)
	}
	for _, t := range out.Messages {
		l := &sentMessage{messageKey{a.addr, f.N, w.index}, t.To, t.Kind, string(t.Body), false}
		w.index++
		if heard, ok := w.judges.messages.heard[l.messageKey]; ok && heard != l.body {
			w.judges.messages.reused = true
		}
		w.emitted = append(w.emitted, l)
		w.byKey[l.messageKey] = l
	}
	return out
}

// noteResumed notes where a damaged log continues, and whether the damage is noticed.
func (w *shadowReader) noteResumed(f activation.Fact) {
	r := decodeFact[agent.Resumed](w.population, f)
	if w.regrown == 0 && f.N > w.cut && !w.population.super.shadow.reports[r.Activation] { // a late copy reveals nothing
		w.regrown = f.N
	}
	if r.Damaged != "" && !w.alarmed {
		w.alarmed, w.late = true, w.Ended()
	}
}

// identifyItem finds the item of the entry that is being stepped.
func (w *shadowReader) identifyItem(f activation.Fact) messageKey {
	for ; w.cursor < len(w.entry.Items); w.cursor++ {
		item := w.entry.Items[w.cursor]
		same := len(item.Body) == len(f.Body) && (len(f.Body) == 0 || &item.Body[0] == &f.Body[0])
		if same && item.Kind == f.Kind {
			w.cursor++
			return messageKey{w.entry.From, item.N, item.I}
		}
	}
	w.fail(logsDecide, "%s steps %s, which is not in entry %d", w.actor.id, f.Kind, f.N)
	return messageKey{}
}

// compareShell checks that a shell's state is the shadow's at the same entry.
func (w *shadowReader) compareShell(sh *shell) {
	if sh.logReader().Phase == activation.Superseded {
		return
	}
	w.buf = canonicalState(w.buf[:0], sh.state.Agent, sh.state.Super)
	if maphash.Bytes(hashSeed, w.buf) != w.states[sh.logReader().N-1] {
		w.fail(logsDecide, "%s of %s is not what the log says at entry %d", sh.start, sh.actor.id, sh.logReader().N)
	}
}

// tooShort reports whether the supervisor had read of more entries than the log held when it continued.
func (w *shadowReader) tooShort() bool { return w.regrown > 0 && w.heard >= w.regrown }
