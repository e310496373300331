package activation

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// A planned hand-off loses nothing (PROTOCOL P3). A draining activation steps no more entries, so it
// begins no more work; it appends the results of its models and tools, then Released, and ends.
// The next activation begins whatever this one never began.
//
// An activation that has nothing to do passivates in the same way (PROTOCOL P19). Once it has
// read back its Released, with no unstepped entry before it and no entry after it, the actor
// is passivated. The next entry, or the time in Released, activates the actor as after a
// crash: the activation claims, replays the log, and finds that nothing was lost.

// beginDraining stops stepping the entries that the activation reads. An activation that has
// only just begun first replays its log: the log counts activations that ended before they had
// replayed it, and gives the actor up after too many of them.
func beginDraining(s *stepContext) {
	if s.stage == Claiming && s.Reader.Phase == Replaying {
		s.toDrain = true
		return
	}
	s.stage = Draining
	s.addActions(DisarmTimers{})
	releaseLog(s)
}

// stepEnding steps the facts that still matter while the activation drains or passivates: results of the activation's
// own work, and its own entries as they are read back.
func (s *stepContext) stepEnding(fact any) {
	switch f := fact.(type) {
	case EntryArrived:
		lookForOwn(s, f.Message)
		countArrived(s, 1)
	case EntryRead:
		lookForOwn(s, f.Message)
		return // TailRead follows
	case Detached:
		catchUp(s, f.Through)
	case TailRead:
		handleTailRead(s, f)
	case WorkDone:
		handleWorkEnd(s, f.Own.Start, f.Own.Key)
		requestOwnAppend(s, f.Own)
	case WorkPosted:
		handleWorkEnd(s, f.Start, f.Key)
	case WorkNotBegun: // the next activation begins it
		handleWorkEnd(s, f.Start, f.Key)
	case OwnFailed:
		handleOwnFailed(s, f)
	case AppendAgain:
		appendAgain(s, f.Own)
	default:
		return
	}
	releaseLog(s)
}

// lookForOwn looks for own entries among the entries that are no longer stepped.
func lookForOwn(s *stepContext, m mailbox.Message) {
	if m.Place <= s.last {
		return
	}
	s.last = m.Place
	e, err := mailbox.Decode(m.Data)
	if err != nil || e.From != s.Reader.Addr || len(e.Items) == 0 {
		s.missed = true
		return // the next activation reports the damage
	}
	s.missed = s.missed || e.Items[0].ID != s.final
	s.unread = withoutID(s.unread, e.Items[0].ID)
	if k := e.Items[0].Kind; k == "closed" || k == "resumed" && e.Epoch.Higher(s.Reader.Epoch) {
		s.Reader.Supersede() // the actor has ended, or another activation is current
		giveUpWork(s)        // no activation would read the replies of its model calls
		s.addActions(LeaveThrottle{})
	}
}

// releaseLog ends a draining activation once the log holds all results of its work, and the
// Released that says so.
func releaseLog(s *stepContext) {
	switch {
	case len(s.work) > 0: //mutant:drain-leaves-work-behind
	case s.Reader.Phase != Active:
		s.addActions(ReportGone{})
	case len(s.unread) > 0: //mutant:released-before-its-results
	case s.final == "":
		o := s.OwnResult("released", "", agent.Released{})
		s.final = s.idOf(o)
		requestOwnAppend(s, o)
	case s.stage == Passivating && !s.missed:
		s.addActions(ReportPassivated{s.last, s.due})
	default:
		s.addActions(ReportGone{})
	}
}

// beginPassivation begins to free the actor's memory if nothing is under way; from here on, no
// entry is stepped.
func beginPassivation(s *stepContext, early bool) {
	due, ok := s.Reader.MayPassivate()
	if soon := s.now + AskPause.Milliseconds(); s.Super != nil && due > 0 && due < soon {
		due = soon // the supervisor has nothing else to do: the next activation asks
	}
	if !ok || early && s.Super != nil && !s.Super.State.IsParked() || due > 0 && due <= s.now || !isFree(s) {
		return
	}
	s.stage, s.due = Passivating, due
	s.addActions(DisarmTimers{})
	o := s.OwnResult("released", "", agent.Released{Rests: true, Due: due})
	s.final = s.idOf(o)
	requestOwnAppend(s, o)
}

// isFree reports whether this activation has nothing under way and is about to begin nothing.
func isFree(s *stepContext) bool {
	return s.stage == Following && !s.toDrain && !s.closing && s.Reader.Phase == Active && len(s.unread) == 0 && len(s.postponed) == 0 &&
		s.proof == "" && len(s.work) == 0 && s.leaseHeld
}
