package supervisor

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// A run of a conversation waits for its turn: its first entry says what it is, and LaneStarted says that the
// runs before it have ended. Until then it has no agents and spends nothing. The log of the
// conversation decides whose turn it is (internal/lane).

// LaneStarted begins a run that waits in the lane of its conversation.
type LaneStarted struct {
	// Past describes the history of the conversation, which the root has received; nil: there is none.
	Past *spec.HistoryOrigin `msgpack:"p,omitempty"`
	// Failed says why the run cannot continue its conversation. It then ends at once, and the next one starts.
	Failed string      `msgpack:"f,omitempty"`
	Reason spec.Reason `msgpack:"r,omitempty"` // of that end
}

// The kind in logs.
func (LaneStarted) Kind() string { return "lane_started" }

// queueInLane makes a run that was opened wait for its turn.
func (s State) queueInLane() State {
	s.Phase = Queued
	return s.publishEvent(event.KindLaneQueued, event.LaneQueued{Conversation: s.Run.Conversation})
}

// stepQueued handles the facts of a run that waits for its turn. A cancel ends it before it began.
func stepQueued(s State, e Input) (State, []Effect) {
	switch f := e.Fact.(type) {
	case LaneStarted:
		return startInLane(s, f)
	case agent.Canceled:
		if f.Of != "" && f.Of != spec.Root {
			return s, nil
		}
		s.Cancel, s.CanceledAt = &f, s.Now
		return s.endEmptyRun(spec.Outcome{Reason: spec.ByCancel, Partial: true, Detail: f.Why})
	case PolicySet:
		return handlePolicySet(s, f), nil
	case LimitSet:
		return handleLimitSet(s, f)
	case agent.Resumed:
		s.Activation, s.Released = f.Activation, false
		if f.Damaged != "" {
			return s.endEmptyRun(spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: f.Damaged})
		}
	case agent.Released:
		s.Released = true
	case agent.Reserve, agent.Settle, agent.ReturnAllowance, agent.Delegate, agent.Send, agent.Backlog, agent.ProposeStop, agent.Park, agent.VerifyLog, agent.ReportLog, agent.Finish, agent.Status, agent.Unpark, agent.Steered, agent.Messaged:
		detail := "an agent sent a message before the run began"
		next, fx := s.endEmptyRun(spec.Outcome{Reason: spec.LogDamaged, Partial: true, Detail: detail})
		return next, append(endUnknown(e.From, detail), fx...)
	}
	return s, nil
}

// startInLane begins the run, or ends it if it cannot begin. Its time begins now.
func startInLane(s State, f LaneStarted) (State, []Effect) {
	s.Began = s.Now
	if f.Past != nil {
		s.Run.Past = f.Past
	}
	if f.Failed != "" {
		s = s.publishEvent(event.KindLaneFailed, event.LaneFailed{Conversation: s.Run.Conversation, Why: f.Failed})
		return s.endEmptyRun(spec.Outcome{Reason: f.Reason, Partial: true, Detail: f.Failed})
	}
	next, fx := beginRun(s)
	if next.Phase == Over {
		next = next.publishEvent(event.KindLaneFailed, event.LaneFailed{Conversation: s.Run.Conversation, Why: next.Outcome.Detail})
		return next, fx
	}
	started := event.LaneStarted{Conversation: s.Run.Conversation}
	if s.Run.Past != nil {
		started.After = s.Run.Past.Run
	}
	return next.publishEvent(event.KindLaneStarted, started), fx
}
