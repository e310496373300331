package activation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/mailbox"
)

// handleEntryArrived reads an entry of the tail, or keeps it until the log before it has been
// replayed.
func handleEntryArrived(s *stepContext, m mailbox.Message) {
	if s.stage == Claiming {
		s.ahead = append(s.ahead[:len(s.ahead):len(s.ahead)], m) // the router bounds how many
		return
	}
	readEntry(s, m)
	advanceOutput(s)
	countArrived(s, 1)
}

// readEntry reads one entry and carries out what follows from it.
func readEntry(s *stepContext, m mailbox.Message) {
	if m.Place <= s.last {
		return // the replay and the tail overlap
	}
	s.last = m.Place
	r := s.Reader.Next(m)
	if s.Reader.Foreign != "" {
		if !s.reported {
			s.addActions(ReportNewerLog{s.Reader.Foreign})
		}
		supersedeActivation(s)
		return
	}
	if r.Err != nil {
		s.addActions(Warn{"an entry does not count", []any{"error", r.Err}})
	}
	if r.Own != "" {
		s.unread = withoutID(s.unread, r.Own)
		s.addActions(OwnReadBack{r.Own})
	}
	s.answers = s.answers.addAnswers(r)
	if r.Activated {
		requestOwnAppend(s, s.OwnResult("checkpoint", "0", agent.Checkpoint{}))
		publishReplayedEvents(s)
	}
	publishEvents(s, r, m.At)
	publishRestart(s, r, m.At)
	publishState(s)
	if r.Activated && s.Super != nil && s.Super.Ended() {
		publishResult(s)
	}
	switch {
	case r.Reclaim && !s.leaseHeld:
		supersedeActivation(s)
		return
	case r.Reclaim:
		requestClaim(s)
	}
	beginEffects(s, r.Effects)
	if s.proof != "" && r.Own == s.proof {
		doPostponed(s)
	}
}

// advanceOutput does what is possible now: it reports a superseded activation that has no work left, sends outbox
// messages, answers for a closed log, closes a finished log, or appends a due checkpoint.
func advanceOutput(s *stepContext) {
	if s.Reader.Phase == Superseded {
		supersedeActivation(s)
		if len(s.work) == 0 {
			s.addActions(ReportGone{})
			return
		}
	}
	if s.stage == Claiming {
		return
	}
	sendReady(s)
	switch {
	case s.Reader.Phase == Closed:
		if s.Super != nil && !s.resultPublished && !s.Reader.Deleted {
			publishResult(s) // the previous activation may have crashed between Closed and publishing the result
		}
		answerNext(s)
	case s.Reader.MayClose() && !s.closing && !s.hooksRunning():
		s.closing = true
		closeLog(s)
	case s.Reader.CheckpointDue() && s.Reader.N-s.marked >= CheckpointGap:
		s.marked = s.Reader.N
		requestOwnAppend(s, s.OwnResult("checkpoint", "", agent.Checkpoint{}))
	}
}

// countArrived counts the entries that arrived through the tail.
func countArrived(s *stepContext, n int) {
	if s.arrived += n; s.arrived >= ArrivedEvery {
		s.addActions(ReportEntriesTaken{s.arrived})
		s.arrived = 0
	}
}

// catchUp reads the entries that a detached activation was not sent, one part at a time. The
// activation has already read the entries that it was sent before.
func catchUp(s *stepContext, through uint64) {
	switch {
	case s.stage == Claiming:
		s.through = through
	case s.last >= through:
		s.arrived = 0
		s.addActions(ReportReachedTail{s.last})
	default:
		s.addActions(ReadTail{s.last, through})
	}
}

// handleTailRead continues after a part has been read.
func handleTailRead(s *stepContext, f TailRead) {
	switch {
	case errors.Is(f.Err, mailbox.ErrClosed):
	case f.Err != nil || f.Entries == 0:
		s.addActions(Warn{"cannot read log; retrying", []any{"actor", s.Reader.Addr, "error", f.Err}})
		s.deliverLater(Detached{f.Through})
	default:
		catchUp(s, f.Through)
	}
}

