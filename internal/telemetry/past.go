package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// Limits of reading the past of logs.
const (
	pastReadsAtOnce = 4
	// resendMS is how long before the newest entry of a log that another process left a span may have ended and be sent
	// again: that process may have died before it sent it. Its id is the same.
	resendMS = 30_000
	// recentLogsMax is how many logs that were at work shortly before are read again when a node takes over.
	recentLogsMax = 4096
)

// followedLog is the log of an agent on which this node acts.
type followedLog struct {
	at    mailbox.Address
	lease uint64
	spans *logSpans // nil: its past must be read first
	// sentThrough is the last entry whose spans this process has sent.
	sentThrough uint64
	waiting     []event.Published // until the past is read
	reading     bool              // the past is being read, or about to be
}

// pastReads are the logs whose past must be read.
type pastReads struct {
	queue   []*followedLog
	running int
}

// waitForPast keeps an event until the past of its log has been read.
func (x *Exporter) waitForPast(f *followedLog, e event.Published) {
	if len(f.waiting) >= waitingEventMax { // the past is read up to the newest event instead
		f.waiting = nil
	}
	f.waiting = append(f.waiting, e)
	x.queuePast(f)
}

// queuePast has the past of a log read: up to the first event that waits, or all of it.
func (x *Exporter) queuePast(f *followedLog) {
	if f.reading {
		return
	}
	f.reading = true
	x.pasts.queue = append(x.pasts.queue, f)
	if x.pasts.running < pastReadsAtOnce {
		x.pasts.running++
		x.work.Go(x.readPasts)
	}
}

// readPasts reads the past of logs until none waits.
func (x *Exporter) readPasts() {
	for {
		x.mu.Lock()
		if len(x.pasts.queue) == 0 || x.life.Err() != nil {
			x.pasts.running--
			x.mu.Unlock()
			return
		}
		f := x.pasts.queue[0]
		x.pasts.queue = x.pasts.queue[1:]
		at, sent, before := f.at, f.sentThrough, uint64(0)
		if len(f.waiting) > 0 {
			before = f.waiting[0].Seq
		}
		x.mu.Unlock()
		spans, ended, err := x.readPast(at, sent, before)
		x.endPast(f, spans, ended, before, err)
	}
}

// endPast continues a log whose past has been read up to an entry.
func (x *Exporter) endPast(f *followedLog, spans *logSpans, ended []span, before uint64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.reading = false
	waiting := f.waiting
	f.waiting = nil
	if err != nil {
		delete(x.followed, f.at.Bare())
		x.queue.lose(1, fmt.Errorf("telemetry: read the log of %s: %w", f.at, err))
		return
	}
	x.queue.add(ended...)
	f.spans = spans
	if before > 0 && waiting[0].Seq != before { // too many arrived meanwhile
		f.sentThrough, f.spans = before-1, nil
	}
	for _, e := range waiting {
		x.observeLog(f, e)
	}
	if f.spans != nil && f.spans.ended {
		delete(x.followed, f.at.Bare())
	}
}

// errEnough ends a read that has found what it looks for.
var errEnough = errors.New("telemetry: enough")

// readPast reads the log of an agent before an entry; 0: all of it. It returns the spans that another process may not
// have sent: those that ended shortly before the newest of these entries, and after the entry sent.
func (x *Exporter) readPast(at mailbox.Address, sent, before uint64) (*logSpans, []span, error) {
	at, err := x.findLog(at)
	if err != nil {
		return nil, nil, err
	}
	l := newLogSpans(at.Run(), at.Agent(), x.texts())
	var recent []span
	err = eachEvent(x.life, x.cfg.Logs, at, func(n uint64, stamp int64, events []event.Published) error {
		if before > 0 && n >= before {
			return errEnough
		}
		for _, e := range events {
			if ended := l.read(e); n > sent {
				recent = append(recent, ended...)
			}
		}
		old := slices.IndexFunc(recent, func(s span) bool { return s.endMS >= stamp-resendMS })
		if old < 0 {
			old = len(recent)
		}
		recent = slices.Delete(recent, 0, old)
		return nil
	})
	return l, recent, err
}

// findLog completes the address of a log whose pool is not known.
func (x *Exporter) findLog(at mailbox.Address) (mailbox.Address, error) {
	if at.Pool() != "" {
		return at, nil
	}
	logs, err := x.cfg.Logs.Addresses(x.life, at.Run())
	if err != nil {
		return at, fmt.Errorf("telemetry: list the logs of %s: %w", at.Run(), err)
	}
	for _, known := range logs {
		if known.Bare() == at {
			return known, nil
		}
	}
	return at, nil
}

