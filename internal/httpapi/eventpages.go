package httpapi

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
)

const (
	// pausedMax is how many readers wait for the request for their next page, pausedAge how long one waits.
	pausedMax = 8
	pausedAge = 30 * time.Second
)

// pausedReaders are readers of the events of runs between the pages of their clients. A page ends anywhere in what the
// node reads at once: without its reader, the next page would begin with another replay of all logs of the run.
type pausedReaders struct {
	client client.EventReader
	ctx    context.Context // of all readers

	mu   sync.Mutex
	list []*pageReader // the oldest first
}

// pageReader reads the events of a run.
type pageReader struct {
	key       string // of the run and the cursor with which the next page begins
	ctx       context.Context
	cancel    context.CancelFunc
	next      func() (readEvent, error, bool)
	stop      func()
	since     time.Time
	lookahead *readEvent // it was read, and is of the next page
}

// readEvent is an event as a page has it.
type readEvent struct {
	event client.Event
	raw   json.RawMessage
}

// open returns the reader that a page ended with, or a new one.
func (p *pausedReaders) open(run, cursor string, seen client.Positions) *pageReader {
	key := run + " " + cursor
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.list, func(r *pageReader) bool { return r.key == key }); i >= 0 {
		r := p.list[i]
		p.list = slices.Delete(p.list, i, i+1)
		return r
	}
	return newPageReader(p.ctx, p.client, run, seen.Cursor())
}

func newPageReader(base context.Context, c client.EventReader, run string, from client.Cursor) *pageReader {
	ctx, cancel := context.WithCancel(base)
	r := &pageReader{ctx: ctx, cancel: cancel}
	r.next, r.stop = iter.Pull2(func(yield func(readEvent, error) bool) {
		err := c.Events(ctx, run, from, false, func(e client.Event, raw []byte) error {
			if !yield(readEvent{e, raw}, nil) {
				return client.ErrStop
			}
			return nil
		})
		if err != nil {
			yield(readEvent{}, err)
		}
	})
	return r
}

// read reads the events that follow until take refuses one, which the next read begins with. more: take refused one.
func (r *pageReader) read(ctx context.Context, take func(readEvent) bool) (more bool, err error) {
	leave := context.AfterFunc(ctx, r.cancel)
	defer leave()
	for {
		if r.lookahead == nil {
			e, err, ok := r.next()
			if err != nil || !ok {
				return false, err
			}
			r.lookahead = &e
		}
		if !take(*r.lookahead) {
			if !leave() {
				return true, ctx.Err() // it was canceled, and reads no further
			}
			return true, nil
		}
		r.lookahead = nil
	}
}

func (r *pageReader) close() {
	r.cancel()
	r.stop()
}

// keep keeps a reader for the request for the page after a cursor.
func (p *pausedReaders) keep(r *pageReader, run, cursor string, now time.Time) {
	p.mu.Lock()
	r.key, r.since = run+" "+cursor, now
	p.list = append(p.list, r)
	n := max(0, len(p.list)-pausedMax)
	oldest := slices.Clone(p.list[:n])
	p.list = slices.Delete(p.list, 0, n)
	p.mu.Unlock()
	closeAll(oldest)
	time.AfterFunc(pausedAge, func() { p.closeBefore(time.Now().Add(-pausedAge)) })
}

// closeBefore closes the readers that have waited since then.
func (p *pausedReaders) closeBefore(then time.Time) {
	var old []*pageReader
	p.mu.Lock()
	p.list = slices.DeleteFunc(p.list, func(r *pageReader) bool {
		isOld := !r.since.After(then)
		if isOld {
			old = append(old, r)
		}
		return isOld
	})
	p.mu.Unlock()
	closeAll(old)
}

// closeAll closes readers that are in no list. The caller holds no lock: a reader waits for the end of its read, and
// pages of other runs must not.
func closeAll(readers []*pageReader) {
	for _, r := range readers {
		r.close()
	}
}
