package supervisor

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// The clock of a parked run. It begins when the run waits for people alone, and starts anew when the run
// parks again after an answer. A run whose clock is over ends with the reason unanswered: each agent
// reports what it has, marked as partial. The stamps of the log count, whether a process had the run or not.

// parkTimer is due when a parked run ends.
const parkTimer = "park"

// updateParkClock starts the clock when the run parks, and stops it when the run works again or ends.
func updateParkClock(s State, fx []Effect) (State, []Effect) {
	runs := s.Run.ParkMS > 0 && s.Phase == Live && s.Cancel == nil && s.IsParked()
	switch {
	case runs && s.ParkDue == 0:
		s.ParkDue = s.Now + s.Run.ParkMS
		return s, append(fx, Arm{Timer: parkTimer, Due: s.ParkDue})
	case !runs && s.ParkDue != 0: //mutant:park-clock-never-stops
		s.ParkDue = 0
		return s, append(fx, Disarm{Timer: parkTimer})
	}
	return s, fx
}

// parkGraceMS is how long a new activation waits for what its members have heard before it ends a run whose clock is
// over: an answer may be in the log of a member that has not told yet.
const parkGraceMS = 10_000

// armParkClock arms the timer for a new activation.
func armParkClock(s State, fx []Effect) []Effect {
	if s.ParkDue == 0 {
		return fx
	}
	return append(fx, Arm{Timer: parkTimer, Due: max(s.ParkDue, s.Now+parkGraceMS)})
}

// handleParkTimer ends a run whose questions were not answered in time.
func handleParkTimer(s State) (State, []Effect) {
	switch {
	case s.ParkDue == 0:
		return s, nil
	case s.Now < s.ParkDue:
		return s, []Effect{Arm{Timer: parkTimer, Due: s.ParkDue}}
	}
	f := agent.Canceled{Why: fmt.Sprintf("nobody answered within %s", time.Duration(s.Run.ParkMS)*time.Millisecond), Now: true, As: spec.Unanswered}
	s = s.publishEvent(event.KindWarningRaised, event.Warning{What: "parked too long", Why: f.Why, Now: true, Live: s.Live})
	return cancelMembers(s, f)
}
