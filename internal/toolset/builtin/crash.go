package builtin

import "sync"

// crash passes a panic of a goroutine that a call has started on to the call, whose panics become its result (package
// tool). A panic that leaves its goroutine ends the node with all its runs.
type crash struct {
	once sync.Once
	what any
}

// catch is deferred by the goroutine.
func (c *crash) catch() {
	if what := recover(); what != nil {
		c.once.Do(func() { c.what = what })
	}
}

// pass is called by the call once the goroutine has ended.
func (c *crash) pass() {
	if c.what != nil {
		panic(c.what)
	}
}
