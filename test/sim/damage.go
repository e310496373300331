package sim

import (
	"slices"

	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// logDamager damages logs, and tells the judges what they may expect of them from then on.
type logDamager struct {
	*environment
	population *population
	store      *logStore
	processes  *processes
	messages   *messageJudge
	run        *runJudge
}

// loseHead removes the first entries of an agent's log, whether or not a claim covers
// them. The remaining log begins with no task, and its next activation reports that (P26).
func (ld *logDamager) loseHead() {
	a := ld.population.actors[ld.IntN(len(ld.population.actors))]
	if a == ld.population.super || a.closed || a.damaged || len(a.log) < 2 {
		return
	}
	k := ld.between(1, len(a.log)-1)
	if isClientsChange(a.log[k]) || activation.IsTombstone(a.log[k:]) {
		return // docs/chaos.md
	}
	for len(a.shells) > 0 {
		ld.processes.killShell(a.shells[0])
	}
	ld.markDamaged(a, len(a.log)-k)
	a.shadow.rotten = !mayBeginLog(a.log[k])
	if a.shadow.rotten {
		ld.reach.hit(placeBeheaded)
	}
	ld.traceLine("%s loses its first %d entries", a.id, k)
	a.log = append(a.log[:0:0], a.log[k:]...)
	a.shadow.readAgain()
}

// isClientsChange reports whether an entry is a steering, or sets another model or layers: it may begin a log, so a
// log whose head ends before it seems to be whole.
func isClientsChange(m mailbox.Message) bool {
	e, err := mailbox.Decode(m.Data)
	return err == nil && len(e.Items) > 0 && e.From == "" && slices.Contains([]string{"steered", "model_set", "context_set"}, e.Items[0].Kind)
}

// mayBeginLog reports whether an entry may begin an agent's log, as the judge reads PROTOCOL P26.
func mayBeginLog(m mailbox.Message) bool {
	e, err := mailbox.Decode(m.Data)
	if err != nil || len(e.Items) == 0 {
		return false
	}
	kind := e.Items[0].Kind
	switch e.From {
	case "":
		return kind == "recalled" || kind == "canceled" || kind == "steered" || kind == "model_set" || kind == "context_set"
	case mailbox.At(runName, mailbox.Super):
		return kind == "submitted" || kind == "recalled" || kind == "canceled"
	}
	return e.From == m.To && kind == "closed"
}

// loseRunTail removes the newest entries of the supervisor's log, as a crash does
// where the store did not sync its disk. Half of the time it removes the end of a member, and
// everything after that.
func (ld *logDamager) loseRunTail() {
	a := ld.population.super
	if a.closed || a.damaged || len(a.log) < 2 {
		return
	}
	keep := max(1, len(a.log)-ld.between(1, 6))
	if at := placesOfEnds(a.log); len(at) > 0 && ld.percent(50) {
		keep = at[ld.IntN(len(at))]
	}
	for len(a.shells) > 0 {
		ld.processes.killShell(a.shells[0])
	}
	ld.markDamaged(a, keep)
	for _, t := range a.shadow.emitted {
		if t.landed && t.n > uint64(keep) {
			ld.messages.heard[t.messageKey] = t.body
		}
	}
	ld.reach.hit(placeRunTailLost)
	ld.traceLine("the log of the run loses its tail, %d entries are left", keep)
	a.log = a.log[:keep:keep]
	ld.run.over = 0
	ld.forgetLostEntries()
}

// forgetLostEntries makes the judge expect only the remaining entries of the run's log.
func (ld *logDamager) forgetLostEntries() {
	w := &ld.population.super.shadow
	w.high = map[mailbox.Address]uint64{}
	w.readAgain()
	for _, a := range ld.population.actors {
		account := w.super.State.Pool.Account(string(a.id))
		a.shadow.heard = min(a.shadow.heard, w.high[a.addr])
		a.shadow.granted = min(a.shadow.granted, max(account.Open, account.Closed))
	}
}

// placesOfEnds are the places of a supervisor's log before each Finish.
func placesOfEnds(log []mailbox.Message) (at []int) {
	for i := 1; i < len(log); i++ {
		e, err := mailbox.Decode(log[i].Data)
		if err == nil && slices.ContainsFunc(e.Items, func(t mailbox.Item) bool { return t.Kind == "finish" }) {
			at = append(at, i)
		}
	}
	return at
}

// truncateLog removes the tail of an agent's log while no shell holds it. Half
// of the time the next claim is the first entry appended after that: where other
// entries fill the gap first, only a reservation reveals that the log lost entries.
func (ld *logDamager) truncateLog() {
	a := ld.population.actors[ld.IntN(len(ld.population.actors))]
	if a == ld.population.super || a.closed || a.damaged || len(a.log) < 2 {
		return
	}
	for len(a.shells) > 0 {
		ld.processes.killShell(a.shells[0])
	}
	keep := max(1, len(a.log)-ld.between(1, 6))
	if at := placesOfStarted(a.log); len(at) > 0 && ld.percent(80) {
		keep = at[ld.IntN(len(at))] // before a side effect, which its log then knows nothing of
	}
	if ld.isOn(faultModels) && !a.hasTask(a.log[keep-1].Place) {
		return // docs/chaos.md
	}
	ld.markDamaged(a, keep)
	ld.traceLine("truncate %s to %d entries", a.id, keep)
	a.log = a.log[:keep:keep]
	a.shadow.readAgain()
	if ld.processes.takeOver(a); ld.percent(50) {
		for uint64(len(a.log)) < a.shadow.heard {
			ld.store.appendEntry(a.addr, ld.store.encodeEntry(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{Kind: "steered"}}}), "filler")
		}
		return
	}
	claim := ld.store.pending[len(ld.store.pending)-1]
	claim.landed, claim.acked = 1, true
	ld.store.appendEntry(a.addr, claim.data, claim.name)
	claim.place = a.newestPlace()
}

