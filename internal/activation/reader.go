// Package activation is one activation of an actor as a value without I/O. Step takes a State and an
// Input and returns the next State and the Actions for the shell: claim, replay, append, passivate, drain,
// close (PROTOCOL P1). Its LogReader reads the actor's log in order and decides which facts count, which
// messages may be sent (PROTOCOL P6, P12) and which effects may begin.
//
// The shells of package actors and the simulator drive the same code.
package activation

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

// Fact is one item of a log that counts, as a Machine steps it.
type Fact struct {
	N          uint64 // index of its entry
	At         int64  // stamp, never decreasing
	Activation string // nonce of the current activation
	From       mailbox.Address
	Damaged    bool // the sender's log is shorter than at an earlier read
	Kind       string
	Body       []byte
}

// OutboxMessage is a message that an actor sends to another.
type OutboxMessage struct {
	To   mailbox.Address
	N    uint64
	I    int
	Kind string
	Body []byte
	// Hold marks a message that may wait a moment, to share an entry with another one to the
	// same receiver.
	Hold bool
}

// Stepped is what a Machine returns for a fact.
type Stepped struct {
	Messages []OutboxMessage // without N and I
	Effects  []any           // effects for the world, in order
	Events   []event.Event
	Err      error // the fact did not decode: the step changed nothing
}

// Machine is the pure state machine that steps a log: an agent or a supervisor.
type Machine interface {
	Step(f Fact) Stepped
	// Ended reports whether the machine is done for good.
	Ended() bool
	// Rests reports whether the machine has nothing under way, and when its next timer is due;
	// 0: never.
	Rests() (due int64, ok bool)
}

// Phase of an activation.
type Phase string

// Phases. A reader is Replaying until it has read its own claim as the current one,
// Superseded once it has read a later claim, and Closed once it has read Closed. Recorded
// expectations (actors/testdata/mailboxes) contain the texts.
const (
	Replaying  Phase = "replaying"
	Active     Phase = "active"
	Superseded Phase = "superseded"
	Closed     Phase = "closed"
)

// Limits of an activation.
const (
	RequestsMax   = 1024 // commands from outside that an actor accepts
	StartsMax     = 3    // claims without a Checkpoint between them
	CheckpointGap = 64   // entries after which an actor that posts nothing claims its ack floor
)

// ErrDamaged says that the log is not what one of its own entries says it was. Users read its
// text, and recorded events contain it.
var ErrDamaged = errors.New("activation: the log is damaged")

// LogReader reads the log for one activation, and keeps what it has read and derived so far.
// It is not safe for concurrent use.
type LogReader struct {
	Addr  mailbox.Address
	Start string // nonce
	Epoch mailbox.Epoch
	Phase Phase
	N     uint64 // entries read
	At    int64
	// Garbage counts entries that did not decode, Dropped items that do not count.
	Garbage, Dropped int
	// Damage describes damage of the log, if there is any: the next claim carries it.
	Damage string
	// Found lists where the configuration of this node differs from the agent's task; a claim
	// carries it if the log does not record it yet.
	Found map[string]string
	// Foreign describes the part of the log that is newer than this node; the activation stops
	// there.
	Foreign string
	// Deleted says that the log was deleted, and that only its tombstone is left (PROTOCOL
	// P14).
	Deleted bool

	machine              Machine
	currentEpoch         mailbox.Epoch // the highest claimed so far
	currentNonce         string        // the activation that claimed it
	interrupted          agent.Phase   // in which the activation before that one ended, if not in order
	watermarks           map[mailbox.Address]watermark
	requests             map[string]struct{}
	floor                uint64 // the highest claimed
	chain                [sha256.Size]byte
	hasher               hash.Hash   // of extendHash
	hashes               []chainHash // of the log up to base+1, base+2, …
	base                 uint64
	claimed              uint64         // the index of the last own entry: it claimed an ack floor
	heardSupervisor      bool           // the supervisor has sent the agent a message
	damageClaimRequested bool           // the claim that carries Damage was asked for
	acceptedHalt         bool           // the supervisor has said that the run is damaged
	driftClaimRequested  bool           // the claim that carries Found was asked for
	last                 *OutboxMessage // an agent's Finish
	newerBeforeClaim     string         // describes the entry before the claim that is newer than this node
	Outbox               Outbox
}

// watermark is the watermark of one sender: the last message that was read from it, and the
// activations in which it sent ReportLog.
type watermark struct {
	n           uint64
	i           int
	ended       bool // the sender's end was read, or that its log is damaged
	activations map[string]struct{}
}

func (m watermark) isBelow(n uint64, i int) bool { return n > m.n || n == m.n && i > m.i } //mutant:below-watermark

