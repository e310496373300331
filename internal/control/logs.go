package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
)

// listLogs lists the logs of a run, or returns a page of one of them, as the store holds it.
func (c *viewer) listLogs(ctx context.Context, r client.LogsRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	logs, err := c.cfg.Post.Addresses(ctx, r.RunID)
	if err != nil {
		return nil, fmt.Errorf("control: logs of %s: %w", r.RunID, err)
	}
	slices.Sort(logs)
	if r.Log == "" {
		return client.LogsPage{Logs: logs}, nil
	}
	if !slices.Contains(logs, r.Log) {
		return nil, &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("%s has no log %.200q", r.RunID, r.Log), Hint: "without `log`, the reply lists the logs"}
	}
	page, size := client.LogsPage{}, 0
	err = c.cfg.Post.Read(ctx, r.Log, r.After, 0, func(m mailbox.Message) error {
		if size += len(m.Data); size > bounds.LogPageBytes && len(page.Entries) > 0 {
			page.More = true
			return runlog.ErrEnough
		}
		page.Entries = append(page.Entries, client.LogEntry{Place: m.Place, At: m.At, Nanos: m.Nanos, Data: slices.Clone(m.Data)})
		return nil
	})
	if err != nil && !errors.Is(err, runlog.ErrEnough) {
		return nil, fmt.Errorf("control: read %s: %w", r.Log, err)
	}
	return page, nil
}

// readBlob returns a part of a blob of a run.
func (c *viewer) readBlob(ctx context.Context, r client.BlobRequest) (any, error) {
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return nil, err
	}
	if err := mailbox.CheckBlobRef(r.Blob); err != nil {
		return nil, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "a blob is named by the SHA-256 of its content"}
	}
	if r.Offset < 0 {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("offset is %d", r.Offset), Hint: "an offset counts from 0"}
	}
	if c.cfg.Blobs == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node stores no blobs", Hint: "ask a node that runs agents"}
	}
	data, size, err := c.cfg.Blobs.Get(ctx, r.RunID, r.Blob, r.Offset, bounds.LogPageBytes)
	switch {
	case errors.Is(err, mailbox.ErrNoBlob):
		return nil, &client.Error{Code: client.CodeNotFound, Text: err.Error(), Hint: "the logs name the blobs of a run"}
	case err != nil:
		return nil, fmt.Errorf("control: blob of %s: %w", r.RunID, err)
	}
	return client.BlobPart{Data: data, Size: size}, nil
}
