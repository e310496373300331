package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
)

// ServerWaitDefault is how long the start of a node waits for leaders: longer than a
// cluster of servers that is started at the same time needs to find them.
const ServerWaitDefault = 2 * time.Minute

const (
	// A request that meets no leader is never answered, so the first attempt is short. Later ones take longer, for servers
	// that are slow.
	leaderTryFirst   = openTimeout / 3
	leaderTryTimeout = openTimeout
	leaderRetryPause = time.Second
)

// awaitLeaders retries do while JetStream, one of its streams or one of its buckets has no
// leader, for a limited time. It logs what the node waits for.
func (n *Node) awaitLeaders(ctx context.Context, do func(context.Context) error) error {
	refused := func() bool { return n.lastDenied.Load() != nil } // a right that the server refused does not come later
	return leaderWait{wait: n.cfg.ServerWait, refused: refused, first: leaderTryFirst, try: leaderTryTimeout, pause: leaderRetryPause, onWait: func(err error, left time.Duration) {
		n.cfg.Logger.Warn("the server has no leader for what the node needs; the node waits", "for", left.Round(time.Second), "error", err)
	}}.run(ctx, do)
}

// leaderWait is a wait for leaders.
type leaderWait struct {
	wait              time.Duration
	first, try, pause time.Duration // of attempts: each takes first longer than the one before, at most try
	refused           func() bool
	onWait            func(err error, left time.Duration)
}

func (a leaderWait) run(ctx context.Context, do func(context.Context) error) error {
	until := time.Now().Add(a.wait)
	for limit := a.first; ; limit = min(limit+a.first, a.try) {
		err := tryOnce(ctx, limit, do)
		left := time.Until(until)
		switch {
		case err == nil || ctx.Err() != nil || !isLeaderless(err) || a.refused():
			return err
		case left <= 0 && errors.Is(err, bus.ErrNoLeader):
			return fmt.Errorf("node: after %s: %w", a.wait, err)
		case left <= 0:
			return fmt.Errorf("node: after %s: %w: %w", a.wait, bus.ErrNoLeader, err)
		}
		a.onWait(err, left)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(a.pause):
		}
	}
}

func tryOnce(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// isLeaderless reports whether an error may go away once there is a leader.
func isLeaderless(err error) bool {
	return errors.Is(err, bus.ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) || bus.IsUnavailable(err) && !errors.Is(err, bus.ErrNoJetStream)
}