type chainHash [16]byte

// NewLogReader makes a reader that has read nothing. With an empty start the reader only watches:
// it never becomes active.
func NewLogReader(addr mailbox.Address, start string, epoch mailbox.Epoch, m Machine) *LogReader {
	return &LogReader{Addr: addr, Start: start, Epoch: epoch, Phase: Replaying, machine: m,
		watermarks: map[mailbox.Address]watermark{}, requests: map[string]struct{}{}}
}

// Read is the result of reading one entry.
type Read struct {
	N       uint64
	Effects []any         // effects to begin now, only while active
	Events  []event.Event // of all steps of the entry, whether active or not
	// Activated says that this entry is the activation's own claim, and that the claim has
	// become current.
	Activated bool
	// Reclaim says that the activation's own claim was not the highest, or lacked the damage
	// of the log; claim again with LogReader.Epoch and LogReader.Damage.
	Reclaim bool
	// Own is the id of an entry that this activation wrote and has now read back.
	Own string
	// Repeat holds the answers of a closed log to an actor that does not know of its end; Lost
	// says that an answer is due, but that the log's last message is gone.
	Repeat []OutboxMessage
	Lost   bool
	asked  bool // the supervisor asked for the status of an agent that has ended
	// Err says that the entry, or an item of it, did not decode, or it is ErrDamaged.
	Err error
}

// Next reads the next entry of the log.
func (l *LogReader) Next(m mailbox.Message) Read {
	l.N++
	l.At = max(l.At, m.At)
	l.extendHash(m.Data)
	out := Read{N: l.N}
	if l.Phase == Closed { //mutant:closed-reads-nothing
		l.answerAfterClose(m.Data, &out)
		return out
	}
	if l.Phase == Superseded {
		return out
	}
	e, err := mailbox.Decode(m.Data)
	if err != nil {
		if l.rejectNewerForm(err) {
			return out
		}
		l.Garbage++
		l.Outbox.Put(l.N, nil)
		out.Err = fmt.Errorf("entry %d of %s: %w", l.N, l.Addr, err)
		if l.N == 1 && !errors.Is(err, mailbox.ErrForm) { // a newer node may have begun this log
			out.Err = fmt.Errorf("%w: %w", ErrDamaged, out.Err)
			l.Damage = out.Err.Error()
		}
		return out
	}
	if err := l.checkFirst(e); err != nil { //mutant:headless-log-goes-on
		out.Err, l.Damage = err, err.Error()
	}
	var messages []OutboxMessage
	switch {
	case e.From == l.Addr:
		messages = l.readOwn(e, &out)
	case e.From == "":
		messages = l.readCommands(e, &out)
	case e.From.Run() == l.Addr.Run():
		if l.Addr.Agent() == mailbox.Super && l.machine.Ended() {
			l.cancelStranded(e, &out)
		}
		messages = l.readMessages(e, &out)
	default:
		l.Dropped += len(e.Items)
	}
	if errors.Is(out.Err, ErrDamaged) && l.Damage == "" {
		l.Damage = out.Err.Error()
	}
	if l.Damage != "" && l.Phase == Active && !l.damageClaimRequested { //mutant:damage-is-reported
		l.requestReclaim(&out)
	}
	l.queueMessages(messages)
	if out.asked && l.last != nil {
		out.Repeat = []OutboxMessage{*l.last}
	}
	if l.Phase != Active { //mutant:acts-before-own-resumed
		out.Effects = nil
	}
	return out
}

// extendHash extends the chain of hashes over the log as it is.
func (l *LogReader) extendHash(data []byte) {
	if l.hasher == nil {
		l.hasher = sha256.New()
	}
	l.hasher.Reset()
	_, _ = l.hasher.Write(l.chain[:]) // a hash returns no error
	_, _ = l.hasher.Write(data)
	l.hasher.Sum(l.chain[:0])
	l.hashes = append(l.hashes, chainHash(l.chain[:16]))
}

// queueMessages gives the messages of entry N their identity and adds them to the outbox. While
// replaying, it skips messages under the ack floor, which are already acknowledged.
func (l *LogReader) queueMessages(messages []OutboxMessage) {
	for i := range messages {
		messages[i].N, messages[i].I = l.N, i
	}
	l.keepFinish(messages)
	l.Outbox.Put(l.N, messages)
	l.Outbox.Forget(l.floor)
}

