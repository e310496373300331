// Package workgroup has the goroutines of the control service: they begin until the service closes, and its close waits
// for all of them. A panic in a request ends that request alone.
package workgroup

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Group has the goroutines of a control service: those of requests and those in the background. They begin until
// Close, which waits for all of them. A panic in the work of a request ends that request alone.
type Group struct {
	logger   *slog.Logger
	Ctx      context.Context // of all work, until Close
	end      context.CancelFunc
	inFlight sync.WaitGroup

	mu sync.Mutex // orders Start and Close
}

// New returns a group without goroutines.
func New(logger *slog.Logger) *Group {
	g := &Group{logger: logger}
	g.Ctx, g.end = context.WithCancel(context.Background())
	return g
}

// Close cancels the work and waits for its end.
func (g *Group) Close() {
	g.end()
	// A caller that holds the lock may start, and a later one sees the end: no work begins
	// during the wait.
	g.mu.Lock()
	g.mu.Unlock() //nolint:staticcheck // empty on purpose, see above
	g.inFlight.Wait()
}

// Start runs work in a goroutine; it returns false once close has been called.
func (g *Group) Start(work func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Ctx.Err() != nil {
		return false
	}
	g.inFlight.Go(work)
	return true
}

var ErrPanic = errors.New("control: internal error; the node's log has the details")

func (g *Group) LogPanic(verb string, what any) {
	g.logger.Error("request handler panicked", "verb", verb, "panic", what, "stack", string(debug.Stack()))
}

// CallRecovered turns a panic into an error: a request must not end the node.
func (g *Group) CallRecovered(ctx context.Context, verb string, serve func(context.Context, []byte) (any, error), data []byte) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.LogPanic(verb, p)
			err = ErrPanic
		}
	}()
	return serve(ctx, data)
}
