// Package local is a durable mailbox.Store in files of one machine, for the one process that owns
// its directory.
//
// An append goes to the write-ahead log first: one goroutine takes all appends that wait, writes them
// with one write and one sync, and only then acknowledges them. So the appends of many actors
// share each sync, and the sync of a lone actor touches one block of a preallocated file. Entries
// of the write-ahead log stay in memory until a second goroutine folds them, sorted by address, into the
// table, a B+tree file of bbolt that holds one key for each entry. A fold is one transaction; the
// segments of the write-ahead log that it covers are reused after it. The next open folds what a crash
// left in the write-ahead log.
//
// Each entry has a checksum that covers its address and place, and names the place of the entry
// before it in its log. An entry that no longer matches is delivered without data in its place, so
// its log counts as damaged and other logs go on.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	// defaultBytesMax is the default of Config.BytesMax.
	defaultBytesMax = 2 << 30
	// AddressBytesMax is the most bytes of an address.
	AddressBytesMax = 512
	// queueBytesMax is how many bytes of appends may wait for the write-ahead log. Further appends are
	// refused with mailbox.ErrFull.
	queueBytesMax = 256 << 20
	// syncInterval is how often a lazy Store syncs its write-ahead log.
	syncInterval = 2 * time.Minute
)

// ErrAddress says that a log cannot have this address.
var ErrAddress = errors.New("local: invalid address")

// Config configures a Store.
type Config struct {
	// Dir holds the files. It is created if missing. Required.
	Dir string
	// BytesMax is the most bytes of all entries together. Default 2 GiB.
	BytesMax uint64
	// Lazy acknowledges appends before they are synced: they survive the end of the process, but
	// a loss of power takes those of the last two minutes.
	Lazy bool
	// Logger receives damage that is found, and folds that fail. Default: discard.
	Logger *slog.Logger
	// Stalled is called when the write-ahead log cannot be written, or when appends were refused for want
	// of room for StallAfter (default defaultStallAfter), and once when neither is the case any
	// more. It must not block. Default: no calls.
	Stalled    func(mailbox.Stall)
	StallAfter time.Duration
	// Now stamps entries. Default time.Now.
	Now func() time.Time

	// Tests replace the file system of the write-ahead log, and the size of its segments.
	disk         disk
	segmentBytes int64
}

func (c *Config) fillDefaults() error {
	if c.Dir == "" {
		return errors.New("local: no directory given")
	}
	if c.BytesMax == 0 {
		c.BytesMax = defaultBytesMax
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.StallAfter == 0 {
		c.StallAfter = defaultStallAfter
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.disk == nil {
		c.disk = osDisk{}
	}
	if c.segmentBytes == 0 {
		c.segmentBytes = segmentBytes
	}
	return nil
}

// Store implements mailbox.Store.
type Store struct {
	cfg    Config
	table  *table
	wal    *wal
	queue  appendQueue
	health health
	damage damageLog
	used   atomic.Int64 // bytes of all entries

	// mu guards the fresh entries. The writer alone changes active; frozen never changes.
	mu     sync.RWMutex
	active *fresh
	frozen *fresh // is being folded; nil: none
	end    uint64 // place of the newest entry that readers may see
	// released are segments whose entries are in the table.
	released []uint64

	tailsMu sync.Mutex
	tails   []*tailReader // replaced, never changed

	batches    sync.Pool // of *[]operation
	deliveries chan delivery
	pending    atomic.Int32 // deliveries in the channel or under way
	folds      chan *fresh
	folded     *sync.Cond // on mu: a fold has ended
	foldErr    error      // of the last fold; guarded by mu
	closing    chan struct{}
	running    sync.WaitGroup
	ended      sync.Once
	closeErr   error
}

var _ mailbox.Store = (*Store)(nil)

// Open opens the logs in a directory, and folds what a crash left in the write-ahead log. The caller owns
// the directory alone.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.fillDefaults(); err != nil {
		return nil, err
	}
	if err := cfg.disk.makeDir(cfg.Dir); err != nil {
		return nil, fmt.Errorf("local: open: %w", err)
	}
	path := filepath.Join(cfg.Dir, tableName)
	tb, err := openTable(path)
	if err != nil {
		return nil, explainOpen(path, err)
	}
	s := &Store{cfg: cfg, table: tb, closing: make(chan struct{}), batches: sync.Pool{New: func() any { return new([]operation) }},
		deliveries: make(chan delivery, deliveriesMax), folds: make(chan *fresh, 1)}
	s.folded = sync.NewCond(&s.mu)
	s.queue.some = sync.NewCond(&s.queue.mu)
	s.damage.logger = cfg.Logger
	s.health.after, s.health.tell = cfg.StallAfter, cfg.Stalled
	if err := s.recoverWAL(ctx); err != nil {
		return nil, errors.Join(explainOpen(path, err), tb.close())
	}
	s.running.Go(s.runWriter)
	s.running.Go(s.runDeliveries)
	s.running.Go(s.runFolds)
	if cfg.Lazy {
		s.running.Go(s.runSyncs)
	}
	return s, nil
}

