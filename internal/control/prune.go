package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
)

// Limits of one request to prune.
const (
	pruneAtOnce = 100
	// pruneSpare is the request time that must be left to begin another delete.
	pruneSpare = closeWait + stopWait + 2*time.Second
	// tombstoneWork is how long one request removes tombstones: less than the time after which
	// a client retries.
	tombstoneWork = 2 * time.Second
)

// tombstoneAge is how long the tombstones of deleted logs stay.
const tombstoneAge = 30 * 24 * time.Hour

// pruneRuns deletes the runs that ended long ago (OlderThanMS), and the tombstones of runs that
// were deleted long ago (tombstoneAge). A reply may cover only a part of them: if More is
// set, the client asks again.
func (c *remover) pruneRuns(ctx context.Context, r client.PruneRequest) (any, error) {
	if r.OlderThanMS < 0 {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("older_than_ms must not be negative: it is %d", r.OlderThanMS), Hint: "0 selects every finished run"}
	}
	now := time.Now()
	list, err := c.cfg.Runs.ListRows(ctx)
	if err != nil {
		return nil, err
	}
	reply := client.Pruned{Runs: []string{}, Kept: []client.Kept{}}
	deadline, bounded := ctx.Deadline()
	listed := map[string]bool{}
	for _, info := range list {
		listed[info.RunID] = true
	}
	for _, info := range slices.Backward(list) { // the oldest first
		if end, ok := runindex.EndOf(info.RunInfo); !info.Removing && (!ok || now.Sub(end).Milliseconds() < r.OlderThanMS) || info.RunID <= r.After {
			continue
		}
		if len(reply.Runs)+len(reply.Kept) == pruneAtOnce || bounded && time.Until(deadline) < pruneSpare {
			reply.More = true
			return reply, nil
		}
		if reply.Last = info.RunID; r.DryRun {
			reply.Runs = append(reply.Runs, info.RunID)
			continue
		}
		_, err := c.deleteRun(ctx, client.DeleteRequest{RunID: info.RunID})
		if refused := (*client.Error)(nil); errors.As(err, &refused) {
			reply.Kept = append(reply.Kept, client.Kept{RunID: info.RunID, Why: refused.Text})
			continue
		}
		if err != nil {
			return nil, err
		}
		reply.Runs = append(reply.Runs, info.RunID)
	}
	if !r.DryRun {
		reply.Tombstones, reply.TombstonesLast, err = c.removeTombstones(ctx, listed, r.TombstonesAfter, now)
		reply.More = reply.TombstonesLast != ""
	}
	return reply, err
}

// removeTombstones removes the tombstones of logs that were deleted long ago. No message to
// them is in flight any more. It checks the logs after an address, in order, and at least
// one. last is where it stopped; "": it checked them all.
func (c *remover) removeTombstones(ctx context.Context, listed map[string]bool, after string, now time.Time) (n int, last string, err error) {
	logs, err := c.cfg.Post.Addresses(ctx, "")
	if err != nil {
		return 0, "", fmt.Errorf("control: prune: %w", err)
	}
	slices.Sort(logs)
	until := time.Now().Add(tombstoneWork)
	for _, at := range logs {
		if mailbox.IsReserved(at.Run()) || listed[at.Run()] || string(at) <= after {
			continue
		}
		if last != "" && (ctx.Err() != nil || time.Now().After(until)) {
			return n, last, nil
		}
		stamp, deleted, err := runlog.ReadFirstEntry(ctx, c.cfg.Post, at)
		if err != nil {
			return n, "", err
		}
		if deleted && now.Sub(time.UnixMilli(stamp)) >= tombstoneAge {
			if err := c.cfg.Post.Purge(ctx, at, 0); err != nil {
				return n, "", fmt.Errorf("control: prune: %w", err)
			}
			n++
		}
		last = string(at)
	}
	return n, "", nil
}
