// Package mailbox is the durable mailbox of an actor: one ordered log that is at once its
// inbox and its journal. To send is to append, to receive is to read on, to recover is to
// replay from the start.
//
// The package holds the interface (Post), the form of an entry and its bounded codec.
// mailbox/memory, internal/logstore/jetstream and internal/logstore/local implement Store; all pass internal/test/boxtest.
package mailbox

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"strings"
)

// Address names an actor: "<run>.<agent>", and "<run>.super" for the supervisor of a run. If
// the actor is not in the default pool, the address names its pool: "<run>.<agent>@<pool>".
// So the place of the log can be computed from the address alone, and the address stays valid
// as long as any log contains it.
type Address string

// Super is the agent part of a supervisor's address.
const Super = "super"

// The log of a conversation's lane has an address of its own form. No actor owns it (internal/lane).
const (
	laneAgent  = "lane"
	lanePrefix = "lane-"
	// schedulePrefix begins the address of the log of a schedule (internal/schedule), which has no actor either.
	schedulePrefix = "schedule-"
)

// LaneOf is the address of the lane of a conversation.
func LaneOf(conversation string) Address { return At(lanePrefix+conversation, laneAgent) }

// Conversation is the conversation of the address of a lane; ok is false for any other address.
func (a Address) Conversation() (conversation string, ok bool) {
	conversation, ok = strings.CutPrefix(a.Run(), lanePrefix)
	return conversation, ok && a.Agent() == laneAgent
}

// IsReserved reports whether a run may not have this id: the address of a lane or a schedule begins with it.
func IsReserved(run string) bool {
	return strings.HasPrefix(run, lanePrefix) || strings.HasPrefix(run, schedulePrefix)
}

// At makes an address.
func At(run, agent string) Address { return Address(run + "." + agent) }

// Run is the run part.
func (a Address) Run() string { run, _, _ := strings.Cut(string(a), "."); return run }

// Agent is the agent part.
func (a Address) Agent() string { _, agent, _ := strings.Cut(string(a.Bare()), "."); return agent }

// Pool is the pool of the address; "" is the pool of all actors without a placement.
func (a Address) Pool() string { _, pool, _ := strings.Cut(string(a), "@"); return pool }

// Bare is the address without its pool: the name of the actor.
func (a Address) Bare() Address { bare, _, _ := strings.Cut(string(a), "@"); return Address(bare) }

// In is the same actor in a pool; "" is the pool of all actors without a placement.
func (a Address) In(pool string) Address {
	if pool == "" {
		return a.Bare()
	}
	return a.Bare() + Address("@"+pool)
}

// Shard computes the shard of an address in its pool: FNV-1a 64 of "<run>.<agent>", modulo
// shards.
func Shard(a Address, shards int) int {
	h := fnv.New64a()
	h.Write([]byte(a.Bare()))
	return int(h.Sum64() % uint64(shards))
}

// EntryBytesMax is the most bytes an entry may have.
const EntryBytesMax = 256 << 10

var (
	// ErrTooLarge says that the entry is larger than EntryBytesMax. It was not appended.
	ErrTooLarge = errors.New("mailbox: entry too large")
	// ErrFull says that the stream is at its limit. The entry was not appended.
	ErrFull = errors.New("mailbox: stream is full")
	// ErrClosed says that the Post was closed, or ctx ended, before an answer: the entry may
	// or may not be in the log.
	ErrClosed = errors.New("mailbox: closed before an acknowledgement")
	// ErrLogChanged says that the newest entry of a log is not the one that an import expected.
	ErrLogChanged = errors.New("mailbox: the log has another newest entry")
)

// Message is one stored entry as a reader receives it.
type Message struct {
	To Address
	// Place orders all messages of the stream that holds the log; it strictly increases per
	// address. It is not the index in the log, which the reader counts.
	Place uint64
	// At is the store's stamp in Unix milliseconds. Nanos is the rest of the stamp, below a
	// millisecond; 0 from a store whose places order the messages of all logs.
	At    int64
	Nanos int64
	Data  []byte
	// Imported: another store held the entry first, and At and Nanos are its stamp there (Store.Import).
	Imported bool
}

