package replay

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// identity names a message within the log of its sender (PROTOCOL P6).
type identity struct {
	n uint64
	i int
}

// decision is a message that this version sends.
type decision struct {
	to     mailbox.Address
	kind   string
	body   []byte
	repeat bool // an answer of a closed log, which need not be delivered
}

// recordedMessage is a message as the log of its receiver records it.
type recordedMessage struct {
	from mailbox.Address
	id   identity
	kind string
	body []byte
	at   uint64 // the entry that holds it
}

// replayedLog is one log with the machine that reads it.
type replayedLog struct {
	at     mailbox.Address
	reader *activation.LogReader
	agent  *activation.Agent // one of these two
	super  *activation.Supervisor

	machine activation.Machine
	stamps  []mailbox.Stamp // of its entries
	n       uint64          // entry whose messages are counted
	sent    int             // messages of that entry so far
	decided map[identity]decision
	order   []identity                   // of decided
	asked   map[string]struct{}          // what the machine asked the world for, ever
	finish  *agent.Finish                // the last that was sent
	inbox   []recordedMessage            // from other actors
	arrived map[arrival]struct{}         // the same, by identity
	newest  map[mailbox.Address]identity // the last of each sender
	counted map[countedItem]bool         // items of other actors that the machine accepted
	answers int
	damaged bool // an entry says that a log of the run is damaged

	differences []Difference

	watchBoundaries bool
	boundaries      []RecordedBoundary
}

type arrival struct {
	from mailbox.Address
	id   identity
}

type countedItem struct {
	n    uint64
	kind string
}

func newReplayedLog(at mailbox.Address, watch bool) *replayedLog {
	l := &replayedLog{at: at, decided: map[identity]decision{}, asked: map[string]struct{}{}, arrived: map[arrival]struct{}{},
		counted: map[countedItem]bool{}, newest: map[mailbox.Address]identity{}}
	if at.Agent() == mailbox.Super {
		l.super = &activation.Supervisor{Addr: at, Watch: watch}
		l.machine = l.super
	} else {
		l.agent = &activation.Agent{Addr: at, Watch: watch}
		l.machine = l.agent
	}
	l.reader = activation.Watch(at, l)
	return l
}

// Ended and Rests ask the machine.
func (l *replayedLog) Ended() bool                 { return l.machine.Ended() }
func (l *replayedLog) Rests() (due int64, ok bool) { return l.machine.Rests() }

// Step steps a fact that counts: it compares the fact with what the machine asked for, and notes what
// the machine decides.
func (l *replayedLog) Step(f activation.Fact) activation.Stepped {
	l.checkAsked(f)
	l.noteBoundary(f)
	out := l.machine.Step(f)
	if f.From != "" && out.Err == nil {
		l.counted[countedItem{f.N, f.Kind}] = true
	}
	if f.N != l.n {
		l.n, l.sent = f.N, 0
	}
	for _, m := range out.Messages {
		l.noteDecision(identity{f.N, l.sent}, decision{to: m.To, kind: m.Kind, body: m.Body})
		l.sent++
	}
	for _, effect := range out.Effects {
		if key := effectKey(effect); key != "" {
			l.asked[key] = struct{}{}
		}
	}
	return out
}

func (l *replayedLog) noteDecision(id identity, d decision) {
	if _, known := l.decided[id]; known && d.repeat {
		return
	}
	l.decided[id] = d
	l.order = append(l.order, id)
	if l.agent != nil && d.kind == (agent.Finish{}).Kind() {
		var f agent.Finish
		if mailbox.Unmarshal(d.body, &f) == nil {
			l.finish = &f
		}
	}
}

// noteRepeats notes the answers of a closed log.
func (l *replayedLog) noteRepeats(messages []activation.OutboxMessage) {
	for _, m := range messages {
		l.noteDecision(identity{m.N, m.I}, decision{m.To, m.Kind, m.Body, true})
	}
}

// noteRecorded notes the messages of other actors that an entry records.
func (l *replayedLog) noteRecorded(m mailbox.Message) {
	e, err := mailbox.Decode(m.Data)
	l.damaged = l.damaged || err == nil && entryRecordsDamage(e)
	if err != nil || e.From == "" || e.From == l.at || e.From.Run() != l.at.Run() {
		return
	}
	for _, item := range e.Items {
		id := identity{item.N, item.I}
		l.inbox = append(l.inbox, recordedMessage{e.From, id, item.Kind, item.Body, uint64(len(l.stamps))})
		l.arrived[arrival{e.From, id}] = struct{}{}
		l.newest[e.From] = id
	}
}

// concludesDamage reports whether the machine has ended because a log of the run is damaged.
func (l *replayedLog) concludesDamage() bool {
	if l.agent != nil {
		return l.agent.State.Outcome.Reason == spec.LogDamaged
	}
	return l.super.State.Halted || l.super.State.Outcome.Reason == spec.LogDamaged
}

// entryRecordsDamage reports whether an entry says that a log of the run is damaged.
func entryRecordsDamage(e mailbox.Entry) bool {
	for _, item := range e.Items {
		fact, ok := decodeMessage(mailbox.At("", "agent"), item.Kind, item.Body)
		if !ok {
			fact, ok = decodeMessage(mailbox.At("", mailbox.Super), item.Kind, item.Body)
		}
		if !ok {
			continue
		}
		switch f := fact.(type) {
		case agent.Resumed:
			ok = f.Damaged != ""
		case agent.Canceled:
			ok = f.As == spec.LogDamaged
		case agent.ReportLog:
			ok = f.Damaged != ""
		case agent.Finish:
			ok = f.Outcome.Reason == spec.LogDamaged
		default:
			ok = false
		}
		if ok {
			return true
		}
	}
	return false
}

// stampOf returns the stamp of an entry, or that of the last one.
func (l *replayedLog) stampOf(n uint64) mailbox.Stamp {
	if len(l.stamps) == 0 || n == 0 {
		return mailbox.Stamp{}
	}
	return l.stamps[min(n, uint64(len(l.stamps)))-1]
}

func (l *replayedLog) addDifference(n uint64, recorded, decided string) {
	l.differences = append(l.differences, Difference{Log: l.at, Entry: n, Recorded: recorded, New: decided, stamp: l.stampOf(n)})
}
