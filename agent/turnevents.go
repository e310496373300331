package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// publishModelStarted publishes that the granted attempt begins.
func (s *State) publishModelStarted() {
	s.events.publish(entryEvents, event.KindModelStarted, event.ModelStarted{Model: s.calling(), Lease: s.Lease, Purpose: string(s.Purpose)})
}

// publishAttempt publishes the end of an attempt. Its entry is the first of the turn.
func (s *State) publishAttempt(kind event.Kind, d event.ModelFinished) {
	turn := s.Turn + 1
	s.events.entryTurn = &turn
	d.Model, d.Purpose = s.calling(), string(s.Purpose)
	s.events.publish(entryEvents, kind, d)
}

// publishUnanswered publishes an attempt without an answer; it becomes a retry if the loop waits for the next attempt.
func (s *State) publishUnanswered(f Failed) {
	s.publishAttempt(event.KindErrorRaised, event.ModelFinished{Usage: f.Reply.Usage, UsageKnown: f.Reply.UsageKnown,
		TookMS: f.TookMS, Error: f.Class, Detail: f.Detail})
}

// calling is the model that the reservation is for.
func (s State) calling() string {
	if s.Purpose == ForSummary {
		return s.summarizer().Name
	}
	return s.route().Name
}

// atWork reports whether a turn is in progress, from its model call to the end of
// its calls, including the time in which a person is asked about one of them.
func (s State) atWork() bool {
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