// eachEvent calls each for every entry of a log, with its index, its stamp and its events.
func eachEvent(ctx context.Context, logs mailbox.Post, at mailbox.Address, each func(n uint64, stamp int64, events []event.Published) error) error {
	agent := &activation.Agent{Addr: at, Watch: true}
	super := &activation.Supervisor{Addr: at, Watch: true}
	var machine activation.Machine = agent
	if at.Agent() == mailbox.Super {
		machine = super
	}
	reader := activation.Watch(at, machine)
	err := logs.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		r := reader.Next(m)
		return each(r.N, reader.At, activation.EventsOf(at, "", "", r.N, reader.At, r.Events))
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// resendRecent sends the last spans of the logs that were at work shortly before the newest of the listed entries. It
// does not matter whether they have ended: a log that goes on here continues from there.
func (x *Exporter) resendRecent(each func(func(mailbox.Head) error) error) {
	newest, recent := int64(0), []mailbox.Head{}
	isOld := func(h mailbox.Head) bool { return h.At < newest-resendMS }
	err := each(func(h mailbox.Head) error {
		newest = max(newest, h.At)
		h.Data = nil
		if recent = append(recent, h); len(recent) >= recentLogsMax {
			recent = slices.DeleteFunc(recent, isOld)
		}
		if len(recent) >= recentLogsMax {
			recent = recent[1:]
		}
		return nil
	})
	if err != nil {
		x.reportUnread(err)
		return
	}
	for _, h := range slices.DeleteFunc(recent, isOld) {
		if h.To.Agent() != mailbox.Super {
			x.resendAgent(h.To)
		} else if err := x.resendRun(h.To); err != nil {
			x.reportUnread(err)
		}
	}
}

func (x *Exporter) reportUnread(err error) {
	if x.life.Err() == nil {
		x.cfg.Logger.Debug("spans of an earlier process are not sent again", "error", err)
	}
}

// resendAgent sends the last spans of an agent's log, unless its past is known.
func (x *Exporter) resendAgent(at mailbox.Address) {
	if mailbox.IsReserved(at.Run()) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.followed[at.Bare()]
	if f == nil {
		f = x.follow(at)
	}
	if f.spans == nil {
		x.queuePast(f)
	}
}

// endGivenUp sends the spans of agents that their run has given up: their own logs have no end. The part of
// such a log that can be read says when the agent began and which of its calls are open.
func (x *Exporter) endGivenUp(e event.Published, d event.Result) {
	if !slices.ContainsFunc(d.Agents, isGivenUp) {
		return
	}
	x.work.Go(func() {
		for _, a := range d.Agents {
			if isGivenUp(a) {
				x.queue.add(x.givenUpSpans(e, a)...)
			}
		}
	})
}

func isGivenUp(a event.AgentResult) bool { return a.GivenUp }

// givenUpSpans are the span of an agent that the run has given up, and those of its open calls; none, if it
// came back and ended itself.
func (x *Exporter) givenUpSpans(e event.Published, a event.AgentResult) []span {
	end := stampOf(e)
	l := newLogSpans(e.Run, string(a.ID), x.texts())
	at, err := x.findLog(mailbox.At(e.Run, string(a.ID)))
	if err == nil {
		err = eachEvent(x.life, x.cfg.Logs, at, func(_ uint64, _ int64, events []event.Published) error {
			for _, one := range events {
				l.read(one)
			}
			return nil
		})
	}
	if err != nil {
		x.reportUnread(err)
	}
	if l.ended {
		return nil
	}
	l.name, l.startedMS = cmp.Or(l.name, a.Name), cmp.Or(l.startedMS, end)
	if a.Parent != nil {
		l.parent = *a.Parent
	}
	l.endAgent(event.AgentFinished{Name: a.Name, Reason: a.Reason, Partial: true, Turns: a.Turns, Calls: a.Calls, Usage: a.Usage}, end)
	return l.done
}

// resendRun sends the span of a run, if it has ended, and of the agents that it has given up.
func (x *Exporter) resendRun(at mailbox.Address) error {
	return eachEvent(x.life, x.cfg.Logs, at, func(_ uint64, _ int64, events []event.Published) error {
		for _, e := range events {
			if d, ok := e.Data.(event.Result); ok {
				x.queue.add(runSpan(e, d, x.texts()))
				x.endGivenUp(e, d)
			}
		}
		return nil
	})
}
