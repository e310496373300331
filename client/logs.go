package client

import (
	"context"
	"fmt"

	"github.com/troupe-run/troupe/mailbox"
)

// LogsRequest asks for the recorded entries of one log of a run. Without Log, the reply lists the logs.
type LogsRequest struct {
	RunID string          `json:"run_id"`
	Log   mailbox.Address `json:"log,omitempty"`
	// After is the place of the last entry of the previous page.
	After uint64 `json:"after,omitempty"`
}

// LogsPage is a list of logs, or a part of a log. More: the next page follows the last entry.
type LogsPage struct {
	Logs    []mailbox.Address `json:"logs,omitempty"`
	Entries []LogEntry        `json:"entries,omitempty"`
	More    bool              `json:"more,omitempty"`
}

// LogEntry is an entry as the store holds it.
type LogEntry struct {
	Place uint64 `json:"place"`
	At    int64  `json:"at"` // Unix milliseconds
	Nanos int64  `json:"nanos,omitempty"`
	Data  []byte `json:"data"`
}

// BlobRequest asks for a part of a blob that the logs of a run name.
type BlobRequest struct {
	RunID  string `json:"run_id"`
	Blob   string `json:"blob"` // its reference
	Offset int64  `json:"offset,omitempty"`
}

// BlobPart is a part of a blob; the blob has Size bytes.
type BlobPart struct {
	Data []byte `json:"data"`
	Size int64  `json:"size"`
}

// AskLogs lists the logs of a run, or reads a page of one of them.
func AskLogs(ctx context.Context, c *Client, r LogsRequest) (LogsPage, error) {
	var page LogsPage
	err := c.askNode(ctx, "logs", r, &page)
	return page, err
}

// Logs reads every log of a run, one after the other. The logs of a run that is live grow meanwhile.
func (c *Client) Logs(ctx context.Context, run string) ([]mailbox.Message, error) {
	list, err := AskLogs(ctx, c, LogsRequest{RunID: run})
	if err != nil {
		return nil, err
	}
	var entries []mailbox.Message
	for _, at := range list.Logs {
		r := LogsRequest{RunID: run, Log: at}
		for more := true; more; {
			page, err := AskLogs(ctx, c, r)
			if err != nil {
				return nil, err
			}
			for _, e := range page.Entries {
				entries = append(entries, mailbox.Message{To: at, Place: e.Place, At: e.At, Nanos: e.Nanos, Data: e.Data})
				r.After = e.Place
			}
			more = page.More && len(page.Entries) > 0
		}
	}
	return entries, nil
}

// Blob reads a blob that the logs of a run name.
func (c *Client) Blob(ctx context.Context, run, ref string) ([]byte, error) {
	var data []byte
	for {
		var part BlobPart
		if err := c.askNode(ctx, "blob", BlobRequest{RunID: run, Blob: ref, Offset: int64(len(data))}, &part); err != nil {
			return nil, err
		}
		data = append(data, part.Data...)
		if int64(len(data)) >= part.Size || len(part.Data) == 0 || len(data) > mailbox.BlobBytesMax {
			break
		}
	}
	if mailbox.BlobRef(data) != ref {
		return nil, fmt.Errorf("client: blob %s of %s: %w", ref, run, mailbox.ErrNoBlob)
	}
	return data, nil
}
