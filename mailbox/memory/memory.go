// Package memory is a mailbox.Post in this process's memory: for tests,
// benchmarks, and programs that embed troupe and need no durability.
package memory

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// Config configures a Post. The zero value is ready to use.
type Config struct {
	// Now stamps entries, in Unix milliseconds. Default: the system clock.
	Now func() int64
	// BytesMax is the most bytes that all logs may hold; an Append beyond it ends with
	// mailbox.ErrFull. Default 0: no limit.
	BytesMax uint64
}

// Post implements mailbox.Store. Append calls done before it returns.
type Post struct {
	cfg Config

	mu     sync.Mutex
	logs   map[mailbox.Address][]mailbox.Message
	place  uint64
	bytes  uint64
	tails  []*tailReader // replaced, never changed
	closed bool
}

var _ mailbox.Store = (*Post)(nil)

// New makes an empty Post.
func New(cfg Config) *Post {
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixMilli() }
	}
	return &Post{cfg: cfg, logs: map[mailbox.Address][]mailbox.Message{}}
}

// Append implements mailbox.Post.
func (p *Post) Append(ctx context.Context, to mailbox.Address, data []byte, done func(uint64, error)) {
	place, tails, err := p.appendEntry(ctx, mailbox.Message{To: to, Data: data}, nil)
	done(place, err)
	deliverTo(tails)
}

func deliverTo(tails []*tailReader) {
	for _, t := range tails {
		t.deliverQueue()
	}
}

// Import implements mailbox.Store.
func (p *Post) Import(ctx context.Context, newest map[mailbox.Address]uint64, entries []mailbox.Message) error {
	expected := maps.Clone(newest)
	if expected == nil {
		expected = map[mailbox.Address]uint64{}
	}
	for _, m := range entries {
		m.Imported = true
		place, tails, err := p.appendEntry(ctx, m, expected)
		if err != nil {
			return err
		}
		expected[m.To] = place
		deliverTo(tails)
	}
	return nil
}

// appendEntry appends an entry and returns its place, and the tails that wait for its delivery. It stamps an entry that is not imported; an imported one must
// follow the expected newest entry of its log.
func (p *Post) appendEntry(ctx context.Context, m mailbox.Message, expected map[mailbox.Address]uint64) (uint64, []*tailReader, error) {
	to, data := m.To, m.Data
	if len(data) > mailbox.EntryBytesMax {
		return 0, nil, fmt.Errorf("memory: append to %s: %d bytes: %w", to, len(data), mailbox.ErrTooLarge)
	}
	if ctx.Err() != nil {
		return 0, nil, fmt.Errorf("memory: append to %s: %w: %w", to, mailbox.ErrClosed, context.Cause(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, nil, fmt.Errorf("memory: append to %s: %w", to, mailbox.ErrClosed)
	}
	if p.cfg.BytesMax > 0 && p.bytes+uint64(len(data)) > p.cfg.BytesMax {
		return 0, nil, fmt.Errorf("memory: append to %s: %w", to, mailbox.ErrFull)
	}
	if m.Imported && p.newestPlace(to) != expected[to] {
		return 0, nil, fmt.Errorf("memory: append to %s: %w", to, mailbox.ErrLogChanged)
	}
	p.place++
	p.bytes += uint64(len(data))
	m.Place = p.place
	if !m.Imported {
		m.At = p.cfg.Now()
	}
	p.logs[to] = append(p.logs[to], m)
	for _, t := range p.tails {
		t.pushMessage(m)
	}
	return p.place, p.tails, nil
}

// newestPlace is the place of the newest entry of a log; 0: it is empty. The caller holds mu.
func (p *Post) newestPlace(at mailbox.Address) uint64 {
	if log := p.logs[at]; len(log) > 0 {
		return log[len(log)-1].Place
	}
	return 0
}

// deliveredAtOnce is how many entries one Append delivers. If others append meanwhile, a goroutine delivers the rest.
const deliveredAtOnce = 64

// tailReader is one reader. An Append delivers what it has added, unless another one is delivering: to wake a goroutine
// for each entry would cost more than the delivery. The lock is not held while deliver runs, so deliver may append.
type tailReader struct {
	deliver    func(mailbox.Message)
	mu         sync.Mutex
	idle       *sync.Cond // nothing is being delivered
	queue      []mailbox.Message
	spare      []mailbox.Message // an empty slice for the next queue
	delivering bool
	ended      bool
}

func (t *tailReader) pushMessage(m mailbox.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, m)
}

// deliverQueue delivers what waits, unless that is under way.
func (t *tailReader) deliverQueue() {
	t.mu.Lock()
	busy := t.delivering
	t.delivering = true
	t.mu.Unlock()
	if !busy {
		t.runDelivery(deliveredAtOnce)
	}
}

// runDelivery delivers until nothing waits. After most entries a goroutine goes on.
func (t *tailReader) runDelivery(most int) {
	for delivered := 0; ; {
		batch := t.takeQueue()
		if len(batch) == 0 {
			return
		}
		for i := range batch {
			if !t.hasEnded() {
				t.deliver(batch[i])
			}
			batch[i] = mailbox.Message{}
		}
		t.spare = batch[:0]
		if delivered += len(batch); delivered >= most {
			go t.runDelivery(math.MaxInt)
			return
		}
	}
}

// takeQueue takes what waits. If that is nothing, the delivery is over.
func (t *tailReader) takeQueue() []mailbox.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 || t.ended {
		t.delivering = false
		t.idle.Broadcast()
		return nil
	}
	batch := t.queue
	t.queue, t.spare = t.spare, nil
	return batch
}

