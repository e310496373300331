// Package life is one life of an actor's shell as a value without I/O: it
// reads the actor's log in order and says which facts count, which letters may
// go out and what the world is asked to do (PROTOCOL, "Lives" and "Messages").
//
// The shells of package actors and the simulator drive the same code. A Life
// is not safe for concurrent use; Start makes one for each start of a shell.
package life

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/mailbox"
)

// Fact is one item of a log that counts, as a Machine steps it.
type Fact struct {
	N       uint64 // ordinal of its entry
	At      int64  // stamp, never decreasing
	Life    string // the start in force
	From    mailbox.Address
	Damaged bool // the sender's log is shorter than what was heard from it
	Kind    string
	Body    []byte
}

// Letter is a message that an actor sends to another.
type Letter struct {
	To   mailbox.Address
	N    uint64
	I    int
	Kind string
	Body []byte
	// Hold: the letter may wait a moment for another one to the same receiver.
	Hold bool
}

// Note is something that happened in a step, for observers.
type Note struct {
	Kind string
	Turn int
	Data any
}

// Stepped is what a Machine makes of a fact.
type Stepped struct {
	Letters []Letter // without N and I
	World   []any    // effects for the world, in order
	Notes   []Note
	Err     error // the fact could not be decoded: it was stepped as nothing
}

// Machine is a pure machine behind a log: an agent or a supervisor.
type Machine interface {
	Step(f Fact) Stepped
	// Ended reports whether the machine is done for good.
	Ended() bool
	// Rests reports whether nothing is under way in the world, and when the next
	// timer is due; 0: never.
	Rests() (due int64, ok bool)
}

// Phase of a life.
type Phase string

// Phases. A life folds until it has read its own Resumed in force; it is silent
// once it has read a later one; it is closed once it has read Closed.
const (
	Folding Phase = "folding"
	Alive   Phase = "alive"
	Silent  Phase = "silent"
	Closed  Phase = "closed"
)

// Limits of a life.
const (
	RequestsMax   = 1024 // commands from outside that an actor accepts
	StartsMax     = 3    // Resumed without a Checkpoint between them
	scratchKept   = 4096 // bytes that a life keeps for hashing
	CheckpointGap = 64   // entries after which an actor that posts nothing claims its floor
)

// ErrDamaged: the log is not what an own entry says it was.
var ErrDamaged = errors.New("life: the log is damaged")

// Life is one start of a shell at one place of its log.
type Life struct {
	Addr  mailbox.Address
	Start string // nonce
	Epoch mailbox.Epoch
	Phase Phase
	N     uint64 // entries read
	At    int64
	// Garbage counts entries that did not decode; Dropped items that do not count.
	Garbage, Dropped int
	// Damage is what is wrong with the log, if anything: the next claim says so.
	Damage string
	// Found is what this node has otherwise than the agent's task says; a claim
	// says so if the log does not know it yet.
	Found map[string]string
	// Rules are the newest that this node knows. Default: agent.Rules.
	Rules int
	// Foreign is what of the log is newer than this node; it is silent since then.
	Foreign string
	// Buried: the log was deleted, and this is what is left of it (PROTOCOL P14).
	Buried bool

	machine  Machine
	force    mailbox.Epoch // the highest claimed so far
	forcer   string        // the start that claimed it
	marks    map[mailbox.Address]mark
	requests map[string]struct{}
	floor    uint64 // the highest claimed
	chain    [sha256.Size]byte
	scratch  []byte // of extend
	hashes   []hash // of the log up to base+1, base+2, …
	base     uint64
	claimed  uint64  // the ordinal of the last own entry: it claimed a floor
	tasked   bool    // its supervisor has spoken to the agent
	confess  bool    // the claim that says Damage was asked for
	halted   bool    // the supervisor has said that the run is damaged
	looked   bool    // the claim that says Found was asked for
	last     *Letter // an agent's Finish
	newer    string  // what was read before the claim and is newer than this node
	Outbox   Outbox
}

// mark is the watermark of one sender: the last letter that was read of it,
// and the lives that it said Back in.
type mark struct {
	n     uint64
	i     int
	lives map[string]struct{}
}

func (m mark) below(n uint64, i int) bool { return n > m.n || n == m.n && i > m.i } //mutant:below-watermark

type hash [16]byte

