package throttle

import "math"

// rateBucket holds how much of a rate this node may spend. Without a rate it is unlimited.
type rateBucket struct {
	perMinute   int64   // what the key allows, for all nodes
	refillPerMS float64 // of this node, a millisecond
	capacity    float64
	level       float64
	at          int64
}

func (b rateBucket) refillTo(now int64) rateBucket {
	b.level, b.at = min(b.capacity, b.level+float64(now-b.at)*b.refillPerMS), now
	return b
}

// canSpend reports whether a request for n may pass. One for more than the bucket ever holds
// passes when the bucket is full, and leaves it in debt.
func (b rateBucket) canSpend(n float64) bool {
	return b.perMinute <= 0 || b.level >= min(n, b.capacity)-epsilon
}

func (b rateBucket) refund(n float64) rateBucket {
	b.level = min(b.capacity, b.level+n)
	return b
}

// timeUntil is the time until the bucket holds n.
func (b rateBucket) timeUntil(n float64) int64 {
	if b.canSpend(n) || b.refillPerMS <= 0 {
		return 0
	}
	return int64(math.Ceil((min(n, b.capacity) - b.level) / b.refillPerMS))
}

// epsilon compensates for the rounding errors of many small refills.
const epsilon = 1e-6

const minuteMS = 60_000

// divideAmong returns the share of one of the nodes that share a rate.
func (b rateBucket) divideAmong(nodes int, burstMS int64) rateBucket {
	if b.perMinute <= 0 {
		return rateBucket{at: b.at}
	}
	fresh := b.capacity == 0
	b.refillPerMS = float64(b.perMinute) / float64(nodes) / minuteMS
	b.capacity = max(1, b.refillPerMS*float64(burstMS))
	if fresh {
		b.level = b.capacity
	}
	b.level = min(b.level, b.capacity)
	return b
}

func (g Throttle) refillBuckets() Throttle {
	g.requests, g.tokens = g.requests.refillTo(g.now), g.tokens.refillTo(g.now)
	return g
}

// divideRates divides the rates by the nodes that share them.
func (g Throttle) divideRates() Throttle {
	g.requests, g.tokens = g.requests.divideAmong(g.nodes, g.limits.BurstPeriod), g.tokens.divideAmong(g.nodes, g.limits.BurstPeriod)
	return g
}

// restoreOwnRates restores the rates that were set here, once those of another node have applied
// long enough.
func (g Throttle) restoreOwnRates() Throttle {
	if g.peerRatesUntil == 0 || g.now < g.peerRatesUntil {
		return g
	}
	g.requests.perMinute, g.tokens.perMinute, g.peerRatesUntil = g.ownRates.Requests, g.ownRates.Tokens, 0
	return g.divideRates()
}

func (g Throttle) spendRates(tokens int64) Throttle {
	if g.requests.perMinute > 0 {
		g.requests.level--
	}
	if g.tokens.perMinute > 0 {
		g.tokens.level -= float64(tokens)
	}
	return g
}

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
	if g.peerRatesUntil > 0 {
		due(g.peerRatesUntil)
	}
	w, waits := g.queue.nextRequest()
	switch {
	case !waits:
	case g.now < g.closedUntil:
		due(g.closedUntil)
	case g.canAdmit(w.tokens):
		due(g.now)
	default:
		if n := max(g.requests.timeUntil(1), g.tokens.timeUntil(float64(w.tokens))); n > 0 {
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
}

// Status returns the status of the throttle at a time.
func (g Throttle) Status(now int64) Status {
	g.now = max(g.now, now)
	s := Status{ClosedMS: g.closedFor(), Breaker: g.breaker, Window: int(g.window / windowUnit), Flying: g.inFlight.Len(), Waiting: g.queue.len()}
	if s.ClosedMS > 0 || s.Breaker != BreakerClosed {
		s.Why = g.closedReason()
	}
	return s
}

// IsIdle reports whether no caller needs the throttle, and it holds no state that would matter
// later.
func (g Throttle) IsIdle(now int64) bool {
	g.now = max(g.now, now)
	return g.inFlight.Len() == 0 && g.queue.len() == 0 && g.tickets.Len() == 0 && g.closedFor() == 0 && g.breaker == BreakerClosed &&
		g.window >= int64(g.limits.InitialWindow)*windowUnit && g.requests.perMinute == 0 && g.tokens.perMinute == 0
}