// Stamp is when and where a store stored a message; see Message.
type Stamp struct {
	At, Nanos int64
	Place     uint64
}

// Stamp returns the stamp of a message.
func (m Message) Stamp() Stamp { return Stamp{m.At, m.Nanos, m.Place} }

// Compare orders the stamps of messages of any logs as the store stored them.
func (s Stamp) Compare(o Stamp) int {
	return cmp.Or(cmp.Compare(s.At, o.At), cmp.Compare(s.Nanos, o.Nanos), cmp.Compare(s.Place, o.Place))
}

// Head is the newest entry of a log, and how many entries it holds.
type Head struct {
	Message
	Entries uint64
}

// Post is a set of durable logs.
type Post interface {
	// Append appends data to the log of to and calls done exactly once, from any goroutine,
	// with the place of the entry, or an error. A timeout is not an answer: Append sends the
	// same bytes again until it has a definite one or ctx ends (ErrClosed). So an entry may be
	// in the log more than once, but never reordered against a later Append to the same
	// address that was made after done. done must not block. Append itself does not block.
	Append(ctx context.Context, to Address, data []byte, done func(place uint64, err error))

	// Tail delivers every entry that is appended after Tail returned, for every address, in
	// order of place per address, from at most one goroutine per stream. deliver must not
	// block for long. stop ends the tail and waits for the last delivery.
	Tail(ctx context.Context, deliver func(Message)) (stop func(), err error)

	// Read calls each for every entry now stored at the address, oldest first, whose place is
	// in (after, through]; through 0 means all stored now. It reads from the leader and
	// returns after the last entry, or with each's error.
	Read(ctx context.Context, at Address, after, through uint64, each func(Message) error) error

	// Addresses lists the addresses of a run that hold at least one entry. With an empty run
	// it lists all addresses.
	Addresses(ctx context.Context, run string) ([]Address, error)

	// Purge removes the entries of a log whose place is before the given one; 0
	// removes the whole log.
	Purge(ctx context.Context, at Address, before uint64) error
}

// Store adds to Post the methods that the owner of all logs of a pool needs; all implementations
// have them.
type Store interface {
	Post

	// ReadRun is Read for every log of one run in a single pass: in order per address, with
	// the addresses interleaved or one after the other. It is the cheap way to read many short
	// logs, and no snapshot of them: each log is read as it is when its turn comes.
	ReadRun(ctx context.Context, run string, each func(Message) error) error

	// Entries reports how many entries each log of a run holds, of those that hold any. It reads none of them.
	Entries(ctx context.Context, run string) (map[Address]uint64, error)

	// Heads calls each once for every log that holds an entry, with its newest entry and the
	// number of its entries. The leader counts the entries after the newest one was read: if
	// others arrived meanwhile, it is not the last of that number. If the newest entry is
	// unknown, Head has no Data.
	Heads(ctx context.Context, each func(Head) error) error

	// Import appends entries that another store held, in order, with the stamps that they had there. newest is the
	// place of the newest entry of each log, as the caller read it; of an empty log there is none. Import appends
	// nothing behind any other entry: it ends with ErrLogChanged. After an error some entries may be in the logs, of
	// each log the first ones.
	Import(ctx context.Context, newest map[Address]uint64, entries []Message) error

	// Room reports how many bytes the fullest of the streams holds and how many it may hold;
	// most 0 means no limit. New runs are refused from RoomPercent on (PROTOCOL P16).
	Room(ctx context.Context) (used, most uint64, err error)

	// Close ends the Store: appends without an answer end with ErrClosed.
	Close() error
}

// RoomPercent is how full a stream may be before new runs and children are refused, so that
// there is always room for ends and cancels.
const RoomPercent = 80