// readOwn reads an entry that a shell of this actor wrote.
func (l *LogReader) readOwn(e mailbox.Entry, out *Read) []OutboxMessage {
	if len(e.Items) == 0 {
		return nil
	}
	if l.N == 1 && e.Items[0].Kind == "closed" { // see tombstone.go
		l.readTombstone(e.Items[0])
		return nil
	}
	if e.Start == l.Start {
		out.Own = e.Items[0].ID
	}
	inForce := e.Start != "" && e.Epoch == l.currentEpoch && e.Start == l.currentNonce //mutant:forged-before-first-claim
	// An entry also counts if the claim of its activation never arrived: that claim is lost.
	l.readAckFloor(e, inForce || e.Items[0].Kind == "resumed" || e.Epoch.Higher(l.currentEpoch), out) //mutant:hash-of-lost-activation-only-logged
	if e.Items[0].Kind == "resumed" {
		return l.readClaim(e, out)
	}
	var messages []OutboxMessage
	for _, item := range e.Items {
		switch {
		case inForce && l.rejectUnknownFact(item):
			return nil
		case !ownKinds[item.Kind], !inForce && item.Kind != "returned": //mutant:own-entry-counts
			// A superseded activation decides nothing; what a tool returned is evidence.
			l.Dropped++
			continue
		case item.Kind == "closed":
			l.Phase = Closed //mutant:wakes-without-claim
		}
		messages = append(messages, l.stepItem(item, "", false, out)...)
	}
	return messages
}

// Requests is how many requests of clients were read. After RequestsMax of them, further ones have no effect, but for
// cancels: whoever fills a log must not keep the run from being stopped, and a cancel that is read twice is harmless.
func (l *LogReader) Requests() int { return len(l.requests) }

// readCommands reads the requests of a client, each request once.
func (l *LogReader) readCommands(e mailbox.Entry, out *Read) []OutboxMessage {
	var messages []OutboxMessage
	for _, item := range e.Items {
		_, known := l.requests[item.ID]
		isFull := len(l.requests) >= RequestsMax
		if known || item.ID == "" || !commandKinds[item.Kind] || isFull && item.Kind != canceledKind { //mutant:commands-twice
			l.Dropped++
			continue
		}
		if !isFull {
			l.requests[item.ID] = struct{}{}
		}
		messages = append(messages, l.stepItem(item, "", false, out)...)
	}
	return messages
}

// readMessages reads the messages of another actor of the run. Messages up to the sender's
// watermark were read before.
func (l *LogReader) readMessages(e mailbox.Entry, out *Read) []OutboxMessage {
	var messages []OutboxMessage
	m := l.watermarks[e.From]
	for _, item := range e.Items {
		activation := activationOf(item)
		_, heard := m.activations[activation]
		fresh := m.isBelow(item.N, item.I)
		damaged := activation != "" && !heard && !fresh //mutant:back-check
		ends := !fresh && !m.ended && l.isDamagedEnd(e.From, item)
		if halts := ends || l.acceptFirstHalt(e.From, item); !mayBeSent(item.Kind) || !damaged && !fresh && !halts { //mutant:read-before
			l.Dropped++
			continue
		}
		if fresh {
			m.n, m.i = item.N, item.I
		}
		m.ended = m.ended || damaged || item.Kind == "finish"
		if activation != "" && !heard {
			if m.activations == nil {
				m.activations = map[string]struct{}{}
			}
			m.activations[activation] = struct{}{}
		}
		l.watermarks[e.From] = m
		messages = append(messages, l.stepItem(item, e.From, damaged, out)...)
		l.noteStatusAsked(item, out)
	}
	return messages
}

func (l *LogReader) stepItem(item mailbox.Item, from mailbox.Address, damaged bool, out *Read) []OutboxMessage {
	r := l.machine.Step(Fact{N: l.N, At: l.At, Activation: l.currentNonce, From: from, Damaged: damaged, Kind: item.Kind, Body: item.Body})
	if r.Err != nil {
		l.Garbage++
		out.Err = fmt.Errorf("entry %d of %s: %w", l.N, l.Addr, r.Err)
	}
	out.Effects = append(out.Effects, r.Effects...)
	out.Events = append(out.Events, r.Events...)
	return r.Messages
}

// CheckpointDue reports whether the actor has read many entries without claiming its ack
// floor.
func (l *LogReader) CheckpointDue() bool {
	return l.Phase == Active && l.Outbox.Floor() > l.floor && l.N-l.claimed >= CheckpointGap
}

// MayClose reports whether the machine is done and all its messages are acknowledged.
func (l *LogReader) MayClose() bool {
	return l.Phase == Active && l.machine.Ended() && l.Outbox.Empty() //mutant:closes-with-a-full-outbox
}

// Floor is the highest ack floor that the log claims.
func (l *LogReader) Floor() uint64 { return l.floor }
