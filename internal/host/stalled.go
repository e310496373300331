package host

import (
	"sync"
	"time"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
)

// journal keeps whether this node can write its logs, by what its appends meet and by
// what its own server says of the disk, and tells the operator and observers of each
// change. Nothing is decided by it but that new runs are refused: what waits for its
// entry waits.
type journal struct {
	h *Host

	mu    sync.Mutex
	stall jetstream.Stall
	disk  bus.Disk
	since time.Time // when it was told that the logs cannot be written; zero: they can
	began time.Time // since when they could not
}

// stalled takes what the appends meet.
func (j *journal) stalled(s jetstream.Stall) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stall = s
	j.tell()
}

// diskStands takes what the embedded server says of its disk.
func (j *journal) diskStands(d bus.Disk) {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.disk
	j.disk = d
	j.tell()
	if d.Low && !was.Low && d.Failed.IsZero() {
		j.h.cfg.Logger.Warn("disk low: new runs are refused, live runs go on", "path", d.Path, "free_bytes", d.Free, "why", d.Why, "remedy", d.Remedy)
		j.publish(gateway.JournalLow, time.Now())
	}
	if was.Low && !d.Low && d.Failed.IsZero() {
		j.h.cfg.Logger.Info("disk has room again: new runs are accepted", "path", d.Path, "free_bytes", d.Free)
		j.publish(gateway.JournalAvailable, time.Now())
	}
}

// tell tells of a change. mu is held.
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
		j.publish(gateway.JournalUnavailable, now)
	case !broken && !j.since.IsZero():
		j.since = time.Time{}
		j.h.cfg.Logger.Info("the logs can be written again", "after", now.Sub(j.began))
		j.publish(gateway.JournalAvailable, now)
	}
}

// state is how the journal stands. mu is held.
func (j *journal) state(now time.Time) gateway.JournalState {
	s := gateway.JournalState{Waiting: j.stall.Waiting, Why: j.stall.Why}
	if !j.began.IsZero() {
		s.WaitedMS = now.Sub(j.began).Milliseconds()
	}
	if d := j.disk; d.Why != "" {
		s.Why, s.Path, s.FreeBytes, s.Remedy = d.Why, d.Path, d.Free, d.Remedy
	}
	return s
}

// publish tells observers. mu is held.
func (j *journal) publish(kind string, now time.Time) {
	j.h.publish(gateway.Journal(j.h.cfg.Name, kind, j.state(now), now))
}

// noAnswer is said of logs whose server gives no reason.
const noAnswer = "the server stores no entries, and says no reason"

// info is how the journal stands for clients; nil while all is well.
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
