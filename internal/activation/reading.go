package activation

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
)

// entryArrived reads an entry of the tail, or keeps it until the log before it has been
// replayed.
func entryArrived(s *step, m mailbox.Message) {
	if s.stage == Claiming {
		s.ahead = append(s.ahead[:len(s.ahead):len(s.ahead)], m) // the router bounds how many
		return
	}
	readEntry(s, m)
	sendOrClose(s)
	countArrived(s, 1)
}

// readEntry reads one entry and carries out what follows from it.
func readEntry(s *step, m mailbox.Message) {
	if m.Place <= s.last {
		return // the replay and the tail overlap
	}
	s.last = m.Place
	r := s.Reader.Next(m)
	if s.Reader.Foreign != "" {
		if !s.reported {
			s.add(ReportForeign{s.Reader.Foreign})
		}
		supersede(s)
		return
	}
	if r.Err != nil {
		s.add(Warn{"an entry does not count", []any{"error", r.Err}})
	}
	if r.Own != "" {
		s.unread = without(s.unread, r.Own)
		s.add(OwnReadBack{r.Own})
	}
	s.answers = s.answers.add(r)
	if r.Activated {
		appendOwn(s, s.Own("checkpoint", "0", agent.Checkpoint{}))
		publishHeld(s)
	}
	publishNotes(s, r, m.At)
	if r.Activated && s.Super != nil && s.Super.Ended() {
		publishResult(s)
	}
	switch {
	case r.Reclaim && !s.held:
		supersede(s)
		return
	case r.Reclaim:
		appendClaim(s)
	}
	beginEffects(s, r.World)
	if s.proof != "" && r.Own == s.proof {
		doPostponed(s)
	}
}

// sendOrClose sends the messages that may be sent, closes the log when the machine is done,
// and ends the activation.
func sendOrClose(s *step) {
	if s.Reader.Phase == Superseded {
		supersede(s)
		if len(s.work) == 0 {
			s.add(ReportGone{})
			return
		}
	}
	if s.stage == Claiming {
		return
	}
	sendReady(s, false)
	switch {
	case s.Reader.Phase == Closed:
		if s.Super != nil && !s.told && !s.Reader.Deleted {
			publishResult(s) // the previous activation may have crashed between Closed and publishing the result
		}
		answerNext(s)
	case s.Reader.MayClose() && !s.closing && !s.hooking():
		s.closing = true
		closeLog(s)
	case s.Reader.CheckpointDue() && s.Reader.N-s.marked >= CheckpointGap:
		s.marked = s.Reader.N
		appendOwn(s, s.Own("checkpoint", "", agent.Checkpoint{}))
	}
}

// countArrived counts the entries that arrived through the tail.
func countArrived(s *step, n int) {
	if s.arrived += n; s.arrived >= ArrivedEvery {
		s.add(ReportArrived{s.arrived})
		s.arrived = 0
	}
}

// catchUp reads the entries that a detached activation was not sent, one part at a time. The
// activation has already read the entries that it was sent before.
func catchUp(s *step, through uint64) {
	switch {
	case s.stage == Claiming:
		s.through = through
	case s.last >= through:
		s.arrived = 0
		s.add(ReportLevel{s.last})
	default:
		s.add(ReadTail{s.last, through})
	}
}

// tailRead continues after a part has been read.
func tailRead(s *step, f TailRead) {
	switch {
	case errors.Is(f.Err, mailbox.ErrClosed):
	case f.Err != nil || f.Entries == 0:
		s.add(Warn{"a log is out of reach; it is read again", []any{"actor", s.Reader.Addr, "error", f.Err}})
		s.later(Detached{f.Through})
	default:
		catchUp(s, f.Through)
	}
}

// supersede stops all deciding and beginning. It cancels model calls, because no activation
// would read their replies; tools run to their end, and what they return is posted as
// evidence.
func supersede(s *step) {
	s.Reader.Supersede()
	if s.reported {
		return
	}
	s.reported, s.postponed = true, nil
	giveUpWork(s)
	s.add(DisarmTimers{}, LeaveGate{}, ReportSuperseded{})
}

// publishNotes publishes the notes of an entry. While replaying it keeps them, because the
// previous activation may have crashed before it published them.
func publishNotes(s *step, r Read, stamp int64) {
	switch {
	case len(r.Notes) == 0:
	case s.Reader.Phase == Replaying:
		s.notes = append(s.notes[:len(s.notes):len(s.notes)], heldNotes{r.N, stamp, r.Notes})
	default:
		s.add(PublishNotes{r.N, stamp, s.parent(), r.Notes})
	}
}

// publishHeld publishes the notes of entries that were replayed above the ack floor: the
// previous activation may or may not have published them. The ids are the same, so observers
// can drop duplicates.
func publishHeld(s *step) {
	for _, h := range s.notes {
		if h.n > s.Reader.Floor() {
			s.add(PublishNotes{h.n, h.stamp, s.parent(), h.notes})
		}
	}
	s.notes = nil
}

// parent is the agent that delegated to this one.
func (s *step) parent() string {
	if s.Agent == nil {
		return ""
	}
	return string(s.Agent.State.Task.Parent)
}

// publishResult publishes the result of a run that is over.
func publishResult(s *step) {
	s.told = true
	s.add(PublishResult{s.Super.State.Result()})
}

// closeLog ends the log with an entry that carries the agent's Finish, or without the Finish
// if it fits no entry.
func closeLog(s *step) {
	last, err := s.Reader.Closing()
	if err == nil {
		_, _, err = encodeOwn(s, s.Own(last.Kind(), "", last))
	}
	if err != nil {
		s.add(Warn{"a log is closed without its last word", []any{"actor", s.Reader.Addr, "error", err}})
		last = agent.Closed{N: s.Reader.N}
	}
	appendOwn(s, s.Own(last.Kind(), "", last))
}

// encodeOwn makes the entry of a result.
func encodeOwn(s *step, o Own) (id string, data []byte, err error) {
	e, err := s.Reader.OwnAs(o.Epoch, o.Start, o.Kind, o.Key, o.Body)
	if err == nil {
		data, err = mailbox.Encode(e)
	}
	if err != nil {
		return "", nil, fmt.Errorf("an own entry %s: %w", o.Kind, err)
	}
	return e.Items[0].ID, data, nil
}
