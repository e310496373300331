package agent

import (
	"fmt"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// throttleWait counts the waits for a model that throttles all callers, and its refusals.
// While the agent waits (AwaitsThrottle) it holds no reservation, and no refusal counts as
// a failed attempt: a storm of refusals pauses a loop and does not end it. The wait is
// part of the agent's time.
type throttleWait struct {
	N       int   // number of the newest wait
	Refused int   // refusals by the provider or the throttle since the model last answered
	Own     int   // refusals by the provider to this agent, where another model could take over
	Since   int64 // stamp of the first of them
	Why     string
}

// Limits of the wait for a throttle.
const (
	// RefusalsMax ends a wait that is admitted and refused again and again.
	RefusalsMax = 64
)

// Throttled says that nothing was sent under the reservation: the throttle is closed.
type Throttled struct {
	Reservation int    `msgpack:"l"`
	AfterMS     int64  `msgpack:"a,omitempty"` // the expected delay
	Why         string `msgpack:"w,omitempty"`
}

// Admitted ends a wait for the throttle: it is this agent's turn to request a reservation.
type Admitted struct {
	Pause int `msgpack:"p"`
}

// The kinds in logs.
func (Throttled) Kind() string { return "throttled" }
func (Admitted) Kind() string  { return "admitted" }

// AwaitThrottle waits for the throttle of a model until it is the agent's turn; that
// comes back as Admitted.
type AwaitThrottle struct {
	Pause  int
	Model  string
	Tokens int64 // that the call will take, estimated
}

// LeaveThrottle makes the throttle admit nothing more of this agent: a wait ends, and
// a request that waits with a reservation comes back as Throttled.
type LeaveThrottle struct{}

func (AwaitThrottle) effect() {}
func (LeaveThrottle) effect() {}

// patience is how long the loop waits for a model that refuses all callers.
type patience struct {
	ms          int64 // 0: it does not wait
	end         int64 // of the wait under way, as a stamp
	alternative bool  // there is another way than to wait: another model, or for a summary lines of the messages
}

// patience returns how long the loop waits for the model in use.
func (s *State) patience() patience {
	p := patience{ms: max(0, s.Task.LoopOptions.PatienceMS), alternative: s.Purpose == ForSummary || s.hasFallback(&s.Task)}
	if p.alternative {
		p.ms = min(p.ms, spec.PatienceElseMS)
	}
	p.end = s.ThrottleWait.Since + p.ms
	return p
}

// waitsOut reports whether the loop waits until a refusal has passed. A refusal that
// may be billed is a failed attempt; and if another model can take over, each
// refusal by the provider itself uses up one retry.
func waitsOut(s *State, f Failed) bool {
	p := s.patience()
	return p.ms > 0 && f.Unbilled && (f.Class == model.RateLimit || f.Class == model.Overload) && //mutant:storm-kills
		(!p.alternative || s.mayRetry(s.Task.Limits.Retries))
}

// waitOutRefusal handles a refusal that the loop waits out.
func waitOutRefusal(s *State, f Failed) (*State, []Effect) {
	if s.patience().alternative {
		s.ThrottleWait.Own++
	}
	return awaitTurn(s, fmt.Sprintf("%s: %s", f.Class, f.Detail), f.AfterMS)
}

// handleThrottled handles a reservation whose request the throttle did not admit.
func handleThrottled(s *State, f Throttled) (*State, []Effect) {
	if s.Phase != Thinking || f.Reservation != s.Reservation {
		return s, nil
	}
	s.events.cause = f.Why
	s.events.publishUnanswered(s.attempt(), Failed{Class: model.RateLimit, Detail: f.Why})
	why := "the throttle is closed"
	if f.Why != "" {
		why += ": " + f.Why
	}
	if abandonsTurn(s) {
		s, fx := releaseReservation(s)
		return prependEffects(fx)(endTurn(endSuspension(s), spec.Steering))
	}
	if s.patience().ms == 0 && s.Cancel == nil {
		return recoverAttempt(s, Failed{Reservation: f.Reservation, Class: model.RateLimit, Detail: why, Unbilled: true, AfterMS: f.AfterMS})
	}
	s, fx := releaseReservation(s)
	if s.Cancel != nil {
		return prependEffects(fx)(finishCanceled(s))
	}
	return prependEffects(fx)(awaitTurn(s, why, f.AfterMS))
}

// releaseReservation returns the reservation: nothing was billed under it.
func releaseReservation(s *State) (*State, []Effect) {
	s.Open = false
	return settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn + 1, Unused: true}) //mutant:unused-reservation
}