// supersedeActivation stops all deciding and beginning. It cancels model calls, because no activation
// would read their replies; tools run to their end, and what they return is posted as
// evidence.
func supersedeActivation(s *stepContext) {
	s.Reader.Supersede()
	if s.reported {
		return
	}
	s.reported, s.postponed = true, nil
	giveUpWork(s)
	s.addActions(DisarmTimers{}, LeaveThrottle{}, ReportSuperseded{})
}

// publishEvents publishes the events of an entry. While replaying it keeps them, because the
// previous activation may have crashed before it published them.
func publishEvents(s *stepContext, r Read, stamp int64) {
	switch {
	case len(r.Events) == 0:
	case s.Reader.Phase == Replaying:
		s.keepReplayed(replayedEvents{r.N, stamp, r.Events})
	default:
		s.addActions(PublishEvents{r.N, stamp, s.parentAgent(), r.Events})
	}
}

// keepReplayed keeps the events of an entry. It drops those that will not be published before the list grows, so that it
// holds few of a long log. A State is stepped once, so the list is not copied: that would cost the square of the log.
func (s *stepContext) keepReplayed(events replayedEvents) {
	if len(s.unpublished) == cap(s.unpublished) {
		s.unpublished = slices.DeleteFunc(s.unpublished, func(h replayedEvents) bool { return h.n <= s.Reader.Floor() })
	}
	s.unpublished = append(s.unpublished, events)
}

// publishReplayedEvents publishes the events of entries that were replayed above the ack floor: the
// previous activation may or may not have published them. The ids are the same, so observers
// can drop duplicates.
func publishReplayedEvents(s *stepContext) {
	for _, h := range s.unpublished {
		if h.n > s.Reader.Floor() {
			s.addActions(PublishEvents{h.n, h.stamp, s.parentAgent(), h.events})
		}
	}
	s.unpublished = nil
}

// publishRestart publishes that a crash, a kill or a lost lease ended the previous activation of an agent.
func publishRestart(s *stepContext, r Read, stamp int64) {
	if phase := s.Reader.interrupted; r.Activated && phase != "" {
		s.addActions(PublishRestart{r.N, stamp, s.parentAgent(), s.Agent.State.Turn, event.AgentResumed{Phase: string(phase), Activation: s.Reader.Start}})
	}
}

// parentAgent is the agent that delegated to this one.
func (s *stepContext) parentAgent() string {
	if s.Agent == nil {
		return ""
	}
	return string(s.Agent.State.Task.Parent)
}

// publishResult publishes the result of a run that is over.
func publishResult(s *stepContext) {
	s.resultPublished = true
	publishState(s)
	s.addActions(PublishResult{s.Super.State.Result()})
}

// closeLog ends the log with an entry that carries the agent's Finish, or without the Finish
// if it fits no entry.
func closeLog(s *stepContext) {
	last, err := s.Reader.Closing()
	if err == nil {
		_, _, err = encodeOwn(s, s.OwnResult(last.Kind(), "", last))
	}
	if err != nil {
		s.addActions(Warn{"log closed without the agent's result, which fits no entry", []any{"actor", s.Reader.Addr, "error", err}})
		last = agent.Closed{N: s.Reader.N}
	}
	requestOwnAppend(s, s.OwnResult(last.Kind(), "", last))
}

// encodeOwn makes the entry of a result.
func encodeOwn(s *stepContext, o OwnResult) (id string, data []byte, err error) {
	e, err := s.Reader.OwnEntryOf(o.Epoch, o.Start, o.Kind, o.Key, o.Body)
	if err == nil {
		data, err = mailbox.Encode(e)
	}
	if err != nil {
		return "", nil, fmt.Errorf("an own entry %s: %w", o.Kind, err)
	}
	return e.Items[0].ID, data, nil
}
