package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// logStore is the store of the logs, and the way to it: an append may fail, land twice, land late, or lose its
// acknowledgement.
type logStore struct {
	*environment
	population *population
	processes  *processes
	injector   *injector
	pending    []*pendingAppend  // appends that have not been acknowledged
	copies     []lateCopy        // copies that may still land
	request    int               // number of the newest command
	order      []mailbox.Address // of the entries of all logs
}

// findDelegating is an agent below the root whose Delegate is on its way, if any.
func (l *logStore) findDelegating() spec.ID {
	for _, f := range l.pending {
		if f.messages != nil && f.landed == 0 && f.from.actor.id != spec.Root && strings.Contains(f.name, " delegate(") {
			return f.from.actor.id
		}
	}
	return ""
}

// landAppend puts a flight into its log. Its acknowledgement may be lost, then the
// same bytes come again; and it may fail before it has landed.
func (l *logStore) landAppend(f *pendingAppend) {
	if !l.faultsEnded && l.isOn(faultFailing) && l.percent(8) {
		l.traceLine("append fails, to be tried again: %s", f.name) //mutant:gives-up-sending
		return
	}
	if !l.faultsEnded && l.isOn(faultFailing) && l.percent(fullOdds) {
		l.traceLine("the store is full: %s", f.name)
		l.endAppend(f, mailbox.ErrFull)
		return
	}
	f.landed++
	if f.landed == 2 {
		l.reach.hit(placeLandedTwice)
	}
	l.appendEntry(f.to, f.data, f.name)
	f.place = l.population.byAddr[f.to].newestPlace()
	if !l.faultsEnded && l.isOn(faultLostAck) && l.percent(15) {
		l.traceLine("its acknowledgement is lost")
		return
	}
	f.acked = true
	if !l.faultsEnded && l.isOn(faultLateCopy) && l.percent(8) {
		l.copies = append(l.copies, lateCopy{f.to, f.data, f.name})
	}
}

// fullOdds is how often a store has no room for a while, in percent.
const fullOdds = 2

// acknowledge lets the sender know that its entry is in the log.
func (l *logStore) acknowledge(f *pendingAppend) {
	l.traceLine("ack to %s: %s", f.from.start, f.name)
	l.endAppend(f, nil)
}

// endAppend ends a flight.
func (l *logStore) endAppend(f *pendingAppend, err error) {
	l.pending = slices.DeleteFunc(l.pending, func(x *pendingAppend) bool { return x == f })
	switch {
	case f.claim:
		l.processes.learnFact(f.from, activation.ClaimAppended{Place: f.place, Err: err})
	case f.messages != nil:
		l.processes.learnFact(f.from, activation.MessagesSent{To: f.to, Messages: f.messages, Err: err})
	case f.answer != nil:
		l.processes.learnFact(f.from, activation.AnswerSent{Message: *f.answer, Err: err})
	case err != nil:
		l.processes.learnFact(f.from, activation.OwnFailed{Own: *f.own, Err: err})
	}
}

func (l *logStore) beginAppend(f *pendingAppend) {
	sh := f.from
	if f.messages != nil {
		for _, o := range l.pending {
			if o.from == sh && o.to == f.to && o.messages != nil {
				l.fail(oneAppendAtATime, "%s has two flights to %s", sh.start, f.to)
			}
		}
	}
	l.pending = append(l.pending, f)
	if f.messages != nil && !l.faultsEnded && l.isOn(faultCancel) && l.findDelegating() == sh.actor.id && l.percent(raceOdds) {
		l.injector.cancelSomething()
	}
}

// dropAppends drops the appends of a shell that are in flight: each may still land later (faultLateCopy).
func (l *logStore) dropAppends(sh *shell) {
	l.pending = slices.DeleteFunc(l.pending, func(f *pendingAppend) bool {
		if f.from != sh {
			return false
		}
		if !l.faultsEnded && f.landed == 0 && l.isOn(faultLateCopy) && l.percent(50) {
			l.copies = append(l.copies, lateCopy{f.to, f.data, f.name})
		}
		return true
	})
}

// pendingAppend is an append that has not been acknowledged.
type pendingAppend struct {
	from     *shell
	to       mailbox.Address
	data     []byte
	name     string
	landed   int
	place    uint64 // where it landed last
	acked    bool
	claim    bool // one of the four is set, and says what it is
	own      *activation.OwnResult
	messages []activation.OutboxMessage
	answer   *activation.OutboxMessage
}

// lateCopy is a copy of an append that lands whenever it likes.
type lateCopy struct {
	to   mailbox.Address
	data []byte
	name string
}

// appendEntry puts an entry into a log: this is the one way in.
func (l *logStore) appendEntry(to mailbox.Address, data []byte, name string) {
	a := l.population.findActor(to)
	at := l.now
	if l.isOn(faultClock) && l.percent(10) {
		at -= int64(l.IntN(50))
	}
	a.log = append(a.log, mailbox.Message{To: to, Place: a.newestPlace() + 1, At: at, Data: data})
	l.order = append(l.order, to)
	l.traceLine("  log %s #%d: %s", to.Agent(), len(a.log), name)
	a.shadow.readEntry()
	a.reopened = a.reopened || a.closed && activation.Reopens(a.addr, data)
}

// appendCommand appends the command of a client, which has its acknowledgement already.
func (l *logStore) appendCommand(a *actor, kind string, body any) {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		l.fail(factsAreReadable, "a command does not encode: %v", err)
	}
	l.request++
	e := mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: fmt.Sprintf("req%d", l.request), Kind: kind, Body: raw}}}
	data := l.encodeEntry(e)
	l.appendEntry(a.addr, data, "command "+kind)
	if l.isOn(faultLateCopy) && !l.faultsEnded && l.percent(10) {
		l.copies = append(l.copies, lateCopy{a.addr, data, "command " + kind})
	}
}

func (l *logStore) encodeEntry(e mailbox.Entry) []byte {
	data, err := mailbox.Encode(e)
	if err != nil {
		l.fail(factsAreReadable, "an entry does not encode: %v", err)
	}
	return data
}