// placesOfStarted are the places of a log before each Started.
func placesOfStarted(log []mailbox.Message) (at []int) {
	for i := 1; i < len(log); i++ {
		if e, err := mailbox.Decode(log[i].Data); err == nil && len(e.Items) > 0 && e.Items[0].Kind == "started" {
			at = append(at, i)
		}
	}
	return at
}

// dropCovered removes the first entries of an agent's log, all of them under an
// ack floor that a current activation has claimed.
func (ld *logDamager) dropCovered(a *actor, covered int) {
	k := ld.between(1, covered)
	if k < len(a.log) && isClientsChange(a.log[k]) {
		return // docs/chaos.md
	}
	ld.markDamaged(a, len(a.log)-k)
	a.shadow.rotten = true
	ld.traceLine("behead %s of %d entries", a.id, k)
	a.log = append(a.log[:0:0], a.log[k:]...)
	a.shadow.readAgain()
}

// flipBit changes a byte of an entry that a later claim covers.
func (ld *logDamager) flipBit() {
	a := ld.population.actors[ld.IntN(len(ld.population.actors))]
	covered := a.shadow.covered
	if a.closed || a.damaged || covered == 0 {
		return
	}
	for len(a.shells) > 0 {
		ld.processes.killShell(a.shells[0])
	}
	if a != ld.population.super && ld.percent(30) {
		ld.dropCovered(a, int(covered))
		return
	}
	i := ld.IntN(int(covered))
	ld.markDamaged(a, len(a.log))
	a.shadow.rotten = true
	data := append([]byte{}, a.log[i].Data...)
	if len(data) == 0 {
		data = []byte{0}
	}
	data[ld.IntN(len(data))] ^= byte(1 << ld.IntN(8))
	if e, err := mailbox.Decode(a.log[i].Data); err == nil && e.From == a.addr && e.Items[0].Kind == "resumed" {
		// One bit of a Resumed can make it a later claim, and all after it
		// superseded, whose hashes are only logged (PROTOCOL P13).
		data[0] = unreadable
	}
	ld.traceLine("rot in entry %d of %s", i+1, a.id)
	a.log = append(a.log[:0:0], a.log...)
	a.log[i].Data = data
	a.shadow.readAgain()
}

// unreadable is a byte that no entry begins with.
const unreadable = 0xc1

// markDamaged marks an actor whose log was damaged.
func (ld *logDamager) markDamaged(a *actor, keep int) {
	a.damaged = true
	a.shadow.cut = uint64(keep)
	a.shadow.heard = ld.population.super.shadow.high[a.addr]
	account := ld.population.super.shadow.super.State.Pool.Account(string(a.id))
	a.shadow.granted = max(account.Open, account.Closed)
	a.shadow.done = a.shadow.Ended()
}
