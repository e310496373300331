package throttle

import "math"

// bucket holds how much of a rate this node may spend. Without a rate it is unlimited.
type bucket struct {
	minute int64   // what the key allows, for all nodes
	share  float64 // of this node, a millisecond
	most   float64
	level  float64
	at     int64
}

func (b bucket) refilled(now int64) bucket {
	b.level, b.at = min(b.most, b.level+float64(now-b.at)*b.share), now
	return b
}

// has reports whether a request for n may pass. One for more than the bucket ever holds
// passes when the bucket is full, and leaves it in debt.
func (b bucket) has(n float64) bool { return b.minute <= 0 || b.level >= min(n, b.most)-epsilon }

func (b bucket) give(n float64) bucket {
	b.level = min(b.most, b.level+n)
	return b
}

// wait is the time until the bucket holds n.
func (b bucket) wait(n float64) int64 {
	if b.has(n) || b.share <= 0 {
		return 0
	}
	return int64(math.Ceil((min(n, b.most) - b.level) / b.share))
}

// epsilon compensates for the rounding errors of many small refills.
const epsilon = 1e-6

const minuteMS = 60_000

// divided returns the share of one of the nodes that share a rate.
func (b bucket) divided(nodes int, burstMS int64) bucket {
	if b.minute <= 0 {
		return bucket{at: b.at}
	}
	fresh := b.most == 0
	b.share = float64(b.minute) / float64(nodes) / minuteMS
	b.most = max(1, b.share*float64(burstMS))
	if fresh {
		b.level = b.most
	}
	b.level = min(b.level, b.most)
	return b
}

func (g Gate) refilled() Gate {
	g.requests, g.tokens = g.requests.refilled(g.now), g.tokens.refilled(g.now)
	return g
}

// shared divides the rates by the nodes that share them.
func (g Gate) shared() Gate {
	g.requests, g.tokens = g.requests.divided(g.nodes, g.limits.Burst), g.tokens.divided(g.nodes, g.limits.Burst)
	return g
}

// returned restores the rates that were set here, once those of another node have applied
// long enough.
func (g Gate) returned() Gate {
	if g.lent == 0 || g.now < g.lent {
		return g
	}
	g.requests.minute, g.tokens.minute, g.lent = g.own.Requests, g.own.Tokens, 0
	return g.shared()
}

func (g Gate) spend(tokens int64) Gate {
	if g.requests.minute > 0 {
		g.requests.level--
	}
	if g.tokens.minute > 0 {
		g.tokens.level -= float64(tokens)
	}
	return g
}

// Next is when a Ticked is due; ok is false if only an answer or a new request can change the
// state.
func (g Gate) Next() (at int64, ok bool) {
	due := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if w, waits := g.queue.oldestHeld(); waits {
		due(w.since + g.limits.Hold)
	}
	for it := g.tickets.Iterator(); !it.Done(); {
		_, t, _ := it.Next()
		due(t.until)
	}
	if g.lent > 0 {
		due(g.lent)
	}
	w, waits := g.queue.first()
	switch {
	case !waits:
	case g.now < g.until:
		due(g.until)
	case g.open(w.tokens):
		due(g.now)
	default:
		if n := max(g.requests.wait(1), g.tokens.wait(float64(w.tokens))); n > 0 {
			due(g.now + n)
		}
	}
	return max(at, g.now+1), ok
}

// Status is the state of a throttle for display.
type Status struct {
	ClosedMS int64   `json:"closed_ms,omitempty"` // how much longer
	Why      Verdict `json:"why,omitempty"`       // why it is closed
	Breaker  Breaker `json:"breaker,omitempty"`
	Window   int     `json:"window"` // requests that may be in flight at once
	Flying   int     `json:"flying"` // requests in flight
	Waiting  int     `json:"waiting"`
}

// Status returns the status of the throttle at a time.
func (g Gate) Status(now int64) Status {
	g.now = max(g.now, now)
	s := Status{ClosedMS: g.closedFor(), Breaker: g.breaker, Window: int(g.window / milli), Flying: g.flying.Len(), Waiting: g.queue.len()}
	if s.ClosedMS > 0 || s.Breaker != Closed {
		s.Why = g.reason()
	}
	return s
}

// Idle reports whether no caller needs the throttle, and it holds no state that would matter
// later.
func (g Gate) Idle(now int64) bool {
	g.now = max(g.now, now)
	return g.flying.Len() == 0 && g.queue.len() == 0 && g.tickets.Len() == 0 && g.closedFor() == 0 && g.breaker == Closed &&
		g.window >= int64(g.limits.Window)*milli && g.requests.minute == 0 && g.tokens.minute == 0
}
