package node

import (
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/mailbox"
)

// logHealth tracks whether this node can write its logs, from the results of its appends and
// from what its own server reports about the disk, and reports each change to the operator
// and to observers. Its only effect is that new runs are refused: actors that wait for
// their entry continue to wait.
type logHealth struct {
	node *Node

	mu         sync.Mutex
	stall      mailbox.Stall
	disk       statedir.DiskState
	reportedAt time.Time // when it was reported that the logs cannot be written; zero: they can
	stoppedAt  time.Time // since when they could not be written
}

// reportStall processes a report about the appends.
func (j *logHealth) reportStall(s mailbox.Stall) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stall = s
	j.announceChange()
}

// reportDisk processes a report of the embedded server about its disk.
func (j *logHealth) reportDisk(d statedir.DiskState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.disk
	j.disk = d
	j.announceChange()
	if d.Low && !was.Low && d.Failed.IsZero() {
		j.node.cfg.Logger.Warn("disk low: new runs are refused, live runs go on", "path", d.Path, "free_bytes", d.Free, "why", d.Why, "remedy", d.Remedy)
		j.publishChange(event.KindLogsLow, time.Now())
	}
	if was.Low && !d.Low && d.Failed.IsZero() {
		j.node.cfg.Logger.Info("disk has room again: new runs are accepted", "path", d.Path, "free_bytes", d.Free)
		j.publishChange(event.KindLogsAvailable, time.Now())
	}
}

// announceChange reports a change. The caller holds mu.
func (j *logHealth) announceChange() {
	now, broken := time.Now(), !j.stall.Since.IsZero() || !j.disk.Failed.IsZero()
	switch {
	case broken && j.reportedAt.IsZero():
		j.reportedAt, j.stoppedAt = now, j.stall.Since
		if j.stoppedAt.IsZero() || !j.disk.Failed.IsZero() && j.disk.Failed.Before(j.stoppedAt) {
			j.stoppedAt = j.disk.Failed
		}
		s := j.currentState(now)
		j.node.cfg.Logger.Error("journal_unavailable: the logs cannot be written; entries wait, and nothing is begun without them",
			"waited", now.Sub(j.stoppedAt), "waiting", s.Waiting, "first", j.stall.Subject, "why", s.Why, "path", s.Path, "free_bytes", j.disk.Free, "remedy", s.Remedy)
		j.publishChange(event.KindLogsUnavailable, now)
	case !broken && !j.reportedAt.IsZero():
		j.reportedAt = time.Time{}
		j.node.cfg.Logger.Info("the logs can be written again", "after", now.Sub(j.stoppedAt))
		j.publishChange(event.KindLogsAvailable, now)
	}
}

// currentState returns the state of the logs. The caller holds mu.
func (j *logHealth) currentState(now time.Time) event.LogState {
	s := event.LogState{Waiting: j.stall.Waiting, Why: j.stall.Why}
	if !j.stoppedAt.IsZero() {
		s.WaitedMS = now.Sub(j.stoppedAt).Milliseconds()
	}
	d := j.disk
	if d.Why == "" && j.stall.Err != nil { // the logs are in files of this process
		d = statedir.FailedDisk(statedir.StateDir(j.node.cfg.StateDir), j.stall.Since, j.stall.Err)
	}
	if d.Why != "" {
		s.Why, s.Path, s.FreeBytes, s.Remedy = d.Why, d.Path, d.Free, d.Remedy
	}
	return s
}

// publishChange reports a change to observers. The caller holds mu.
func (j *logHealth) publishChange(kind string, now time.Time) {
	j.node.events.queueEvent(control.LogHealthEvent(j.node.cfg.Name, kind, j.currentState(now), now))
}

// unknownReason is the reason for logs whose server gives none.
const unknownReason = "the server stores no entries and gives no reason"

// clientInfo returns the state of the logs for clients; nil if there is no problem.
func (j *logHealth) clientInfo() *client.LogHealth {
	if lost := j.node.closed.logHealth(); lost != nil {
		return lost
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.reportedAt.IsZero() && !j.disk.Low {
		return nil
	}
	s := j.currentState(time.Now())
	i := &client.LogHealth{Why: s.Why, Path: s.Path, FreeBytes: s.FreeBytes, Remedy: s.Remedy, Low: j.reportedAt.IsZero()}
	if !i.Low {
		i.Since = j.stoppedAt.UTC().Format(time.RFC3339Nano)
	}
	if i.Why == "" {
		i.Why = unknownReason
	}
	if i.Remedy == "" {
		i.Remedy = "look at the NATS server and its disk"
	}
	return i
}
