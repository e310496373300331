package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
)

// attach keeps a part of a file that is to come with the prompt of a run, before
// the run is there. Whoever sends it again finds it kept.
func (c *Control) attach(ctx context.Context, r client.AttachRequest) (any, error) {
	if err := bus.Token(r.RunID); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("run_id: %v", err), Hint: "choose a lower-case ULID"}
	}
	if n := len(r.Data); n == 0 || n > client.AttachPartBytes {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("a part of %d bytes", n), Hint: fmt.Sprintf("send 1 to %d bytes at once", client.AttachPartBytes)}
	}
	if c.cfg.Blobs == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node keeps no blobs", Hint: "ask a node that runs agents"}
	}
	done, err := c.only(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := c.attachable(ctx, r); err != nil {
		return nil, err
	}
	ref, err := c.cfg.Blobs.Put(ctx, r.RunID, r.Data)
	switch {
	case errors.Is(err, mailbox.ErrBlobRoom):
		return nil, &client.Error{Code: client.CodeLimit, Text: err.Error(), Hint: "attach less"}
	case err != nil:
		return nil, fmt.Errorf("gateway: attach: %w", err)
	}
	// Another node may have deleted the run meanwhile: its blobs first, or these.
	// Only then are they nobody's: an error of the reading says nothing of the run.
	err = c.missing(ctx, r.RunID)
	switch {
	case isGone(err):
		return nil, errors.Join(err, c.cfg.Blobs.Drop(ctx, r.RunID))
	case !isNotFound(err):
		return nil, err
	}
	return client.Attached{Ref: ref, Size: int64(len(r.Data))}, nil
}

// attachable refuses what nobody would read, or remove: parts for a run that was
// deleted, or that is there and does not have them, and those for which there is
// no room (PROTOCOL P16).
func (c *Control) attachable(ctx context.Context, r client.AttachRequest) error {
	_, listed, err := c.cfg.Runs.Get(ctx, r.RunID)
	if err != nil {
		return err
	}
	if listed {
		_, _, err := c.cfg.Blobs.Get(ctx, r.RunID, mailbox.BlobRef(r.Data), 0, 1)
		if errors.Is(err, mailbox.ErrNoBlob) {
			return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the run %s is there already", r.RunID), Hint: "choose another run_id"}
		}
		return err
	}
	if err := c.missing(ctx, r.RunID); !isNotFound(err) {
		return err
	}
	return c.room(ctx)
}