// New makes a life that has read nothing. A Start of "" only watches: it never
// comes alive.
func New(addr mailbox.Address, start string, epoch mailbox.Epoch, m Machine) *Life {
	return &Life{Addr: addr, Start: start, Epoch: epoch, Phase: Folding, machine: m,
		marks: map[mailbox.Address]mark{}, requests: map[string]struct{}{}}
}

// Read is what one entry brought.
type Read struct {
	N     uint64
	World []any  // to be done now, only while alive
	Notes []Note // of all steps of the entry, whether alive or not
	// Cames says that this entry is the life's own Resumed and has come into force.
	Came bool
	// Reclaim: the own Resumed was not the highest, or it did not say what is wrong
	// with the log; claim again with Life.Epoch and Life.Damage.
	Reclaim bool
	// Own is the id of an entry that this life wrote and that has come round.
	Own string
	// Repeat is what a closed log answers to whom that does not know of its end; Lost:
	// it should, and its last word is gone.
	Repeat []Letter
	Lost   bool
	asked  bool // how the agent stands, which has ended
	// Err: the entry, or an item of it, did not decode, or ErrDamaged.
	Err error
}

// Next reads the next entry of the log.
func (l *Life) Next(m mailbox.Message) Read {
	l.N++
	l.At = max(l.At, m.At)
	l.extend(m.Data)
	out := Read{N: l.N}
	if l.Phase == Closed { //mutant:closed-reads-nothing
		l.spokenTo(m.Data, &out)
		return out
	}
	if l.Phase == Silent {
		return out
	}
	e, err := mailbox.Decode(m.Data)
	if err != nil {
		if l.foreign(err) {
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
	var letters []Letter
	switch {
	case e.From == l.Addr:
		letters = l.own(e, &out)
	case e.From == "":
		letters = l.commands(e, &out)
	case e.From.Run() == l.Addr.Run():
		if l.Addr.Agent() == mailbox.Super && l.machine.Ended() {
			l.dismiss(e, &out)
		}
		letters = l.letters(e, &out)
	default:
		l.Dropped += len(e.Items)
	}
	if errors.Is(out.Err, ErrDamaged) && l.Damage == "" {
		l.Damage = out.Err.Error()
	}
	if l.Damage != "" && l.Phase == Alive && !l.confess { //mutant:damage-is-confessed
		l.reclaim(&out)
	}
	l.post(letters)
	if out.asked && l.last != nil {
		out.Repeat = []Letter{*l.last}
	}
	if l.Phase != Alive { //mutant:acts-before-own-resumed
		out.World = nil
	}
	return out
}

// extend continues the chain of hashes over the log as it is.
func (l *Life) extend(data []byte) {
	l.scratch = append(append(l.scratch[:0], l.chain[:]...), data...)
	l.chain = sha256.Sum256(l.scratch)
	if cap(l.scratch) > scratchKept {
		l.scratch = nil
	}
	l.hashes = append(l.hashes, hash(l.chain[:16]))
}

// post gives the letters of entry N their identity and puts them out. While
// folding, those under the floor are known to be out already.
func (l *Life) post(letters []Letter) {
	for i := range letters {
		letters[i].N, letters[i].I = l.N, i
	}
	l.keepLast(letters)
	l.Outbox.Put(l.N, letters)
	l.Outbox.Forget(l.floor)
}

// own reads an entry that a shell of this actor wrote.
func (l *Life) own(e mailbox.Entry, out *Read) []Letter {
	if len(e.Items) == 0 {
		return nil
	}
	if l.N == 1 && e.Items[0].Kind == "closed" { // see grave.go
		l.buried(e.Items[0])
		return nil
	}
	if e.Start == l.Start {
		out.Own = e.Items[0].ID
	}
	inForce := e.Start != "" && e.Epoch == l.force && e.Start == l.forcer //mutant:forged-before-first-claim
	// An entry of a life whose Resumed never came counts too: that one is gone.
	l.claim(e, inForce || e.Items[0].Kind == "resumed" || e.Epoch.Higher(l.force), out) //mutant:hash-of-lost-life-only-logged
	if e.Items[0].Kind == "resumed" {
		return l.resumed(e, out)
	}
	var letters []Letter
	for _, item := range e.Items {
		switch {
		case inForce && l.unknown(item, true):
			return nil
		case !ownKinds[item.Kind], !inForce && item.Kind != "returned": //mutant:own-entry-counts
			// A superseded life decides nothing; what a tool returned is evidence.
			l.Dropped++
			continue
		case item.Kind == "closed":
			l.Phase = Closed //mutant:wakes-without-claim
		}
		letters = append(letters, l.step(item, "", false, out)...)
	}
	return letters
}

var ownKinds = map[string]bool{"replied": true, "barred": true, "admitted": true, "failed": true, "started": true, "returned": true, "woke": true,
	"hooked": true, "resumed": true, "released": true, "checkpoint": true, "closed": true}

// commands reads what a client asked, each request once.
func (l *Life) commands(e mailbox.Entry, out *Read) []Letter {
	var letters []Letter
	for _, item := range e.Items {
		_, known := l.requests[item.ID]
		if known || item.ID == "" || !commandKinds[item.Kind] || len(l.requests) >= RequestsMax { //mutant:commands-twice
			l.Dropped++
			continue
		}
		if l.unknown(item, false) {
			return nil
		}
		l.requests[item.ID] = struct{}{}
		letters = append(letters, l.step(item, "", false, out)...)
	}
	return letters
}

var commandKinds = map[string]bool{"opened": true, "canceled": true, "steered": true, "answered": true,
	"policy_set": true, "limit_set": true, "given_up": true, "recalled": true}

// letters reads what another actor of the run sent. What is not above the
// sender's watermark was read before.
func (l *Life) letters(e mailbox.Entry, out *Read) []Letter {
	var letters []Letter
	m := l.marks[e.From]
	for _, item := range e.Items {
		life := activation(item)
		_, heard := m.lives[life]
		fresh := m.below(item.N, item.I)
		damaged := life != "" && !heard && !fresh                                                                        //mutant:back-check
		if halts := l.halts(e.From, item); ownOnly[item.Kind] || item.Kind == "opened" || !damaged && !fresh && !halts { //mutant:read-before
			l.Dropped++
			continue
		}
		if l.unknown(item, false) {
			return nil
		}
		if fresh {
			m.n, m.i = item.N, item.I
		}
		if life != "" && !heard {
			if m.lives == nil {
				m.lives = map[string]struct{}{}
			}
			m.lives[life] = struct{}{}
		}
		l.marks[e.From] = m
		letters = append(letters, l.step(item, e.From, damaged, out)...)
		l.askedAgain(item, out)
	}
	return letters
}

var ownOnly = map[string]bool{"replied": true, "barred": true, "admitted": true, "failed": true, "started": true, "woke": true, "resumed": true,
	"hooked": true, "released": true, "checkpoint": true, "closed": true}

func (l *Life) step(item mailbox.Item, from mailbox.Address, damaged bool, out *Read) []Letter {
	r := l.machine.Step(Fact{N: l.N, At: l.At, Life: l.forcer, From: from, Damaged: damaged, Kind: item.Kind, Body: item.Body})
	if r.Err != nil {
		l.Garbage++
		out.Err = fmt.Errorf("entry %d of %s: %w", l.N, l.Addr, r.Err)
	}
	out.World = append(out.World, r.World...)
	out.Notes = append(out.Notes, r.Notes...)
	return r.Letters
}

// CheckpointDue: the actor has read much without claiming its floor.
func (l *Life) CheckpointDue() bool {
	return l.Phase == Alive && l.Outbox.Floor() > l.floor && l.N-l.claimed >= CheckpointGap
}

// MayClose: the machine is done and all its letters are out.
func (l *Life) MayClose() bool {
	return l.Phase == Alive && l.machine.Ended() && l.Outbox.Empty() //mutant:closes-with-letters-out
}

// Floor is the highest floor that was claimed in the log.
func (l *Life) Floor() uint64 { return l.floor }

// Starts counts the lives at the end of a log that began and never wrote a
// Checkpoint, or that they end in order: from StartsMax on the actor is parked unstepped.
func Starts(log []mailbox.Message) int {
	n, last := 0, ""
	for _, m := range log {
		e, err := mailbox.Decode(m.Data)
		if err != nil || len(e.Items) == 0 {
			continue
		}
		switch e.Items[0].Kind {
		case "resumed":
			if e.Start != last { // one that claims twice has more to say
				n++
			}
			last = e.Start
		case "checkpoint", "released":
			n = 0
		case "closed": // whoever wakes it reads that, and stops
			return 0
		}
	}
	return n
}
