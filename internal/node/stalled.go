package node

import (
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// journal tracks whether this node can write its logs, from the results of its appends and
// from what its own server reports about the disk, and reports each change to the operator
// and to observers. Its only effect is that new runs are refused: actors that wait for
// their entry continue to wait.
type journal struct {
	h *Node

	mu    sync.Mutex
	stall jetstream.Stall
	disk  statedir.Disk
	since time.Time // when it was reported that the logs cannot be written; zero: they can
	began time.Time // since when they could not be written
}

// stalled processes a report about the appends.
func (j *journal) stalled(s jetstream.Stall) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stall = s
	j.tell()
}

// diskStands processes a report of the embedded server about its disk.
func (j *journal) diskStands(d statedir.Disk) {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.disk
	j.disk = d
	j.tell()
	if d.Low && !was.Low && d.Failed.IsZero() {
		j.h.cfg.Logger.Warn("disk low: new runs are refused, live runs go on", "path", d.Path, "free_bytes", d.Free, "why", d.Why, "remedy", d.Remedy)
		j.publish(event.KindJournalLow, time.Now())
	}
	if was.Low && !d.Low && d.Failed.IsZero() {
		j.h.cfg.Logger.Info("disk has room again: new runs are accepted", "path", d.Path, "free_bytes", d.Free)
		j.publish(event.KindJournalAvailable, time.Now())
	}
}

// tell reports a change. The caller holds mu.
func (j *journal) tell() {
	now, broken := time.Now(), !j.stall.Since.IsZero() || !j.disk.Failed.IsZero()
	switch {
	case broken && j.since.IsZero():
		j.since, j.began = now, j.stall.Since
		if j.began.IsZero() || !j.disk.Failed.IsZero() && j.disk.Failed.Before(j.began) {
			j.began = j.disk.Failed
		}
		s := j.state(now)
		j.h.cfg.Logger.Error("journal_unavailable: the logs cannot be written; entries wait, and nothing is begun without them",
			"waited", now.Sub(j.began), "waiting", s.Waiting, "first", j.stall.Subject, "why", s.Why, "path", s.Path, "free_bytes", j.disk.Free, "remedy", s.Remedy)
		j.publish(event.KindJournalUnavailable, now)
	case !broken && !j.since.IsZero():
		j.since = time.Time{}
		j.h.cfg.Logger.Info("the logs can be written again", "after", now.Sub(j.began))
		j.publish(event.KindJournalAvailable, now)
	}
}

// state returns the state of the journal. The caller holds mu.
func (j *journal) state(now time.Time) event.JournalState {
	s := event.JournalState{Waiting: j.stall.Waiting, Why: j.stall.Why}
	if !j.began.IsZero() {
		s.WaitedMS = now.Sub(j.began).Milliseconds()
	}
	if d := j.disk; d.Why != "" {
		s.Why, s.Path, s.FreeBytes, s.Remedy = d.Why, d.Path, d.Free, d.Remedy
	}
	return s
}

// publish reports a change to observers. The caller holds mu.
func (j *journal) publish(kind string, now time.Time) {
	j.h.publish(control.Journal(j.h.cfg.Name, kind, j.state(now), now))
}

// noAnswer is the reason for logs whose server gives none.
const noAnswer = "the server stores no entries, and says no reason"

// info returns the state of the journal for clients; nil if there is no problem.
func (j *journal) info() *client.JournalInfo {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.since.IsZero() && !j.disk.Low {
		return nil
	}
	s := j.state(time.Now())
	i := &client.JournalInfo{Why: s.Why, Path: s.Path, FreeBytes: s.FreeBytes, Remedy: s.Remedy, Low: j.since.IsZero()}
	if !i.Low {
		i.Since = j.began.UTC().Format(time.RFC3339Nano)
	}
	if i.Why == "" {
		i.Why = noAnswer
	}
	if i.Remedy == "" {
		i.Remedy = "look at the NATS server and its disk"
	}
	return i
}
