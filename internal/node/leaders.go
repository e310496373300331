package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/logstore/local"
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

// openStores opens the logs and the buckets.
func (n *Node) openStores(ctx context.Context) (buckets *bus.Buckets, err error) {
	var logs, blobs int64
	if n.embedded != nil {
		logs, blobs = n.embedded.StoreShares() // of a disk that may be small
	}
	if n.embedded != nil && n.embedded.LogStore() == statedir.LogsInFiles {
		n.post, err = local.Open(ctx, local.Config{Dir: statedir.LogsDir(n.embedded.StateDir()), BytesMax: uint64(logs), Lazy: n.cfg.Lazy,
			Stalled: n.logHealth.reportStall, Logger: n.cfg.Logger})
		if err != nil {
			n.post = nil
			return nil, err
		}
	}
	err = n.awaitLeaders(ctx, func(ctx context.Context) (err error) {
		if n.embedded == nil {
			if err = bus.CheckJetStream(ctx, n.logConn); err != nil {
				return err
			}
		}
		if n.post == nil {
			if err = n.openStreams(ctx, logs); err != nil {
				return err
			}
		}
		buckets, err = bus.ConnectBuckets(ctx, n.logConn, bus.BucketConfig{Names: n.names, BlobBytesMax: blobs})
		if err == nil && n.embedded == nil && !n.cfg.NoActors { // an embedded server is up only with its node
			n.answers, err = bus.ReadAnswers(ctx, n.logConn, n.names)
		}
		return err
	})
	return buckets, err
}

// openStreams opens the logs in JetStream.
func (n *Node) openStreams(ctx context.Context, bytesMax int64) error {
	post, err := jetstream.Open(ctx, n.logConn, jetstream.Config{Names: n.names, Reader: n.readerConn, BytesMax: bytesMax, Others: n.embedded == nil,
		Stalled: n.logHealth.reportStall, Logger: n.cfg.Logger})
	if err != nil {
		return err
	}
	n.post, n.streams = post, post
	return nil
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
