package agent

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// handleWoke handles a timer: it counts only if the stamp of its entry confirms that it is due.
func handleWoke(s *State, f Woke) (*State, []Effect) {
	if f.Timer == questionTimer {
		return handleQuestionTimer(s)
	}
	if s.Phase == Done || s.Phase == "" || s.isClockPaused() {
		return s, nil // timers that still matter are armed again after the wait for a person, or for children
	}
	switch f.Timer {
	case softTimer:
		if due := s.Began + s.Task.Limits.SoftMS; s.Now < due {
			return s, []Effect{Arm{Timer: softTimer, Due: due}}
		}
		if !s.Soft {
			s.events.publish(entryEvents, event.KindLimitSoft, event.LimitReached{What: "working time"})
		}
		s.Soft = true
		return wakeIdle(s)
	case hardTimer:
		if due := s.Began + s.Task.Limits.HardMS; s.Now < due { //mutant:early-timer-ends
			return s, []Effect{Arm{Timer: hardTimer, Due: due}}
		}
		return handleCanceled(s, Canceled{Why: "hard time limit", Now: true, As: spec.Timeout})
	case retryTimer:
		if s.Suspended.Why == AwaitsRetry {
			if due := s.Suspended.Due; s.Now < due {
				return s, []Effect{Arm{Timer: retryTimer, Due: due}}
			}
			return endTurn(endSuspension(s), s.Transition)
		}
	case throttleTimer:
		return handleThrottleTimer(s)
	default:
		return retryCall(s, f.Timer)
	}
	return s, nil
}

// allTimers arms the time limits, which stand still while a person is asked, and
// the retries of calls.
func (s *State) allTimers() []Effect {
	fx := s.timers(&s.Task.Limits)
	for _, c := range s.Calls {
		if c.Stage == Retrying {
			fx = append(fx, Arm{Timer: callTimer + c.ID, Due: c.Due})
		}
	}
	return fx
}
