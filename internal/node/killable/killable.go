// Package killable counts the entries that a node appends to the logs of a run, and takes the logs away from the node
// at a chosen one, as a kill of its process would: for package troupetest.
package killable

import (
	"context"
	"slices"
	"sync"

	"github.com/troupe-run/troupe/mailbox"
)

// Count counts the entries of one run, over all nodes that act on it, and knows at which of them a node is killed. The
// zero value is ready for use.
type Count struct {
	mu      sync.Mutex
	run     string
	n       int
	crashes []int // to come
}

// Plan sets the entries of the next run at which a node is killed, in ascending order.
func (c *Count) Plan(crashes []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashes = slices.Clone(crashes)
}

// Begin counts the entries of this run from now on.
func (c *Count) Begin(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run != c.run {
		c.run, c.n = run, 0
	}
}

// End returns the crashes that did not happen, and forgets them.
func (c *Count) End() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.crashes
	c.crashes = nil
	return left
}

// Entries returns how many entries were counted.
func (c *Count) Entries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Pending reports whether a crash is still to come.
func (c *Count) Pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.crashes) > 0
}

// add counts an entry and reports whether it is the last one of its node.
func (c *Count) add(run string) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if run != c.run {
		return false
	}
	c.n++
	if len(c.crashes) == 0 || c.n < c.crashes[0] {
		return false
	}
	c.crashes = c.crashes[1:]
	return true
}

// Logs are the logs of a node that can be killed: from then on nothing that the node does reaches the logs, and
// no entry reaches the node.
type Logs struct {
	mailbox.Store
	count  *Count
	killed chan struct{}

	mu   sync.Mutex
	dead bool
}

// Wrap returns the logs of a node whose entries count.
func Wrap(s mailbox.Store, count *Count) *Logs {
	return &Logs{Store: s, count: count, killed: make(chan struct{})}
}

// Killed is closed once the last entry of the node is in the logs.
func (l *Logs) Killed() <-chan struct{} { return l.killed }

// Append appends the entries up to the last one of this node. An append that was not made is answered as one that was
// interrupted: the shells then stop without an error.
func (l *Logs) Append(ctx context.Context, to mailbox.Address, data []byte, done func(uint64, error)) {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		go done(0, mailbox.ErrClosed)
		return
	}
	l.dead = l.count.add(to.Run())
	last := l.dead
	l.mu.Unlock()
	if !last {
		l.Store.Append(ctx, to, data, done)
		return
	}
	l.Store.Append(context.WithoutCancel(ctx), to, data, func(uint64, error) {
		close(l.killed)
		done(0, mailbox.ErrClosed)
	})
}

// Import imports nothing for a node that was killed. Imported entries do not count: no actor wrote them here.
func (l *Logs) Import(ctx context.Context, newest map[mailbox.Address]uint64, entries []mailbox.Message) error {
	if l.IsDead() {
		return mailbox.ErrClosed
	}
	return l.Store.Import(ctx, newest, entries)
}

// Tail delivers entries until the node is killed.
func (l *Logs) Tail(ctx context.Context, deliver func(mailbox.Message)) (stop func(), err error) {
	return l.Store.Tail(ctx, func(m mailbox.Message) {
		if !l.IsDead() {
			deliver(m)
		}
	})
}

// Purge removes nothing for a node that was killed.
func (l *Logs) Purge(ctx context.Context, at mailbox.Address, before uint64) error {
	if l.IsDead() {
		return mailbox.ErrClosed
	}
	return l.Store.Purge(ctx, at, before)
}

// IsDead reports whether the node may append nothing more.
func (l *Logs) IsDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}
