package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cluster"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
)

// SetupServer creates the streams and buckets on a server that nodes will share, with the given
// number of replicas. It needs credentials that permit this; afterwards nodes work without
// those rights. SetupServer compares streams and buckets that exist already, and does not change
// them. It waits for leaders as long as a node that starts (Config.ServerWait).
func SetupServer(ctx context.Context, cfg Config, replicas int) error {
	cfg = cfg.withDefaults()
	o := cfg.Bus
	o.InboxPrefix = cmp.Or(o.InboxPrefix, setupInbox)
	nc, err := bus.Connect(o)
	if err != nil {
		return err
	}
	defer nc.Close()
	refused := func() bool { return errors.Is(nc.LastError(), nats.ErrPermissionViolation) }
	return leaderWait{wait: cfg.ServerWait, refused: refused, first: cfg.ServerWait, try: cfg.ServerWait, pause: leaderRetryPause, onWait: func(err error, left time.Duration) {
		cfg.Logger.Warn("the server has no leader for what is to be made; waiting", "for", left.Round(time.Second), "error", err)
	}}.run(ctx, func(ctx context.Context) error { return makeStores(ctx, nc, cfg, replicas) })
}

// makeStores makes the streams and buckets that are missing.
func makeStores(ctx context.Context, nc *nats.Conn, cfg Config, replicas int) error {
	names, err := names.NewNames("")
	if err != nil {
		return err
	}
	if err := checkJetStream(ctx, nc); err != nil {
		return err
	}
	post, err := jetstream.Open(ctx, nc, jetstream.Config{Names: names, Replicas: replicas, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	for _, pool := range cfg.Pools {
		size := cluster.SizeOf(pool)
		if _, err := post.Make(ctx, pool, size.Shards, size.Streams); err != nil {
			return errors.Join(err, post.Close())
		}
	}
	if _, err = bus.ConnectBuckets(ctx, nc, bus.BucketConfig{Names: names, Replicas: replicas}); err == nil {
		err = bus.MakeTriggers(ctx, nc, names, replicas)
	}
	if err == nil {
		_, err = bus.ConnectAnswers(ctx, nc, names, replicas)
	}
	return errors.Join(err, post.Close())
}

// checkJetStream checks for JetStream: a server without a leader does not answer, so the question has a limit.
func checkJetStream(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, leaderTryTimeout)
	defer cancel()
	return bus.CheckJetStream(ctx, nc)
}

// setupInbox is the inbox prefix of the setup role (deploy/nats/troupe.conf).
const setupInbox = "_INBOX_setup"

// ErrDenied: the server does not grant these credentials the rights that a node needs.
var ErrDenied = errors.New("node: the server does not allow what a node needs; compare the roles with deploy/nats/troupe.conf")

// streamCreation is in the subject of the request that creates a stream or a bucket.
const streamCreation = "$JS.API.STREAM.CREATE."

// explainDenied adds the missing right to the error of a request without a reply, if the
// connection knows it: a server reports a missing right separately from the request, which
// then times out. A node that may not create streams needs those of all its pools.
func (n *Node) explainDenied(err error) error {
	refused := n.lastDenied.Load()
	switch {
	case refused == nil:
		return err
	case strings.Contains((*refused).Error(), streamCreation):
		return fmt.Errorf("%w; first make what is missing, with credentials that may: troupe-node --setup --pools %s: %w: %w", ErrDenied, strings.Join(n.cfg.Pools, ","), *refused, err)
	}
	return fmt.Errorf("%w: %w: %w", ErrDenied, *refused, err)
}
