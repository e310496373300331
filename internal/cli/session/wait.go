package session

import (
	"context"
	"time"
)

// AskPause lies between looks at whether a run is parked.
const AskPause = 200 * time.Millisecond

// Pause waits, and fails if ctx ends before.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
