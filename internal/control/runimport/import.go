package runimport

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// runImporter writes the checked logs of a run into the store, in the order that restore.go gives.
type runImporter struct{ cfg *Config }

const (
	// restoreStep is how long one request imports entries; it is below RequestTimeout.
	restoreStep = 5 * time.Second
	// restoreChunk is how many entries are imported at once.
	restoreChunk = 1024
)

// importedLogs is what the store holds of a run that is being restored.
type importedLogs struct {
	entries   map[mailbox.Address]int // imported
	newest    map[mailbox.Address]uint64
	committed bool // the import is whole
}

// readImported reads what the store holds of the run, which must be the beginning of what is imported.
func (c *runImporter) readImported(ctx context.Context, checked checkedRestore) (held importedLogs, err error) {
	held = importedLogs{entries: map[mailbox.Address]int{}, newest: map[mailbox.Address]uint64{}}
	same, super := true, mailbox.At(checked.run, mailbox.Super)
	err = c.cfg.Store.ReadRun(ctx, checked.run, func(m mailbox.Message) error {
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
		_, listed, err := c.cfg.Index.Get(ctx, checked.run)
		if err != nil || !listed {
			return held, err
		}
	case same:
		return held, nil
	}
	if err := runlog.ExplainMissing(ctx, c.cfg.Store, checked.run); refuse.IsGone(err) {
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
func (c *runImporter) importRun(ctx context.Context, f runfile.File, checked checkedRestore, held importedLogs) (more bool, err error) {
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
		if err := c.cfg.Store.Import(ctx, held.newest, missing[:n]); err != nil {
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
func (c *runImporter) repeatFirst(ctx context.Context, checked checkedRestore, at mailbox.Address) error {
	if _, err := mailbox.Put(ctx, c.cfg.Store, at, checked.logs[at][0].Data); err != nil {
		return fmt.Errorf("control: restore: %w", err)
	}
	return nil
}

// listRestored writes the row of the run.
func (c *runImporter) listRestored(ctx context.Context, checked checkedRestore) error {
	report := runindex.Report{Node: c.cfg.Node, State: checked.replayed.Super}
	err := c.cfg.Store.Read(ctx, mailbox.At(checked.run, mailbox.Super), 0, 0, func(m mailbox.Message) error {
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
	if _, err = c.cfg.Index.RecordOrAdd(ctx, checked.run, report); err != nil {
		return err
	}
	for _, a := range checked.answeredQuestions() { // or the run seems to wait until its agents have read the answers
		err := c.cfg.Index.ClaimAnswer(ctx, checked.run, a, runindex.RowSummary{Summary: report.State.Summary(true), Place: report.Place, Form: mailbox.Form})
		if err != nil && !refuse.HasCode(err, client.CodeConflict) { // then its agent has read the answer already
			return err
		}
	}
	return nil
}

// wakeRestored wakes the agents whose logs are open. The supervisor was woken by the end of the import.
func (c *runImporter) wakeRestored(ctx context.Context, checked checkedRestore) error {
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
