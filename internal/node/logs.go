package node

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/mailbox"
)

// redactedLogs returns the logs for writers: appends redact known secrets.
func (n *Node) redactedLogs() redact.Store {
	if n.watch.metrics == nil {
		return redact.Store{Store: n.post, Mask: n.mask}
	}
	return redact.Store{Store: timedStore{n.post, n.watch.metrics.ObserveAppend}, Mask: n.mask}
}

// timedStore measures how long appends take.
type timedStore struct {
	mailbox.Store
	observe func(took time.Duration, failed bool)
}

// Append appends an entry to a log.
func (s timedStore) Append(ctx context.Context, to mailbox.Address, data []byte, done func(place uint64, err error)) {
	began := time.Now()
	s.Store.Append(ctx, to, data, func(place uint64, err error) {
		s.observe(time.Since(began), err != nil)
		done(place, err)
	})
}

// requestLogs returns the logs for requests.
func (n *Node) requestLogs() mailbox.Store {
	if n.cfg.watchRequests != nil {
		return n.cfg.watchRequests(n.redactedLogs())
	}
	return n.redactedLogs()
}

// logsStored returns the function that measures the logs in all streams; nil: they are in files, which Room measures.
func logsStored(h *Node) func(context.Context) (uint64, func(mailbox.Address) bool, error) {
	if h.streams == nil {
		return nil
	}
	return h.streams.Stored
}

// passiveStore is a log store whose entries wake no actor.
type passiveStore struct{ redact.Store }

func (passiveStore) Tail(context.Context, func(mailbox.Message)) (stop func(), err error) {
	return func() {}, nil
}

// wrapLogsKey is the key of the context value of WithLogs.
type wrapLogsKey struct{}

// WithLogs returns a context in which Start opens logs that are wrapped: package troupetest kills a node by taking its
// logs away.
func WithLogs(ctx context.Context, wrap func(mailbox.Store) mailbox.Store) context.Context {
	return context.WithValue(ctx, wrapLogsKey{}, wrap)
}

// wrapLogs returns the logs, wrapped as the context of Start asks.
func wrapLogs(ctx context.Context, logs mailbox.Store) mailbox.Store {
	if wrap, ok := ctx.Value(wrapLogsKey{}).(func(mailbox.Store) mailbox.Store); ok {
		return wrap(logs)
	}
	return logs
}
