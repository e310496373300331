package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// Setup makes the streams and buckets on a server that nodes will share, with
// so many replicas each. It needs credentials that may; nodes need them no more
// after it. What is there already is compared, and left as it is.
func Setup(ctx context.Context, cfg Config, replicas int) (err error) {
	cfg = cfg.withDefaults()
	names, err := bus.NewNames("")
	if err != nil {
		return err
	}
	o := cfg.Bus
	o.InboxPrefix = cmp.Or(o.InboxPrefix, setupInbox)
	nc, err := bus.Connect(o)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := bus.CheckJetStream(ctx, nc); err != nil {
		return err
	}
	post, err := jetstream.Open(ctx, nc, jetstream.Config{Names: names, Replicas: replicas, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	for _, pool := range cfg.Pools {
		size := sizeOf(pool)
		if _, err := post.Make(ctx, pool, size.Shards, size.Streams); err != nil {
			return errors.Join(err, post.Close())
		}
	}
	_, err = bus.ConnectBuckets(ctx, nc, bus.BucketConfig{Names: names, Replicas: replicas})
	return errors.Join(err, post.Close())
}

// setupInbox is where the setup role gets its answers (deploy/nats/troupe.conf).
const setupInbox = "_INBOX_setup"

// ErrDenied: the server does not allow these credentials what a node needs.
var ErrDenied = errors.New("host: the server does not allow what a node needs; make the streams with `troupe-node --setup` and credentials that may, and compare the roles with deploy/nats/troupe.conf")

// denied says why a request got no answer, where the connection knows: a server
// tells of a right that is missing beside the request, which then times out.
func (h *Host) denied(err error) error {
	if refused := h.refused.Load(); refused != nil {
		return fmt.Errorf("%w: %w: %w", ErrDenied, *refused, err)
	}
	return err
}
