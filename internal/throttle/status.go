package throttle

// NextTick is when a TimePassed is due; ok is false if only an answer or a new request can change the
// state.
func (g Throttle) NextTick() (at int64, ok bool) {
	due := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if w, waits := g.queue.oldestReserved(); waits {
		due(w.since + g.limits.QueueMax)
	}
	for it := g.tickets.Iterator(); !it.Done(); {
		_, t, _ := it.Next()
		due(t.until)
	}
	if t := g.nextRateTick(); t > 0 {
		due(t)
	}
	w, waits := g.queue.nextRequest()
	switch {
	case !waits:
	case g.now < g.closedUntil:
		due(g.closedUntil)
	case g.canAdmit(w.tokens):
		due(g.now)
	default:
		if n := g.refillTime(w.tokens); n > 0 {
			due(g.now + n)
		}
	}
	return max(at, g.now+1), ok
}

// Status is the state of a throttle for display.
type Status struct {
	ClosedMS int64        `json:"closed_ms,omitempty"` // how much longer
	Why      CallOutcome  `json:"why,omitempty"`       // why it is closed
	Breaker  BreakerState `json:"breaker,omitempty"`
	Window   int          `json:"window"` // requests that may be in flight at once
	Flying   int          `json:"flying"` // requests in flight
	Waiting  int          `json:"waiting"`
	Rates                 // that count, of all nodes together
}

// Status returns the status of the throttle at a time.
func (g Throttle) Status(now int64) Status {
	g.now = max(g.now, now)
	s := Status{ClosedMS: g.closedFor(), Breaker: g.breaker, Window: int(g.window / windowUnit), Flying: g.inFlight.Len(), Waiting: g.queue.len(),
		Rates: Rates{g.requests.perMinute, g.tokens.perMinute}}
	if s.ClosedMS > 0 || s.Breaker != BreakerClosed {
		s.Why = g.closedReason()
	}
	return s
}

// IsIdle reports whether no caller needs the throttle, and it holds no state that would matter
// later. The settings do not count: a new throttle gets them again.
func (g Throttle) IsIdle(now int64) bool {
	g.now = max(g.now, now)
	g = g.refillBuckets()
	return g.inFlight.Len() == 0 && g.queue.len() == 0 && g.tickets.Len() == 0 && g.closedFor() == 0 && g.breaker == BreakerClosed &&
		g.window >= int64(g.limits.InitialWindow)*windowUnit && g.rates.peerRequests.until == 0 && g.rates.peerTokens.until == 0 && g.rates.reported.until == 0 && g.requests.isFull() && g.tokens.isFull()
}
