package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control/schedules"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// closeWait is how long a run that is over may take to close its logs: less than the time
// after which a client retries.
const closeWait = 2 * time.Second

// logStatus describes how far a log of a run is from its end.
type logStatus struct {
	reader   *activation.LogReader
	super    *activation.Supervisor // nil: an agent's
	agent    *activation.Agent      // nil: a supervisor's
	closed   uint64                 // index of the entry that closed it; 0: it is open
	last     uint64                 // index of its newest entry
	newer    bool                   // it has an entry of a newer form
	imported bool                   // all its entries are
	bytes    uint64                 // of its entries
	senders  map[string]bool        // of the parts of a history in it
	hasOther bool                   // it has entries that are no such parts
	starts   activation.StartCount
	// canceledAt is when the agent was canceled, the first time or the first time with now.
	canceledAt  time.Time
	canceledNow bool // that was with now
}

func newLogStatus(at mailbox.Address) *logStatus {
	e := &logStatus{senders: map[string]bool{}}
	if at.Agent() == mailbox.Super {
		e.super = &activation.Supervisor{Addr: at}
		e.reader = activation.Watch(at, e.super)
		return e
	}
	e.agent = &activation.Agent{Addr: at}
	e.reader = activation.Watch(at, e.agent)
	return e
}

func (e *logStatus) readEntry(m mailbox.Message) {
	e.imported = m.Imported && (e.imported || e.last == 0)
	r := e.reader.Next(m)
	e.last = m.Place
	e.bytes += uint64(len(m.Data))
	e.newer = e.newer || errors.Is(r.Err, mailbox.ErrForm)
	if e.closed == 0 && e.reader.Phase == activation.Closed {
		e.closed = m.Place
	}
	if c := e.cancelFact(); c != nil {
		e.noteCancel(m.At, *c)
	}
	entry, err := mailbox.Decode(m.Data)
	if err != nil || len(entry.Items) == 0 {
		e.hasOther = true
		return
	}
	if by, ok := partSender(entry); ok {
		e.senders[by] = true
	} else if entry.From != m.To && entry.Items[0].Kind != (agent.Canceled{}).Kind() {
		e.hasOther = true // not of its own activation, which an upload begins, and not of a delete that was interrupted
	}
	for _, item := range entry.Items { // an agent that takes no more requests skips it; its log is removed anyway
		var f agent.Canceled
		if item.Kind == f.Kind() && mailbox.Unmarshal(item.Body, &f) == nil {
			e.noteCancel(m.At, f)
		}
	}
	e.starts.Read(entry)
}

func (e *logStatus) noteCancel(stamp int64, f agent.Canceled) {
	if e.canceledAt.IsZero() || f.Now && !e.canceledNow {
		e.canceledAt, e.canceledNow = time.UnixMilli(stamp), f.Now
	}
}

// readLogStatuses reads every log of a run.
func readLogStatuses(ctx context.Context, post mailbox.Store, run string) (map[mailbox.Address]*logStatus, error) {
	all := map[mailbox.Address]*logStatus{}
	err := post.ReadRun(ctx, run, func(m mailbox.Message) error {
		e := all[m.To]
		if e == nil {
			e = newLogStatus(m.To)
			all[m.To] = e
		}
		e.readEntry(m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("control: read %s: %w", run, err)
	}
	return all, nil
}

// openAgents returns the agents whose logs are not closed.
func openAgents(ends map[mailbox.Address]*logStatus) []string {
	var list []string
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		if ends[at].closed == 0 && ends[at].super == nil {
			list = append(list, at.Agent())
		}
	}
	return list
}

// remover deletes runs that have ended, conversations and schedules, and prunes.
type remover struct {
	cfg       *Config
	locks     *runLocks
	lanes     *laneLogs
	schedules *schedules.Registry
	canceler  *canceler
}

// deleteRun removes a run that has ended: its logs, its blobs and its row. Of each log the
// closing entry stays as a tombstone, so that a late outbox message does not create the
// actor again (PROTOCOL P14). From the first removal on its row says so, and no client sees the run
// any more. If the process dies during a delete, retention or the next delete request finishes it.
func (c *remover) deleteRun(ctx context.Context, r client.DeleteRequest) (any, error) {
	if r.Conversation != "" && r.RunID == "" {
		return c.deleteConversation(ctx, r.Conversation)
	}
	if r.Schedule != "" && r.RunID == "" {
		return struct{}{}, c.schedules.Delete(ctx, r.Schedule)
	}
	reply, _, err := c.removeRun(ctx, r.RunID, r.Unopened)
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// removeRun is deleteRun for one run. It also returns how many bytes the entries had.
func (c *remover) removeRun(ctx context.Context, run string, unopened bool) (reply client.Deleted, size uint64, err error) {
	reply.RunID = run
	if err := names.CheckToken(run); err != nil {
		return reply, 0, &client.Error{Code: client.CodeBad, Text: "run_id: " + err.Error(), Hint: "`troupe list` shows the runs"}
	}
	if mailbox.IsReserved(run) {
		return reply, 0, refuse.NoRun(run)
	}
	done, err := c.locks.lockRun(ctx, run)
	if err != nil {
		return reply, 0, err
	}
	defer done()
	row, listed, err := c.cfg.Runs.Get(ctx, run)
	if err != nil {
		return reply, 0, err
	}
	ends, err := c.awaitClosedLogs(ctx, run, row.State)
	if err != nil {
		return reply, 0, err
	}
	super := mailbox.At(run, mailbox.Super)
	if unopened && (listed || ends[super] != nil && !ends[super].reader.Deleted) {
		return reply, 0, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("run %s exists", run), Hint: "omit unopened to delete the run"}
	}
	if !listed && ends[super] != nil && ends[super].reader.Deleted {
		reply.Already = true
		return reply, 0, nil
	}
	if !listed && len(ends) == 0 { // a run that was refused may still have attachments
		if err := c.cfg.Blobs.Drop(ctx, run); err != nil || unopened {
			return reply, 0, err
		}
		return reply, 0, refuse.NoRun(run)
	}
	isUpload := false
	if !listed && ends[super] == nil {
		isUpload, err = checkUnopenedLogs(ctx, run, ends)
	}
	if err == nil {
		ends, err = c.canceler.stopAgents(ctx, run, ends)
	}
	if err != nil {
		return reply, 0, err
	}
	if listed && !row.Removing {
		err = c.cfg.Runs.MarkRemoving(ctx, run)
	}
	if err != nil {
		return reply, 0, err
	}
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		size += ends[at].bytes
		if at != super {
			reply.Agents++
			err = errors.Join(err, purgeToTombstone(ctx, c.cfg.Post, at, ends[at]))
		}
	}
	if err == nil && !isUpload {
		err = purgeToTombstone(ctx, c.cfg.Post, super, ends[super])
	}
	if err == nil {
		err = c.cfg.Blobs.Drop(ctx, run)
	}
	if err == nil {
		err = c.cfg.Runs.Remove(ctx, run)
	}
	return reply, size, err
}

