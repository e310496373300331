package control

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/supervisor"
)

// buildsPerProcessor is how many runs a node builds at once, for each processor.
const buildsPerProcessor = 2

// builtRun is the result of a build.
type builtRun struct {
	opened   supervisor.Opened
	accepted client.RunAccepted
	err      error
	panicked error // to panic with in the goroutine of the request, which recovers
}

// build builds a run once one of the slots for it is free: a build reads many files, and holds them in memory. It returns
// when the time of the request is over, or bounds.BuildTimeout, whatever the build still waits for.
func (c *opener) build(ctx context.Context, r client.RunRequest) (supervisor.Opened, client.RunAccepted, error) {
	ctx, cancel := context.WithTimeout(ctx, bounds.BuildTimeout)
	defer cancel()
	slot, err := c.building.Take(ctx, r.RunID, r.Owner)
	if err != nil {
		return supervisor.Opened{}, client.RunAccepted{}, err
	}
	done := make(chan builtRun, 1)
	late := time.AfterFunc(bounds.BuildTimeout, func() {
		slot.GiveAway()
		c.cfg.logger().Warn("the build of a run takes long, and others no longer wait for it", "run", r.RunID, "owner", r.Owner, "dir", r.Dir, "after", bounds.BuildTimeout)
	})
	go func() {
		b := c.buildHere(r)
		late.Stop()
		slot.Leave()
		done <- b
	}()
	select {
	case b := <-done:
		if b.panicked != nil {
			panic(b.panicked)
		}
		return b.opened, b.accepted, b.err
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return supervisor.Opened{}, client.RunAccepted{}, &client.Error{Code: client.CodeUnavailable, Text: fmt.Sprintf("run %.80s was not built in time: the node still reads what its request names", r.RunID),
			Hint: "a directory or a server of tools that the request names is slow or does not answer; ask again, or leave it out"}
	}
	return supervisor.Opened{}, client.RunAccepted{}, fmt.Errorf("control: run %s was not built: %w", r.RunID, context.Cause(ctx))
}

// buildHere builds a run in this goroutine.
func (c *opener) buildHere(r client.RunRequest) (b builtRun) {
	defer func() {
		if p := recover(); p != nil {
			b.panicked = fmt.Errorf("%v\n%s", p, debug.Stack())
			c.cfg.logger().Error("the build of a run panicked", "run", r.RunID, "panic", p)
		}
	}()
	b.opened, b.accepted, b.err = c.cfg.Build(r)
	return b
}
