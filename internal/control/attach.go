package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// attachments stores the files that will be attached to the prompts of runs, before the runs exist.
type attachments struct {
	cfg       *Config
	locks     *runLocks
	lookup    *lookup
	admission *admission
}

// attachPart stores a part of a file that will be attached to the prompt of a run, before the
// run exists. It is idempotent: a client may send the same part again.
func (c *attachments) attachPart(ctx context.Context, r client.AttachRequest) (any, error) {
	if err := bounds.CheckRunID(r.RunID); err != nil {
		return nil, err
	}
	if n := len(r.Data); n == 0 || n > client.AttachPartBytes {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the part has %d bytes", n), Hint: fmt.Sprintf("send parts of 1 to %d bytes", client.AttachPartBytes)}
	}
	if c.cfg.Blobs == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node stores no blobs", Hint: "ask a node that runs agents"}
	}
	done, err := c.locks.lockRun(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := c.checkAttachable(ctx, r); err != nil {
		return nil, err
	}
	ref, err := c.cfg.Blobs.Put(ctx, r.RunID, r.Data)
	switch {
	case errors.Is(err, mailbox.ErrBlobRoom):
		return nil, &client.Error{Code: client.CodeLimit, Text: err.Error(), Hint: "attach less"}
	case err != nil:
		return nil, fmt.Errorf("control: attach: %w", err)
	}
	// Another node may have deleted the run meanwhile, before or after these blobs were
	// stored. Only if the run is gone are they orphaned: a read error proves nothing about the
	// run.
	err = runlog.ExplainMissing(ctx, c.cfg.Post, r.RunID)
	switch {
	case refuse.IsGone(err):
		return nil, errors.Join(err, c.cfg.Blobs.Drop(ctx, r.RunID))
	case !refuse.IsNotFound(err):
		return nil, err
	}
	return client.Attached{Ref: ref, Size: int64(len(r.Data))}, nil
}

// checkAttachable rejects parts that no run would read or remove: parts for a run that was
// deleted, or that exists without them, and parts for which there is no room (PROTOCOL
// P16).
func (c *attachments) checkAttachable(ctx context.Context, r client.AttachRequest) error {
	_, taken, err := c.lookup.findTaken(ctx, r.RunID)
	if err != nil {
		return err
	}
	if taken {
		_, _, err := c.cfg.Blobs.Get(ctx, r.RunID, mailbox.BlobRef(r.Data), 0, 1)
		if errors.Is(err, mailbox.ErrNoBlob) {
			return errRunExists(r.RunID, chooseAnotherID)
		}
		return err
	}
	return c.admission.checkRoom(ctx)
}
