package activation

import (
	"time"

	"github.com/troupe-run/troupe/agent"
)

// Pauses of an activation.
const (
	SettlementDelay = 20 * time.Millisecond // how long a settlement may wait to share an entry (PROTOCOL P21)
	RetryPause      = time.Second           // before the next attempt if there was no room, or no leader
	AskPause        = time.Second           // before a passivated supervisor that must ask its members is reactivated
)

// ArrivedEvery is the number of tail entries after which the activation reports to the
// router.
const ArrivedEvery = 16

// stepContext is one call of Step in progress.
type stepContext struct {
	State
	now       int64
	leaseHeld bool
	nodeLease uint64 // the lease, if it is held
	actions   []Action
}

// Step takes a fact and returns the new state and the actions that follow. It is
// deterministic and has no effects of its own: the caller carries the actions out, in order.
// A State is stepped once: see State.
func Step(state State, in Input) (State, []Action) {
	s := &stepContext{State: state, now: in.Now, leaseHeld: in.LeaseHeld, nodeLease: in.Lease}
	if s.stage == Draining || s.stage == Passivating {
		s.stepEnding(in.Fact)
	} else {
		s.stepReading(in.Fact)
	}
	return s.State, s.actions
}

func (s *stepContext) addActions(actions ...Action) { s.actions = append(s.actions, actions...) }

// deliverLater delivers a fact after the pause before the next attempt.
func (s *stepContext) deliverLater(fact any) { s.addActions(Later{RetryPause, fact}) }

// stepReading steps a fact while the activation claims or follows its log.
func (s *stepContext) stepReading(fact any) {
	switch f := fact.(type) {
	case Activate, ClaimAgain:
		requestClaim(s)
	case ClaimAppended:
		handleClaimAppended(s, f)
	case LogRead:
		replayLog(s, f)
	case EntryArrived:
		handleEntryArrived(s, f.Message)
	case EntryRead:
		readEntry(s, f.Message)
		advanceOutput(s)
	case TailRead:
		handleTailRead(s, f)
	case Detached:
		catchUp(s, f.Through)
	case OwnFailed:
		handleOwnFailed(s, f)
	case AppendAgain:
		appendAgain(s, f.Own)
	case MessagesSent:
		handleMessagesSent(s, f)
	case SendAgain:
		if s.Reader.Phase == Active {
			sendEntry(s, f.To, f.Messages)
		}
	case HoldExpired:
		s.delayTimerRuns = false
		sendHeld(s)
	case AnswerSent:
		handleAnswerSent(s, f)
	case AnswerAgain:
		advanceOutput(s)
	case Drain:
		beginDraining(s)
	case Passivate:
		beginPassivation(s, f.Early)
	default:
		s.stepWork(fact)
	}
}

// stepWork steps facts about work under way.
func (s *stepContext) stepWork(fact any) {
	switch f := fact.(type) {
	case WorkDone:
		handleWorkEnd(s, f.Own.Start, f.Own.Key)
		requestOwnAppend(s, f.Own)
		advanceOutput(s)
	case WorkPosted:
		handleWorkEnd(s, f.Start, f.Key)
		advanceOutput(s)
	case WorkNotBegun:
		if handleWorkEnd(s, f.Start, f.Key) {
			postponeEffects(s, f.Effect)
		}
		advanceOutput(s)
	case ProveLease:
		proveLease(s)
	case TimerFired:
		if !extendFirstMessageWait(s, f) {
			requestOwnAppend(s, s.OwnResult("woke", f.Timer, agent.Woke{Timer: f.Timer}))
		}
	}
}
