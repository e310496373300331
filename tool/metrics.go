package tool

import (
	"sync"

	"github.com/troupe-run/troupe/agent/spec"
)

// callMetrics collects the figures that a tool reports about a call, until the call returns or is abandoned.
type callMetrics struct {
	mu     sync.Mutex
	list   spec.Metrics
	lost   int
	closed bool
	next   func(name string, value float64) // of the caller; nil: none
}

func (c *callMetrics) set(name string, value float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	list, ok := c.list.Set(name, value)
	if !ok {
		c.lost++
		return
	}
	c.list = list
	if c.next != nil {
		c.next(name, value)
	}
}

func (c *callMetrics) close() (spec.Metrics, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.list, c.lost
}
