package control

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
)

// workGroup has the goroutines of a control service: those of requests and those in the background. They begin until
// close, which waits for all of them. A panic in the work of a request ends that request alone.
type workGroup struct {
	logger   *slog.Logger
	ctx      context.Context // of all work, until close
	end      context.CancelFunc
	inFlight sync.WaitGroup

	mu sync.Mutex // orders start and close
}

func newWorkGroup(logger *slog.Logger) *workGroup {
	g := &workGroup{logger: logger}
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// close cancels the work and waits for its end.
func (g *workGroup) close() {
	g.end()
	// A caller that holds the lock may start, and a later one sees the end: no work begins
	// during the wait.
	g.mu.Lock()
	g.mu.Unlock() //nolint:staticcheck // empty on purpose, see above
	g.inFlight.Wait()
}

// start runs work in a goroutine; it returns false once close has been called.
func (g *workGroup) start(work func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	g.inFlight.Go(work)
	return true
}

var errPanic = errors.New("control: internal error; the node's log has the details")

func (g *workGroup) logPanic(verb string, what any) {
	g.logger.Error("request handler panicked", "verb", verb, "panic", what, "stack", string(debug.Stack()))
}

// callRecovered turns a panic into an error: a request must not end the node.
func (g *workGroup) callRecovered(ctx context.Context, verb string, serve verbHandler, data []byte) (reply any, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.logPanic(verb, p)
			err = errPanic
		}
	}()
	return serve(ctx, data)
}