// explainOpen adds the remedy to an error of Open.
func explainOpen(path string, err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("local: open: %w: restore %s from a backup, or move it away to start without the logs in it", err, path)
	}
	return fmt.Errorf("local: open: %w", err)
}

// Append implements mailbox.Post.
func (s *Store) Append(ctx context.Context, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	if err := s.enqueue(operation{ctx: ctx, to: to, data: data, done: done}); err != nil {
		done(0, fmt.Errorf("local: append to %s: %w", to, err))
	}
}

// enqueue queues the append of an entry. The error says that it was not queued.
func (s *Store) enqueue(op operation) error {
	if len(op.data) > mailbox.EntryBytesMax {
		return fmt.Errorf("%d bytes: %w", len(op.data), mailbox.ErrTooLarge)
	}
	if err := checkAddress(op.to); err != nil {
		return err
	}
	if op.ctx.Err() != nil {
		return fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(op.ctx))
	}
	op.cost = entryCost(op.to, len(op.data))
	if used := s.used.Load(); uint64(used)+s.queue.waitingBytes()+op.cost > s.cfg.BytesMax {
		err := fmt.Errorf("%w: the logs hold %d of %d bytes", mailbox.ErrFull, used, s.cfg.BytesMax)
		s.health.noteRefused(op.to, err)
		return err
	}
	return s.queue.push(op)
}

// checkAddress refuses addresses that the keys of the table cannot hold.
func checkAddress(at mailbox.Address) error {
	if at == "" || len(at) > AddressBytesMax {
		return fmt.Errorf("%w: %.80q", ErrAddress, string(at))
	}
	for i := range len(at) {
		if at[i] == keyEnd {
			return fmt.Errorf("%w: %.80q", ErrAddress, string(at))
		}
	}
	return nil
}

// Purge implements mailbox.Post. It returns when the purge is as durable as an entry.
func (s *Store) Purge(ctx context.Context, at mailbox.Address, before uint64) error {
	if err := checkAddress(at); err != nil {
		return fmt.Errorf("local: purge: %w", err)
	}
	answer := make(chan error, 1)
	err := s.queue.push(operation{ctx: ctx, to: at, before: before, purges: true, done: func(_ uint64, err error) { answer <- err }})
	if err == nil {
		err = <-answer
	}
	if err != nil {
		return fmt.Errorf("local: purge %s: %w", at, err)
	}
	return nil
}

// Room implements mailbox.Store.
func (s *Store) Room(context.Context) (used, most uint64, err error) {
	return uint64(max(s.used.Load(), 0)), s.cfg.BytesMax, nil
}

// Close implements mailbox.Store. It folds the write-ahead log, so that the next Open has nothing to do.
func (s *Store) Close() error {
	s.ended.Do(func() {
		left := s.queue.close()
		close(s.closing)
		s.mu.Lock()
		s.folded.Broadcast()
		s.mu.Unlock()
		for i := range left {
			left[i].answer(0, mailbox.ErrClosed)
		}
		s.running.Wait()
		s.health.close()
		s.closeErr = errors.Join(s.closeWAL(), s.table.close())
	})
	return s.closeErr
}
