package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// modelAttempt is a model call under a reservation.
type modelAttempt struct {
	model       string
	reservation int
	purpose     Purpose
	turn        int
}

// attempt is the model call that the newest reservation is for.
func (s *State) attempt() modelAttempt {
	m := s.currentModel(&s.Task)
	if s.Purpose == ForSummary {
		m = s.summaryModel(&s.Task, s.PendingCompaction.Own)
	}
	return modelAttempt{m.Name, s.Reservation, s.Purpose, s.Turn + 1}
}

// publishModelStarted publishes that the granted attempt begins.
func (e *stepEvents) publishModelStarted(a modelAttempt) {
	e.publish(entryEvents, event.KindModelStarted, event.ModelStarted{Model: a.model, Reservation: a.reservation, Purpose: string(a.purpose)})
}

// publishAttempt publishes the end of an attempt. Its entry is the first of the turn.
func (e *stepEvents) publishAttempt(a modelAttempt, kind event.Kind, d event.ModelFinished) {
	e.entryTurn = &a.turn
	d.Model, d.Purpose = a.model, string(a.purpose)
	e.publish(entryEvents, kind, d)
}

// publishUnanswered publishes an attempt without an answer; it becomes a retry if the loop waits for the next attempt.
func (e *stepEvents) publishUnanswered(a modelAttempt, f Failed) {
	e.publishAttempt(a, event.KindErrorRaised, event.ModelFinished{Usage: f.Reply.Usage, UsageKnown: f.Reply.UsageKnown,
		TookMS: f.TookMS, Error: f.Class, Detail: f.Detail})
}

// atWork reports whether a turn is in progress, from its model call to the end of
// its calls, including the time in which a person is asked about one of them.
func (s *State) atWork() bool {
	switch s.Phase {
	case Thinking:
		return s.Purpose == ForTurn
	case Hooking:
		return s.Gate.Point == spec.HookOutput
	case Waiting:
		return len(s.Calls) > 0
	}
	return s.Phase == Acting
}
