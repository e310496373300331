package runlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
)

// IsDeleted reports whether a run was deleted: its supervisor's log then holds only the
// tombstone.
func IsDeleted(ctx context.Context, post mailbox.Store, run string) (deleted bool, err error) {
	_, deleted, err = ReadFirstEntry(ctx, post, mailbox.At(run, mailbox.Super))
	return deleted, err
}

// ReadFirstEntry reads the first entry of a log.
func ReadFirstEntry(ctx context.Context, post mailbox.Store, at mailbox.Address) (stamp int64, deleted bool, err error) {
	err = post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		stamp, deleted = m.At, activation.IsTombstone([]mailbox.Message{m})
		return ErrEnough
	})
	if err != nil && !errors.Is(err, ErrEnough) {
		return 0, false, fmt.Errorf("control: read %s: %w", at, err)
	}
	return stamp, deleted, nil
}

// ExplainMissing returns the error that explains why a run does not exist.
func ExplainMissing(ctx context.Context, post mailbox.Store, run string) error {
	if names.CheckToken(run) != nil {
		return refuse.NoRun(run)
	}
	deleted, err := IsDeleted(ctx, post, run)
	switch {
	case err != nil:
		return err
	case deleted:
		return refuse.RunDeleted(run)
	}
	if half, err := isUnfinishedRestore(ctx, post, run); half || err != nil {
		return cmp.Or(err, unfinishedRestoreError(run))
	}
	return refuse.NoRun(run)
}

// ExplainNoAgent returns the error that explains why an agent of a run has no log: there is none, or the run
// was deleted since its row was read.
func ExplainNoAgent(ctx context.Context, post mailbox.Store, id spec.ID, run string) error {
	deleted, err := IsDeleted(ctx, post, run)
	switch {
	case err != nil:
		return err
	case deleted:
		return refuse.RunDeleted(run)
	}
	return refuse.NoAgent(id, run)
}

// isUnfinishedRestore reports whether a log of a supervisor holds imported entries alone.
func isUnfinishedRestore(ctx context.Context, post mailbox.Store, run string) (unfinished bool, err error) {
	err = post.Read(ctx, mailbox.At(run, mailbox.Super), 0, 0, func(m mailbox.Message) error {
		if unfinished = m.Imported; !unfinished {
			return ErrEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrEnough) {
		return false, fmt.Errorf("control: read %s: %w", run, err)
	}
	return unfinished, nil
}

// unfinishedRestoreError refuses requests about a run whose restore is not whole.
func unfinishedRestoreError(run string) error {
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the restore of %s is not finished", run),
		Hint: "repeat `troupe restore` with the same file, or remove what is there: `troupe delete " + run + "`"}
}

// MayContinue reports whether a run that has a log of its supervisor and no row may be taken up: it was not deleted,
// and it is not a restore that was broken off.
func MayContinue(ctx context.Context, post mailbox.Store, run string) (bool, error) {
	deleted, err := IsDeleted(ctx, post, run)
	if err != nil || deleted {
		return false, err
	}
	unfinished, err := isUnfinishedRestore(ctx, post, run)
	return !unfinished && err == nil, err
}
