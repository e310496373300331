package builtin

import (
	"context"
	"sync"
)

// listingQueue lists the files of a directory for calls that search it at the same time, as agents of one run do. It
// makes one listing after the other, and the calls that wait for the next one share it.
//
// No call gets a listing that began before the call: it must see each file that was there when it began.
type listingQueue struct {
	list func(ctx context.Context) ([]string, error)

	mu      sync.Mutex
	running bool
	next    *sharedListing // begins when the running one has ended; nil: no call waits for it
}

// sharedListing is one listing. The names must not be changed.
type sharedListing struct {
	ctx    context.Context // ends when no call waits any more
	cancel context.CancelFunc
	calls  int // that wait, guarded by listingQueue.mu
	ended  chan struct{}
	names  []string
	err    error
	crash  crash
}

// listFiles returns the names of a listing that begins after the call. The caller must not change them.
func (q *listingQueue) listFiles(ctx context.Context) ([]string, error) {
	l := q.joinListing(ctx)
	select {
	case <-l.ended:
		l.crash.pass()
		return l.names, l.err
	case <-ctx.Done():
		q.leaveListing(l)
		return nil, ctx.Err()
	}
}

func (q *listingQueue) joinListing(ctx context.Context) *sharedListing {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.next
	if l == nil {
		l = &sharedListing{ended: make(chan struct{})}
		l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if q.running {
			q.next = l
		} else {
			q.running = true
			go q.runListings(l)
		}
	}
	l.calls++
	return l
}

// leaveListing ends a listing for which no other call waits. It returns when the programs of the listing have ended, so
// that a canceled call leaves none behind.
func (q *listingQueue) leaveListing(l *sharedListing) {
	q.mu.Lock()
	l.calls--
	last, begun := l.calls == 0, q.next != l
	if last && !begun {
		q.next = nil
	}
	q.mu.Unlock()
	if !last {
		return
	}
	l.cancel()
	if begun {
		<-l.ended
	}
}

// runListings makes a listing, and then those for which calls wait meanwhile.
func (q *listingQueue) runListings(l *sharedListing) {
	for l != nil {
		q.makeListing(l)
		q.mu.Lock()
		l, q.next = q.next, nil
		q.running = l != nil
		q.mu.Unlock()
	}
}

func (q *listingQueue) makeListing(l *sharedListing) {
	defer close(l.ended)
	defer l.cancel()
	defer l.crash.catch()
	l.names, l.err = q.list(l.ctx)
}
