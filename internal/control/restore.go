package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
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
	// restoreStep is how long one request imports entries; it is below requestTimeout.
	restoreStep = 5 * time.Second
	// restoreChunk is how many entries are imported at once.
	restoreChunk = 1024
	// RestoreEntriesMax is the most entries of a run that is restored: each request checks all of them, at 0.1 ms each.
	RestoreEntriesMax = 50_000
	restorePartsMax   = mailbox.RunBlobBytesMax/client.AttachPartBytes + 1
	// restoreLock is the lock of all restores of a node: each holds a whole file in memory. It is no id of a run.
	restoreLock = "restore*"
)

// restoreRun imports the logs of a run from a run file.
func (c *opener) restoreRun(ctx context.Context, r client.RestoreRequest) (any, error) {
	if err := checkRunID(r.RunID); err != nil {
		return nil, err
	}
	if r.AcceptApprovals || len(r.Answers) > 0 {
		if err := refuseAgentProgram(ctx); err != nil {
			return nil, err
		}
	}
	r.Named.Fork = "" // a restored run keeps its model
	if c.cfg.CheckRestored == nil {
		return nil, &client.Error{Code: client.CodeBad, Text: "this node cannot restore runs", Hint: "send the request to a troupe-node"}
	}
	for _, lock := range []string{restoreLock, r.RunID} {
		done, err := c.locks.lockRun(ctx, lock)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	f, err := c.readUpload(ctx, r)
	if err != nil {
		return nil, err
	}
	checked, err := c.checkRestore(f, r, time.Now())
	if err != nil {
		return nil, err
	}
	if err := c.checkRoom(ctx); err != nil {
		return nil, err
	}
	held, err := c.readImported(ctx, checked)
	if err != nil {
		return nil, err
	}
	reply := client.Restored{Notes: checked.notes(), RunID: r.RunID, State: checked.state(), Logs: len(checked.logs), Entries: len(f.Entries), Existed: held.committed}
	if !held.committed {
		if reply.More, err = c.importRun(ctx, f, checked, held); err != nil || reply.More {
			return reply, err
		}
	}
	_, listed, err := c.cfg.Runs.Get(ctx, r.RunID)
	if err == nil && (!listed || !held.committed) {
		err = c.listRestored(ctx, checked)
	}
	if err != nil {
		return nil, err
	}
	if err := c.wakeRestored(ctx, checked); err != nil {
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
func (c *opener) readUpload(ctx context.Context, r client.RestoreRequest) (f runfile.File, err error) {
	switch {
	case c.cfg.Blobs == nil:
		return f, &client.Error{Code: client.CodeBad, Text: "this node stores no blobs", Hint: "ask a node that runs agents"}
	case checkRunID(r.Upload) != nil || r.Upload == r.RunID:
		return f, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("upload is %.80q", r.Upload), Hint: "send the file with `attach` under an id that no run has"}
	case len(r.Parts) == 0 || len(r.Parts) > restorePartsMax:
		return f, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("the file has %d parts, 1 to %d are read", len(r.Parts), restorePartsMax), Hint: "send the file with `attach`"}
	}
	// the end of the restore removes all that is stored under this id
	if err := c.checkUnopened(ctx, r.Upload); err != nil {
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

// importedLogs is what the store holds of a run that is being restored.
type importedLogs struct {
	entries   map[mailbox.Address]int // imported
	newest    map[mailbox.Address]uint64
	committed bool // the import is whole
}

// readImported reads what the store holds of the run, which must be the beginning of what is imported.
func (c *opener) readImported(ctx context.Context, checked checkedRestore) (held importedLogs, err error) {
	held = importedLogs{entries: map[mailbox.Address]int{}, newest: map[mailbox.Address]uint64{}}
	same, super := true, mailbox.At(checked.run, mailbox.Super)
	err = c.cfg.Post.ReadRun(ctx, checked.run, func(m mailbox.Message) error {
		log, n := checked.logs[m.To], held.entries[m.To]
		switch {
		case m.Imported && n < len(log) && bytes.Equal(log[n].Data, m.Data):
			held.entries[m.To]++
			held.newest[m.To] = m.Place
		case m.Imported:
			same = false
		case m.To == super && n > 0:
			held.committed = true
		case n == 0:
			same = false // a new entry comes first: the run is no restored one
		}
		return nil
	})
	for at, log := range checked.logs {
		same = same && (!held.committed || held.entries[at] == len(log))
	}
	switch {
	case err != nil:
		return held, fmt.Errorf("control: restore: read %s: %w", checked.run, err)
	case len(held.newest) == 0 && same:
		_, listed, err := c.cfg.Runs.Get(ctx, checked.run)
		if err != nil || !listed {
			return held, err
		}
	case same:
		return held, nil
	}
	if err := c.explainMissing(ctx, checked.run); isGone(err) {
		return held, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("run %s was deleted here less than 30 days ago", checked.run), Hint: "restore it into another state directory or on another server"}
	}
	refused := &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("there is a run %s here, and it is not a restore of this file with the same answers", checked.run),
		Hint: "restore it into another state directory or on another server"}
	if len(held.newest) > 0 && !held.committed {
		refused.Hint += ", or delete the unfinished restore: `troupe delete " + checked.run + "`"
	}
	return held, refused
}

// importRun imports what the store lacks; more says that the time of the request is over before all is imported.
func (c *opener) importRun(ctx context.Context, f runfile.File, checked checkedRestore, held importedLogs) (more bool, err error) {
	until := time.Now().Add(restoreStep)
	for _, data := range f.Blobs {
		if _, err := c.cfg.Blobs.Put(ctx, checked.run, data); err != nil {
			return false, fmt.Errorf("control: restore: %w", err)
		}
		if time.Now().After(until) {
			return true, nil // a blob that is stored already takes no time
		}
	}
	missing, seen := []mailbox.Message(nil), map[mailbox.Address]int{}
	for _, m := range checked.entries {
		if seen[m.To]++; seen[m.To] > held.entries[m.To] {
			missing = append(missing, m)
		}
	}
	size := 1 // of the first part: the first entry takes the id of the run
	if len(held.newest) > 0 {
		size = restoreChunk
	}
	for len(missing) > 0 {
		if time.Now().After(until) {
			return true, nil
		}
		n := min(size, len(missing))
		if err := c.cfg.Post.Import(ctx, held.newest, missing[:n]); err != nil {
			return false, fmt.Errorf("control: restore: %w", err)
		}
		if missing, size = missing[n:], restoreChunk; len(missing) == 0 {
			break
		}
		if held, err = c.readImported(ctx, checked); err != nil {
			return false, err
		}
	}
	return false, c.repeatFirst(ctx, checked, mailbox.At(checked.run, mailbox.Super))
}

// repeatFirst appends the first entry of a log once more. It is read as a repetition.
func (c *opener) repeatFirst(ctx context.Context, checked checkedRestore, at mailbox.Address) error {
	if _, err := mailbox.Put(ctx, c.cfg.Post, at, checked.logs[at][0].Data); err != nil {
		return fmt.Errorf("control: restore: %w", err)
	}
	return nil
}

// listRestored writes the row of the run.
func (c *opener) listRestored(ctx context.Context, checked checkedRestore) error {
	report := Report{Node: c.cfg.Name, State: checked.replayed.Super}
	err := c.cfg.Post.Read(ctx, mailbox.At(checked.run, mailbox.Super), 0, 0, func(m mailbox.Message) error {
		if m.Imported {
			report.Place = m.Place
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("control: restore: %w", err)
	}
	if checked.isOver() {
		result := report.State.Result()
		report.Result = &result
	}
	if _, err = c.cfg.Runs.Record(ctx, checked.run, report, true); err != nil {
		return err
	}
	for _, a := range checked.answeredQuestions() { // or the run seems to wait until its agents have read the answers
		err := c.cfg.Runs.claimAnswer(ctx, checked.run, a, RowSummary{report.State.Summary(true), report.Place, mailbox.Form})
		if err != nil && !hasCode(err, client.CodeConflict) { // then its agent has read the answer already
			return err
		}
	}
	return nil
}

// wakeRestored wakes the agents whose logs are open. The supervisor was woken by the end of the import.
func (c *opener) wakeRestored(ctx context.Context, checked checkedRestore) error {
	if c.cfg.NoActors || checked.isOver() {
		return nil
	}
	for at, log := range checked.logs {
		if at.Agent() == mailbox.Super || slices.ContainsFunc(log, isClosing) {
			continue
		}
		if err := c.repeatFirst(ctx, checked, at); err != nil {
			return err
		}
	}
	return nil
}

// isClosing reports whether an entry ends its log.
func isClosing(m mailbox.Message) bool {
	e, err := mailbox.Decode(m.Data)
	return err == nil && e.From == m.To && len(e.Items) > 0 && e.Items[0].Kind == agent.Closed{}.Kind()
}

// isUnfinishedRestore reports whether a log of a supervisor holds imported entries alone.
func isUnfinishedRestore(ctx context.Context, post mailbox.Store, run string) (unfinished bool, err error) {
	err = post.Read(ctx, mailbox.At(run, mailbox.Super), 0, 0, func(m mailbox.Message) error {
		if unfinished = m.Imported; !unfinished {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
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
