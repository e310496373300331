package throttle

import "math"

// rateBucket holds how much of a rate this node may spend. Without a rate it is unlimited.
//
// Requests take from it when they begin, and tickets keep a part of it until then. So in any
// minute the node spends at most capacity and refill of that minute, and divideAmong chooses
// both so that their sum is the share of the node.
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

// canSpend reports whether a request for n may pass while kept tickets stay reserved. One for more than the bucket
// ever holds passes when the bucket is full, and leaves it in debt.
func (b rateBucket) canSpend(n, kept float64) bool {
	return b.perMinute <= 0 || b.level-kept >= min(n, b.capacity)-epsilon //mutant:rate-is-kept
}

// refund gives back the unused part of an estimate; n below 0 is the usage beyond it.
func (b rateBucket) refund(n float64) rateBucket {
	b.level = min(b.capacity, b.level+n)
	return b.boundDebt()
}

// spend takes n.
func (b rateBucket) spend(n float64) rateBucket {
	if b.perMinute > 0 {
		b.level -= n
	}
	return b.boundDebt()
}

// debtMSMax bounds the debt of a bucket, by the time that refills it.
const debtMSMax = 10 * minuteMS

// boundDebt bounds the debt. Without a bound, a provider that once reports a rate of one token a
// minute, or a huge usage, would stop a model for days: no answer could correct it.
func (b rateBucket) boundDebt() rateBucket {
	b.level = max(b.level, -b.refillPerMS*debtMSMax)
	return b
}

// timeUntil is the time until a request for n may pass while kept tickets stay reserved.
func (b rateBucket) timeUntil(n, kept float64) int64 {
	if b.canSpend(n, kept) || b.refillPerMS <= 0 {
		return 0
	}
	return max(1, int64(math.Ceil((min(n, b.capacity)-b.level+kept)/b.refillPerMS)))
}

// isFull reports whether the bucket is as a new one would be.
func (b rateBucket) isFull() bool { return b.level >= b.capacity-epsilon }

// limitTo lowers the level to the share of a node in what the provider has left for all nodes.
func (b rateBucket) limitTo(left int64, nodes int) rateBucket {
	b.level = min(b.level, float64(max(0, left))/float64(nodes))
	return b
}

// epsilon compensates for the rounding errors of many small refills.
const epsilon = 1e-6

const minuteMS = 60_000

// divideAmong returns the share of one of the nodes that share a rate: whole requests, or, if there
// are more nodes than requests a minute, one in some minutes.
func (b rateBucket) divideAmong(nodes int, burstMS int64) rateBucket {
	if b.perMinute <= 0 {
		return rateBucket{at: b.at}
	}
	fresh := b.capacity == 0
	share := float64(b.perMinute) / float64(nodes)
	if share >= 1 {
		share = math.Floor(share)
	}
	b.capacity = max(1, math.Floor(share*min(1, float64(burstMS)/minuteMS)))
	b.refillPerMS = (share - b.capacity + 1) / minuteMS //mutant:burst-is-part-of-the-rate
	if fresh {
		b.level = b.capacity
	}
	b.level = min(b.level, b.capacity)
	return b.boundDebt() // a lower rate takes longer to pay
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

func (g Throttle) spendRates(tokens int64) Throttle {
	g.requests, g.tokens = g.requests.spend(1), g.tokens.spend(float64(tokens))
	return g
}

// refillTime is the time until the rates allow one more request; 0: they do.
func (g Throttle) refillTime(tokens int64) int64 {
	return max(g.requests.timeUntil(1, float64(g.tickets.Len())), g.tokens.timeUntil(float64(tokens), float64(g.ticketTokens)))
}
