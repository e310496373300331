// Package mailbox is the durable mailbox of an actor: one ordered log that is
// at once its inbox and its journal. To send is to append, to receive is to
// read on, to recover is to read again from the start.
//
// The package holds the interface (Post), the form of an entry and its bounded
// codec. mailbox/memory and mailbox/jetstream implement Post; both pass
// mailbox/boxtest.
package mailbox

import (
	"context"
	"errors"
	"hash/fnv"
	"strings"
)

// Address names an actor: "<run>.<agent>", the supervisor of a run is "<run>.super".
// One that lives in another pool than most says so: "<run>.<agent>@<pool>". So
// whoever has an address can compute where its log is, and it stays true for as
// long as there is a log that holds it.
type Address string

// Super is the agent part of a supervisor's address.
const Super = "super"

// At makes an address.
func At(run, agent string) Address { return Address(run + "." + agent) }

// Run is the run part.
func (a Address) Run() string { run, _, _ := strings.Cut(string(a), "."); return run }

// Agent is the agent part.
func (a Address) Agent() string { _, agent, _ := strings.Cut(string(a.Bare()), "."); return agent }

// Pool is where the address lives; "" is the pool of all that are not placed.
func (a Address) Pool() string { _, pool, _ := strings.Cut(string(a), "@"); return pool }

// Bare is the address without its pool: the name of the actor.
func (a Address) Bare() Address { bare, _, _ := strings.Cut(string(a), "@"); return Address(bare) }

// In is the same actor in a pool; "" is where those live that are not placed.
func (a Address) In(pool string) Address {
	if pool == "" {
		return a.Bare()
	}
	return a.Bare() + Address("@"+pool)
}

// Shard computes where an address lives in its pool: FNV-1a 64 of "<run>.<agent>", modulo shards.
func Shard(a Address, shards int) int {
	h := fnv.New64a()
	h.Write([]byte(a.Bare()))
	return int(h.Sum64() % uint64(shards))
}

// EntryBytesMax is the most bytes an entry may have.
const EntryBytesMax = 256 << 10

var (
	// ErrTooLarge: the entry is over EntryBytesMax. It was not appended.
	ErrTooLarge = errors.New("mailbox: entry too large")
	// ErrFull: the stream is at its limit. It was not appended.
	ErrFull = errors.New("mailbox: stream is full")
	// ErrClosed: the Post was closed, or ctx ended, before an answer: the entry
	// may or may not be in the log.
	ErrClosed = errors.New("mailbox: closed before an acknowledgement")
)

// Message is one stored entry as a reader gets it.
type Message struct {
	To Address
	// Place orders all messages of one Log holder's stream; strictly increasing
	// per address. It is not the ordinal: the reader counts those.
	Place uint64
	// At is the store's stamp in Unix milliseconds.
	At   int64
	Data []byte
}

// Head is the newest entry of a log, and how many entries it holds.
type Head struct {
	Message
	Entries uint64
}

// Post is a set of durable logs.
type Post interface {
	// Append appends data to the log of to and calls done exactly once, from any
	// goroutine, with the place it got, or an error. A timeout is not an answer:
	// Append sends the same bytes again until it has a definite one or ctx ends
	// (ErrClosed); so an entry may be in the log more than once, never reordered
	// against a later Append to the same address that was made after done.
	// done must not block. Append itself does not block.
	Append(ctx context.Context, to Address, data []byte, done func(place uint64, err error))

	// Tail delivers every entry appended after it returned, of every address,
	// in order of place per address, from one goroutine per stream at most.
	// deliver must not block for long. stop ends it and waits for the last delivery.
	Tail(ctx context.Context, deliver func(Message)) (stop func(), err error)

	// Read calls each for every entry now stored at the address, oldest first,
	// whose place is in (after, through]; through 0 means all stored now. It reads
	// from the leader and returns when it is through, or with each's error.
	Read(ctx context.Context, at Address, after, through uint64, each func(Message) error) error

	// Addresses lists the addresses of a run that hold at least one entry.
	// An empty run lists all.
	Addresses(ctx context.Context, run string) ([]Address, error)

	// Purge removes the entries of a log whose place is before the given one; 0
	// removes the whole log.
	Purge(ctx context.Context, at Address, before uint64) error
}

// Store is what both implementations of Post can do beyond it, for the owner
// of all logs of a pool.
type Store interface {
	Post

	// ReadRun is Read for every log of one run in a single pass: in order per
	// address, the addresses mixed. It is the cheap way to take many short logs.
	ReadRun(ctx context.Context, run string, each func(Message) error) error

	// Heads calls each once for every log that holds an entry: with its newest one,
	// and with how many it holds. The entries are counted, by the leader, after the
	// newest one was read: where others came meanwhile it is not the last of so
	// many. A log whose newest entry is not known has one without Data.
	Heads(ctx context.Context, each func(Head) error) error

	// Room reports how many bytes the fullest of the streams holds and how many
	// it may hold; most 0 means without a limit. New runs are refused from
	// RoomPercent on (PROTOCOL P16).
	Room(ctx context.Context) (used, most uint64, err error)

	// Close ends the Store: appends without an answer end with ErrClosed.
	Close() error
}

// RoomPercent is how full a stream may be before new runs and children are
// refused, so that ends and cancels always fit.
const RoomPercent = 80