// awaitTurn waits for the agent's turn, as long as the loop has patience. If another
// model can take over, it does not begin a pause that exceeds its patience.
func awaitTurn(s *State, why string, afterMS int64) (*State, []Effect) {
	if s.ThrottleWait.Refused == 0 {
		s.ThrottleWait.Since = s.Now
	}
	s.ThrottleWait.Refused++
	s.ThrottleWait.Why = why
	p := s.patience()
	if s.Now >= p.end || s.ThrottleWait.Refused > RefusalsMax || p.alternative && s.Now+min(max(afterMS, 0), retryAfterMaxMS) >= p.end {
		return giveUpWaiting(s)
	}
	s.ThrottleWait.N++
	s.events.publish(entryEvents, event.KindGatePaused, event.GatePaused{Model: s.attempt().model, Purpose: string(s.Purpose), Why: why, AfterMS: afterMS,
		Refused: s.ThrottleWait.Refused, LeftMS: p.end - s.Now})
	s.Transition = spec.ModelRetry
	s = suspend(s, suspension{Why: AwaitsThrottle, Then: ThenTurn})
	return s, awaitThrottle(s)
}

// awaitThrottle returns the effects that wait. They follow from the state alone, so
// that a later activation can continue the wait.
func awaitThrottle(s *State) []Effect {
	return []Effect{AwaitThrottle{Pause: s.ThrottleWait.N, Model: s.attempt().model, Tokens: s.Grant.Output + s.Estimate()},
		Arm{Timer: throttleTimer, Due: s.patience().end}}
}

// handleAdmitted requests a new reservation. Meanwhile the turn may have become another one.
func handleAdmitted(s *State, f Admitted) (*State, []Effect) {
	if s.Suspended.Why != AwaitsThrottle || f.Pause != s.ThrottleWait.N { //mutant:turn-of-another-wait
		return s, nil
	}
	s = endSuspension(s)
	switch {
	case s.Purpose == ForSummary:
		s.PendingCompaction.Tries-- // the summary was never requested
		return askSummary(s)
	case s.ClosingReason != "":
		return runHooksBeforeModel(s, spec.ClosingTurn)
	}
	return endTurn(s, spec.ModelRetry)
}

// handleThrottleTimer handles the timer of a wait.
func handleThrottleTimer(s *State) (*State, []Effect) {
	if s.Suspended.Why != AwaitsThrottle {
		return s, nil
	}
	if due := s.patience().end; s.Now < due { //mutant:patience-without-end
		return s, []Effect{Arm{Timer: throttleTimer, Due: due}}
	}
	s.events.cause = s.ThrottleWait.Why
	return prependEffects([]Effect{LeaveThrottle{}})(giveUpWaiting(endSuspension(s)))
}

// giveUpWaiting continues without the model: with another one, if there is one.
func giveUpWaiting(s *State) (*State, []Effect) {
	took := time.Duration(s.Now-s.ThrottleWait.Since) * time.Millisecond
	detail := fmt.Sprintf("%s; given up after %s", s.ThrottleWait.Why, took.Round(time.Millisecond))
	s.failureStreaks = s.withoutWait()
	switch {
	case s.Purpose == ForSummary:
		return otherSummary(s)
	case s.ClosingReason != "":
		// One refusal passes by itself; refusals that outlast the loop's patience are an outage of the provider. Nothing was
		// billed for them, and with a higher limit the loop would have waited as long.
		return endFailedClosing(s, detail, failedOnProvider)
	}
	return useFallback(s, detail)
}
