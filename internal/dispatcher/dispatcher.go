// Package dispatcher runs the mailboxes of the actors on a fixed number of goroutines. A
// goroutine for each wake-up, as is usual, would grow its stack again each time: a third of
// the time of a turn.
package dispatcher

import (
	"context"
	"runtime"
)

// WorkersPerCPU is the number of goroutines for each processor. An actor's Receive does not
// block, so few are enough; with a few more than one, others continue while one opens a
// directory.
const WorkersPerCPU = 4

// QueueMax is how many wake-ups may wait before Schedule starts an additional goroutine.
const QueueMax = 4096

// throughput is how many messages a mailbox runs before it lets others run.
const throughput = 300

// WorkerPool implements protoactor's Dispatcher.
type WorkerPool struct{ work chan func() }

// New starts a worker pool that ends with ctx.
func New(ctx context.Context) *WorkerPool {
	c := &WorkerPool{work: make(chan func(), QueueMax)}
	for range WorkersPerCPU * runtime.GOMAXPROCS(0) {
		go c.runWorker(ctx)
	}
	return c
}

func (c *WorkerPool) runWorker(ctx context.Context) {
	for {
		select {
		case run := <-c.work:
			run()
		case <-ctx.Done():
			return
		}
	}
}

// Schedule runs a mailbox soon. It never blocks and never loses a wake-up.
func (c *WorkerPool) Schedule(run func()) {
	select {
	case c.work <- run:
	default:
		go run()
	}
}

// Throughput implements Dispatcher.
func (c *WorkerPool) Throughput() int { return throughput }
