// Package dispatcher runs the mailboxes of the actors on a fixed number of goroutines. A
// goroutine for each wake-up, as is usual, would grow its stack again each time: a third of
// the time of a turn. For the same reason Goroutines run the calls of actors, which may block.
package dispatcher

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// WorkersPerCPU is the number of goroutines for each processor. An actor's Receive does not
// block, so few are enough; with a few more than one, others continue while one opens a
// directory.
const WorkersPerCPU = 4

// stallAfter is how long a mailbox may wait for a running worker before another worker is woken.
const stallAfter = time.Millisecond

// throughput is how many messages a mailbox runs before it lets others run.
const throughput = 300

// WorkerPool implements protoactor's Dispatcher.
//
// Actors mostly wake each other in turn: one sends a message and is done. To wake a goroutine on another processor for
// that costs more than the Receive itself. So a mailbox first waits for a worker that is running, and another worker is
// woken only if more mailboxes wait than workers run, or if one has waited for stallAfter: its worker may be blocked.
type WorkerPool struct {
	mu      sync.Mutex
	waiting runQueue
	idle    []chan struct{} // of workers that sleep; the newest is woken first, because its stack is warm
	running int             // workers that run a mailbox, or were woken to do so
	ended   bool
	// stall is the timer that looks for mailboxes that have waited too long; taken then is what taken was when it was
	// set.
	stall     *time.Timer
	stallSet  bool
	taken     uint64 // mailboxes taken out of waiting
	takenThen uint64
}

// New starts a worker pool that ends with ctx.
func New(ctx context.Context) *WorkerPool {
	p := &WorkerPool{}
	p.stall = time.AfterFunc(time.Hour, p.wakeStalled)
	p.stall.Stop()
	for range WorkersPerCPU * runtime.GOMAXPROCS(0) {
		wake := make(chan struct{}, 1)
		p.idle = append(p.idle, wake)
		go p.runWorker(wake)
	}
	context.AfterFunc(ctx, p.end)
	return p
}

// end lets the workers end. What waits is not run.
func (p *WorkerPool) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.stall.Stop()
	for _, wake := range p.idle {
		wake <- struct{}{}
	}
	p.idle = nil
}

func (p *WorkerPool) runWorker(wake chan struct{}) {
	for range wake {
		for {
			run, ok := p.next(wake)
			if !ok {
				break
			}
			run()
		}
		if p.hasEnded() {
			return
		}
	}
}

// next takes the mailbox that has waited longest. If there is none, the worker is idle from then on.
func (p *WorkerPool) next(wake chan struct{}) (run func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, false
	}
	if run, ok = p.waiting.pop(); ok {
		p.taken++
		return run, true
	}
	p.running--
	p.idle = append(p.idle, wake)
	return nil, false
}

func (p *WorkerPool) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Schedule runs a mailbox soon. It never blocks and never loses a wake-up. Each mailbox waits at most once, so as many
// wait at most as there are actors.
func (p *WorkerPool) Schedule(run func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.push(run)
	switch {
	case p.waiting.len() > p.running:
		p.wakeOne()
	case !p.stallSet && !p.ended:
		p.setStall()
	}
}

// wakeOne wakes a worker, if one sleeps. The caller holds mu.
func (p *WorkerPool) wakeOne() {
	if n := len(p.idle); n > 0 {
		wake := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.running++
		wake <- struct{}{} // the worker has taken the one before
	}
}

// setStall sets the timer. The caller holds mu.
func (p *WorkerPool) setStall() {
	p.stallSet, p.takenThen = true, p.taken
	p.stall.Reset(stallAfter)
}

// wakeStalled wakes a worker if no mailbox was taken since the timer was set.
func (p *WorkerPool) wakeStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stallSet = false
	if p.ended || p.waiting.len() == 0 {
		return
	}
	if p.taken == p.takenThen {
		p.wakeOne()
	}
	p.setStall()
}

// Throughput implements Dispatcher.
func (p *WorkerPool) Throughput() int { return throughput }

// runQueue holds mailboxes in the order in which they were scheduled.
type runQueue struct {
	all  []func()
	head int // of those that wait
}

func (q *runQueue) len() int { return len(q.all) - q.head }

func (q *runQueue) push(run func()) {
	if len(q.all) == cap(q.all) && q.head > len(q.all)/2 { // move rather than grow
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	q.all = append(q.all, run)
}

func (q *runQueue) pop() (run func(), ok bool) {
	if q.len() == 0 {
		return nil, false
	}
	run, q.all[q.head] = q.all[q.head], nil
	if q.head++; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return run, true
}
