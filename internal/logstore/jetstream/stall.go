package jetstream

import (
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// defaultStallAfter is how long an append may wait for an acknowledgement before Stalled is
// called.
const defaultStallAfter = 5 * time.Second

// stallReports tracks whether a stall was reported, and for what.
type stallReports struct {
	after time.Duration
	tell  func(mailbox.Stall)
	// full and refused are the times of the first and the last append that was refused for
	// want of room, in a row of refusals no further apart than after. During a stall, refused is
	// also the time of the last append whose caller stopped waiting.
	full, refused time.Time
	told          bool // the newest report, sent or still in left, is a stall
	left          []mailbox.Stall
	// rest checks again when no append was refused for a while. Without it, a node with
	// nothing to write would refuse new runs for ever, because only a run would cause an
	// append.
	rest *time.Timer
	// saying is true while a caller reports what is in left, including what is added
	// meanwhile.
	saying bool
}

func reportNothing() {}

// noteWaited queues a report, once, if appends have waited too long. mu is held; the returned
// function sends the report, and is called without mu.
func (a *appender) noteWaited(late []*pendingAppend, now time.Time) func() {
	if a.stalls.told || a.stalls.tell == nil {
		return reportNothing
	}
	var oldest *pendingAppend
	for _, l := range late {
		if now.Sub(l.born) >= a.stalls.after && (oldest == nil || l.born.Before(oldest.born)) {
			oldest = l
		}
	}
	if oldest == nil {
		return reportNothing
	}
	a.stalls.told = true
	a.stalls.left = append(a.stalls.left, mailbox.Stall{Since: oldest.born, Waiting: len(a.inFlight) + len(a.queue) - a.head, Subject: oldest.subject, Why: oldest.said})
	a.lookAgain()
	return a.sendReports
}

// turnedAway queues a report, once, that there is no room. A caller repeats a refused append
// as a new one, so no single append becomes old: what lasts is the series of refusals. mu is held;
// the returned function sends the report, and is called without mu.
func (a *appender) turnedAway(l *pendingAppend, err error, now time.Time) func() {
	if now.Sub(a.stalls.refused) > a.stalls.after {
		a.stalls.full = now
	}
	a.stalls.refused = now
	if a.stalls.told || a.stalls.tell == nil || now.Sub(a.stalls.full) < a.stalls.after {
		return reportNothing
	}
	a.stalls.told = true
	a.stalls.left = append(a.stalls.left, mailbox.Stall{Since: a.stalls.full, Waiting: len(a.inFlight) + len(a.queue) - a.head, Subject: l.subject, Why: err.Error()})
	a.lookAgain()
	return a.sendReports
}

// noteGivenUp keeps a stall when the caller of an append stops waiting for it: that nothing waits then
// does not mean that the server stores again. mu is held.
func (a *appender) noteGivenUp(now time.Time) {
	if a.stalls.told {
		a.stalls.refused = now
		a.lookAgain()
	}
}

// lookAgain arms the timer of noteRested. mu is held.
func (a *appender) lookAgain() {
	if a.stalls.rest == nil {
		a.stalls.rest = time.AfterFunc(a.stalls.after, a.noteRested)
		return
	}
	a.stalls.rest.Reset(a.stalls.after)
}

// noteRested queues a report that there presumably is room, when no append waits and none was
// refused for a while. While there is something to write, appends detect this sooner.
func (a *appender) noteRested() {
	a.mu.Lock()
	tell := reportNothing
	if !a.closed && a.stalls.told {
		tell = a.noteMoving(false)
		if a.stalls.told {
			a.lookAgain()
		}
	}
	a.mu.Unlock()
	tell()
}

// noteMoving queues a report, once, that the stall is over: an append was stored and none waits
// too long any more, or none waits at all, and none was refused for want of room lately. mu
// is held; the returned function sends the report, and is called without mu.
func (a *appender) noteMoving(stored bool) func() {
	if !a.stalls.told || !stored && len(a.inFlight)+len(a.queue)-a.head > 0 {
		return reportNothing
	}
	now := time.Now()
	if now.Sub(a.stalls.refused) <= a.stalls.after {
		return reportNothing
	}
	for _, l := range a.inFlight {
		if now.Sub(l.born) >= a.stalls.after {
			return reportNothing
		}
	}
	a.stalls.told = false
	a.stalls.left = append(a.stalls.left, mailbox.Stall{})
	return a.sendReports
}

// sendReports sends the queued reports, in order: without mu, because the receiver may append, but
// from one caller at a time.
func (a *appender) sendReports() {
	a.mu.Lock()
	if a.stalls.saying {
		a.mu.Unlock()
		return
	}
	a.stalls.saying = true
	for len(a.stalls.left) > 0 {
		s := a.stalls.left[0]
		a.stalls.left = a.stalls.left[1:]
		a.mu.Unlock()
		a.stalls.tell(s)
		a.mu.Lock()
	}
	a.stalls.saying = false
	a.mu.Unlock()
}