func (t *tailReader) endReading() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.queue = true, nil
}

func (t *tailReader) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// awaitIdle waits for the last delivery.
func (t *tailReader) awaitIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.delivering {
		t.idle.Wait()
	}
}

// Tail implements mailbox.Post.
func (p *Post) Tail(ctx context.Context, deliver func(mailbox.Message)) (func(), error) {
	t := &tailReader{deliver: deliver}
	t.idle = sync.NewCond(&t.mu)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("memory: tail: %w", mailbox.ErrClosed)
	}
	p.tails = append(slices.Clip(p.tails), t)
	end := func() {
		p.mu.Lock()
		p.tails = slices.DeleteFunc(slices.Clone(p.tails), func(other *tailReader) bool { return other == t })
		p.mu.Unlock()
		t.endReading()
	}
	unhook := context.AfterFunc(ctx, end)
	return func() {
		unhook()
		end()
		t.awaitIdle()
	}, nil
}

// Read implements mailbox.Post.
func (p *Post) Read(ctx context.Context, at mailbox.Address, after, through uint64, each func(mailbox.Message) error) error {
	p.mu.Lock()
	log := p.logs[at]
	p.mu.Unlock()
	first := sort.Search(len(log), func(i int) bool { return log[i].Place > after })
	for _, m := range log[first:] {
		if through > 0 && m.Place > through {
			return nil
		}
		if err := giveMessage(ctx, m, each); err != nil {
			return err
		}
	}
	return nil
}

func giveMessage(ctx context.Context, m mailbox.Message, each func(mailbox.Message) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("memory: read: %w", context.Cause(ctx))
	}
	return each(m)
}

// ReadRun implements mailbox.Store; the order is that of place.
func (p *Post) ReadRun(ctx context.Context, run string, each func(mailbox.Message) error) error {
	p.mu.Lock()
	var all []mailbox.Message
	for at, log := range p.logs {
		if at.Run() == run {
			all = append(all, log...)
		}
	}
	p.mu.Unlock()
	sort.Slice(all, func(i, j int) bool { return all[i].Place < all[j].Place })
	for _, m := range all {
		if err := giveMessage(ctx, m, each); err != nil {
			return err
		}
	}
	return nil
}

// Addresses implements mailbox.Post; they come sorted.
func (p *Post) Addresses(_ context.Context, run string) ([]mailbox.Address, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []mailbox.Address
	for at := range p.logs {
		if run == "" || at.Run() == run {
			found = append(found, at)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i] < found[j] })
	return found, nil
}

// Entries implements mailbox.Store.
func (p *Post) Entries(_ context.Context, run string) (map[mailbox.Address]uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[mailbox.Address]uint64{}
	for at, log := range p.logs {
		if at.Run() == run && len(log) > 0 {
			counts[at] = uint64(len(log))
		}
	}
	return counts, nil
}

// Heads implements mailbox.Store; they come in the order of their addresses.
func (p *Post) Heads(ctx context.Context, each func(mailbox.Head) error) error {
	p.mu.Lock()
	heads := make([]mailbox.Head, 0, len(p.logs))
	for _, log := range p.logs {
		heads = append(heads, mailbox.Head{Message: log[len(log)-1], Entries: uint64(len(log))})
	}
	p.mu.Unlock()
	sort.Slice(heads, func(i, j int) bool { return heads[i].To < heads[j].To })
	for _, h := range heads {
		if err := giveMessage(ctx, h.Message, func(mailbox.Message) error { return each(h) }); err != nil {
			return err
		}
	}
	return nil
}

// Purge implements mailbox.Post.
func (p *Post) Purge(_ context.Context, at mailbox.Address, before uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []mailbox.Message
	for _, m := range p.logs[at] {
		if before > 0 && m.Place >= before {
			left = append(left, m)
			continue
		}
		p.bytes -= uint64(len(m.Data))
	}
	if p.logs[at] = left; len(left) == 0 {
		delete(p.logs, at)
	}
	return nil
}

// Room implements mailbox.Store.
func (p *Post) Room(context.Context) (used, most uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes, p.cfg.BytesMax, nil
}

// Close implements mailbox.Store. Tails deliver what was appended before, and end when they
// are stopped.
func (p *Post) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}