// awaitClosedLogs reads the logs of a run once they are all closed. It wakes the actors of a run that
// is over so that they close their logs: the process that ended the run may have died
// before that. A run whose supervisor was given up is never closed: its row says that it
// has ended, and its log does not. Of a run of a newer release only the row gives the
// state.
func (c *remover) awaitClosedLogs(ctx context.Context, run string, row client.RunState) (map[mailbox.Address]*logStatus, error) {
	woken := time.Time{}
	for pause := cancelLookMin; ; pause = min(2*pause, cancelLookMax) {
		ends, err := readLogStatuses(ctx, c.cfg.Post, run)
		if err != nil {
			return nil, err
		}
		super := ends[mailbox.At(run, mailbox.Super)]
		switch {
		case super != nil && super.newer && super.closed == 0 && row != client.RunFinished:
			return nil, refuse.NewerLog(mailbox.At(run, mailbox.Super))
		case super == nil, super.reader.Deleted, super.super.State.Phase == "" && super.closed == 0:
			return ends, nil // deleted already, or never opened
		case super.closed > 0 && len(openAgents(ends)) == 0:
			return ends, nil
		case super.closed == 0 && (super.newer || super.super.State.Phase != supervisor.Over) && row == client.RunFinished:
			return ends, nil
		case super.closed == 0 && super.super.State.Phase != supervisor.Over:
			return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%s has not ended", run), Hint: "cancel it first: `troupe cancel " + run + "`"}
		case woken.IsZero():
			woken = time.Now()
			if err := c.cfg.Node.Resume(ctx, run); err != nil {
				return nil, err
			}
		case time.Since(woken) > closeWait && (super.closed > 0 || super.isOrphaned() || super.reader.Garbage > 0 || super.reader.Damage != ""):
			return ends, nil // no actor closes it, or its closing entry cannot be read
		case time.Since(woken) > closeWait:
			return nil, &client.Error{Code: client.CodeUnavailable, Text: fmt.Sprintf("%s has ended, but these logs are not closed yet: %s", run, strings.Join(append([]string{mailbox.Super}, openAgents(ends)...), ", ")), Hint: "ask again"}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// purgeToTombstone removes the entries of a log but the one that closes it. It appends an end to a log
// that does not end with one: the log of a run that was never opened, of an agent that no activation can
// read, or one with messages that came after its end.
func purgeToTombstone(ctx context.Context, post mailbox.Store, at mailbox.Address, e *logStatus) error {
	var place uint64
	if e != nil && e.closed == e.last {
		place = e.closed
	}
	if place == 0 {
		data, err := activation.Tombstone(at)
		if err == nil {
			place, err = mailbox.Put(ctx, post, at, data)
		}
		if err != nil {
			return fmt.Errorf("control: close %s: %w", at, err)
		}
	}
	if err := post.Purge(ctx, at, place); err != nil {
		return fmt.Errorf("control: delete: %w", err)
	}
	return nil
}
