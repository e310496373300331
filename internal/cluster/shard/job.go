package shard

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
)

// A job is work that one node of a cluster does at a time, such as retention. It has a lease like that of a shard: a
// record in the same bucket, valid while the session of its holder lasts. A lease only decides which node tries:
// the work must be harmless if two nodes do it at once.

// jobPrefix begins the keys of the leases of jobs. The rest is no number, so no shard has such a key.
const jobPrefix = "job."

// HoldJob reports whether this node does a job. The node takes the job if no other live node has it, and then keeps it
// until its session ends or it drains. A call costs requests only while the node does not hold the job.
func (k *Keeper) HoldJob(ctx context.Context, name string) (bool, error) {
	k.state.RLock()
	session, live, leaving := k.state.session.id, k.state.session.isLive(), k.state.isLeaving()
	held, is := k.state.jobs[name]
	k.state.RUnlock()
	is = is && held.session == session
	switch {
	case !live:
		return false, nil
	case leaving && is:
		return false, k.releaseJob(ctx, name, held)
	case leaving:
		return false, nil
	case is:
		return true, nil
	}
	ctx, cancel := k.cfg.roundTimeout(ctx)
	defer cancel()
	epoch, err := k.balancer.store.takeOver(ctx, jobPrefix+name, session)
	if errors.Is(err, errHeld) || errors.Is(err, jetstream.ErrKeyExists) || bus.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("shard: take the job %s: %w", name, err)
	}
	k.state.Lock()
	defer k.state.Unlock()
	if k.state.session.id != session {
		return false, nil // the lease names a session that has ended meanwhile
	}
	k.state.jobs[name] = heldLease{epoch: epoch, session: session}
	return true, nil
}

// releaseJob deletes the lease of a job, so that another node need not wait until this one stops.
func (k *Keeper) releaseJob(ctx context.Context, name string, held heldLease) error {
	ctx, cancel := k.cfg.roundTimeout(ctx)
	defer cancel()
	if err := k.cfg.Buckets.Shards.Delete(ctx, jobPrefix+name, jetstream.LastRevision(held.epoch)); err != nil && !bus.IsConflict(err) {
		return fmt.Errorf("shard: release the job %s: %w", name, err)
	}
	k.state.Lock()
	defer k.state.Unlock()
	delete(k.state.jobs, name)
	return nil
}
