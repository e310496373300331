package control

import (
	"context"
	"sync"
)

// runLocks are the runs that are being opened or deleted.
type runLocks struct {
	mu     sync.Mutex
	locked map[string]chan struct{}
}

// lockRun lets one request at a time open a run, or delete it: the parts of two requests must not mix, and a request of
// another owner must see that the run exists. A client that gets no reply retries, so the second
// request waits for the first.
func (l *runLocks) lockRun(ctx context.Context, run string) (done func(), err error) {
	for {
		l.mu.Lock()
		busy := l.locked[run]
		if busy == nil {
			break
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer l.mu.Unlock()
	if l.locked == nil {
		l.locked = map[string]chan struct{}{}
	}
	over := make(chan struct{})
	l.locked[run] = over
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.locked, run)
		close(over)
	}, nil
}
