package runimport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// A run is restored in this order, so that no node acts on a part of it:
//
//  1. the blobs;
//  2. the entries of all logs, as imported ones, which wake no actor. The first entry of the supervisor's log is
//     imported before the others: from then on the id of the run is taken;
//  3. the first entry of the supervisor's log once more, as a new entry. It repeats a request that the log has, so it
//     decides nothing, and it ends the import: until then no node takes the run for one;
//  4. the row in the index;
//  5. the first entry of each other open log once more, which wakes the actor on the node that holds the log.
//
// A restore that was broken off goes on: it compares what the logs hold with the file.

const (
	// RestoreEntriesMax is the most entries of a run that is restored: each request checks all of them, at 0.1 ms each.
	RestoreEntriesMax = 50_000
	restorePartsMax   = mailbox.RunBlobBytesMax/client.AttachPartBytes + 1
	// restoreLock is the lock of all restores of a node: each holds a whole file in memory. It is no id of a run.
	restoreLock = "restore*"
)

// Restorer restores runs from the run files that clients upload.
type Restorer struct {
	cfg      *Config
	check    *runFileCheck
	importer *runImporter
}

// Restore imports the logs of a run from a run file.
func (c *Restorer) Restore(ctx context.Context, r client.RestoreRequest) (any, error) {
	if err := bounds.CheckRunID(r.RunID); err != nil {
		return nil, err
	}
	if r.AcceptApprovals || len(r.Answers) > 0 {
		if err := c.cfg.CheckApprover(ctx); err != nil {
			return nil, err
		}
	}
	r.Named.Fork = "" // a restored run keeps its model
	if c.cfg.CheckRestored == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node cannot restore runs", Hint: "send the request to a troupe-node"}
	}
	for _, lock := range []string{restoreLock, r.RunID} {
		done, err := c.cfg.Lock(ctx, lock)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	f, err := c.readUpload(ctx, r)
	if err != nil {
		return nil, err
	}
	checked, err := c.check.checkRestore(f, r, time.Now())
	if err != nil {
		return nil, err
	}
	if err := c.cfg.CheckRoom(ctx); err != nil {
		return nil, err
	}
	held, err := c.importer.readImported(ctx, checked)
	if err != nil {
		return nil, err
	}
	reply := client.Restored{Notes: checked.notes(), RunID: r.RunID, State: checked.state(), Logs: len(checked.logs), Entries: len(f.Entries), Existed: held.committed}
	if !held.committed {
		if reply.More, err = c.importer.importRun(ctx, f, checked, held); err != nil || reply.More {
			return reply, err
		}
	}
	_, listed, err := c.cfg.Index.Get(ctx, r.RunID)
	if err == nil && (!listed || !held.committed) {
		err = c.importer.listRestored(ctx, checked)
	}
	if err != nil {
		return nil, err
	}
	if err := c.importer.wakeRestored(ctx, checked); err != nil {
		return nil, err
	}
	return reply, c.cfg.Blobs.Drop(ctx, r.Upload)
}

// notes says how the restored run differs from the one in the file, without what the request names.
func (c checkedRestore) notes() (notes []string) {
	if o := c.replayed.Super.Run; o.InLane && o.Conversation == "" && !c.isOver() {
		notes = append(notes, "it was a run of a conversation, and goes on without it; `troupe run --fork "+c.run+"` begins with its history")
	}
	return notes
}

// readUpload reads the file from the parts that the client has sent.
func (c *Restorer) readUpload(ctx context.Context, r client.RestoreRequest) (f runfile.File, err error) {
	switch {
	case c.cfg.Blobs == nil:
		return f, &client.Error{Code: client.CodeBad, Text: "this node stores no blobs", Hint: "ask a node that runs agents"}
	case bounds.CheckRunID(r.Upload) != nil || r.Upload == r.RunID:
		return f, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("upload is %.80q", r.Upload), Hint: "send the file with `attach` under an id that no run has"}
	case len(r.Parts) == 0 || len(r.Parts) > restorePartsMax:
		return f, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the file has %d parts, 1 to %d are read", len(r.Parts), restorePartsMax), Hint: "send the file with `attach`"}
	}
	// the end of the restore removes all that is stored under this id
	if err := c.cfg.CheckUnopened(ctx, r.Upload); err != nil {
		return f, err
	}
	f, err = runfile.Read(&uploadReader{ctx: ctx, blobs: c.cfg.Blobs, upload: r.Upload, parts: r.Parts})
	switch {
	case errors.Is(err, runfile.ErrNewer):
		return f, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "restore it with a newer troupe"}
	case errors.Is(err, runfile.ErrFile):
		return f, &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "`troupe dump RUN` writes a file that can be restored"}
	case errors.Is(err, mailbox.ErrNoBlob), errors.Is(err, mailbox.ErrBlobRef):
		return f, &client.Error{Code: client.CodeBad, Text: "a part of the file is missing: " + err.Error(), Hint: "send the file again"}
	}
	return f, err
}

// uploadReader reads the parts of a file one after the other.
type uploadReader struct {
	ctx    context.Context
	blobs  mailbox.Blobs
	upload string
	parts  []string
	part   bytes.Reader
}

// Read implements io.Reader.
func (u *uploadReader) Read(p []byte) (int, error) {
	for u.part.Len() == 0 {
		if len(u.parts) == 0 {
			return 0, io.EOF
		}
		if err := mailbox.CheckBlobRef(u.parts[0]); err != nil {
			return 0, err
		}
		data, _, err := u.blobs.Get(u.ctx, u.upload, u.parts[0], 0, client.AttachPartBytes)
		if err != nil {
			return 0, err
		}
		u.part.Reset(data)
		u.parts = u.parts[1:]
	}
	return u.part.Read(p)
}

// sortImported orders entries as their stores stamped them, and those of each log as they are.
func sortImported(entries []mailbox.Message) []mailbox.Message {
	newest := map[mailbox.Address]mailbox.Stamp{}
	stamps := make([]mailbox.Stamp, len(entries))
	order := make([]int, len(entries))
	for i, m := range entries {
		s := mailbox.Stamp{At: m.At, Nanos: m.Nanos}
		if s.Compare(newest[m.To]) < 0 {
			s = newest[m.To]
		}
		stamps[i], newest[m.To], order[i] = s, s, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return stamps[a].Compare(stamps[b]) })
	sorted := make([]mailbox.Message, len(entries))
	for i, from := range order {
		sorted[i] = entries[from]
	}
	return sorted
}
