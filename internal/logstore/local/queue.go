package local

import (
	"context"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/mailbox"
)

// operation is one append or purge that waits for the write-ahead log.
type operation struct {
	ctx    context.Context
	to     mailbox.Address
	data   []byte
	done   func(place uint64, err error)
	cost   uint64
	purges bool
	before uint64 // of a purge; 0: the whole log
	syncs  bool   // writes nothing: the write-ahead log is to be synced
	// imports is the log that the entry is imported into, and at its stamp; nil: the entry is new.
	imports *importedLog
	at      int64

	log      *freshLog
	place    uint64
	value    []byte
	answered bool
	stored   bool
}

// syncOperation is an operation that only has the write-ahead log synced.
func syncOperation() operation { return operation{ctx: context.Background(), syncs: true} }

// appendQueue holds the operations that wait for the writer.
type appendQueue struct {
	mu     sync.Mutex
	some   *sync.Cond
	ops    []operation
	bytes  uint64
	closed bool
}

// push adds an operation. The error says that it was not added.
func (q *appendQueue) push(op operation) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return mailbox.ErrClosed
	}
	if q.bytes+op.cost > queueBytesMax {
		return fmt.Errorf("%w: %d bytes of appends wait for the disk", mailbox.ErrFull, q.bytes)
	}
	q.bytes += op.cost
	q.ops = append(q.ops, op)
	if len(q.ops) == 1 {
		q.some.Signal()
	}
	return nil
}

// take waits for operations and takes all of them in exchange for an empty slice. Their bytes count
// until release. It returns none once the queue is closed.
func (q *appendQueue) take(empty []operation) []operation {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.ops) == 0 && !q.closed {
		q.some.Wait()
	}
	if q.closed {
		return nil
	}
	ops := q.ops
	q.ops = empty
	return ops
}

// release ends the count of the bytes of operations that are written or given up.
func (q *appendQueue) release(bytes uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= bytes
}

// close ends the queue and returns the operations that it still holds.
func (q *appendQueue) close() []operation {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.ops
	q.ops, q.closed = nil, true
	q.some.Signal()
	return left
}

func (q *appendQueue) waitingBytes() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// takeCanceled removes the operations whose context has ended.
func (q *appendQueue) takeCanceled() (canceled []operation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	kept := q.ops[:0]
	for _, op := range q.ops {
		if op.ctx.Err() != nil {
			canceled = append(canceled, op)
			q.bytes -= op.cost
			continue
		}
		kept = append(kept, op)
	}
	q.ops = kept
	return canceled
}

func canceledError(op *operation) error {
	return fmt.Errorf("%w: %w", mailbox.ErrClosed, context.Cause(op.ctx))
}

// answer reports the result of an operation, once.
func (op *operation) answer(place uint64, err error) {
	if op.answered || op.done == nil {
		return
	}
	op.answered = true
	if err != nil {
		err = fmt.Errorf("local: append to %s: %w", op.to, err)
	}
	op.done(place, err)
}
