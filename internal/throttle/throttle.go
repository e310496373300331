// Package throttle is the throttle of one provider, model and key as a value: Step takes a
// Throttle and an Event and returns the next Throttle and the effects to carry out. Every model
// call of a node passes it, so that when one call is rate-limited, all calls back off. The
// throttle publishes the provider's refusals to the other nodes as a Notice, and theirs arrive
// as NoticeReceived.
//
// It has no clock, goroutine or random number: times are milliseconds of any clock that does
// not go back, and randomness comes from the seed that it was made with. No log holds its
// state, and the state need not survive: what a throttle forgets, it learns again from the
// next refusal.
package throttle

import (
	"slices"

	"github.com/benbjohnson/immutable"
)

// Limits of a throttle, in milliseconds where they are times. Zero fields mean the
// defaults that DefaultLimits gives.
type Limits struct {
	// PauseMax is the longest pause that a provider may ask for.
	PauseMax int64
	// BackoffMin is the first pause if the provider names none; it doubles with each refusal
	// up to BackoffMax, until a request is answered.
	BackoffMin, BackoffMax int64
	// JitterMax is the most that a pause is extended at random, so that the nodes do not all
	// begin at once.
	JitterMax int64
	// QueueMax is the longest a caller with a reservation may queue.
	QueueMax int64
	// TicketTTL is how long an admitted caller may take to send its request.
	TicketTTL int64
	// Failures in a row open the breaker, for BreakerMin at first, BreakerMax at most.
	Failures               int
	BreakerMin, BreakerMax int64
	// InitialWindow is how many requests may be in flight before the first refusal.
	InitialWindow int
	// BurstPeriod is the period whose requests and tokens may be spent at once.
	BurstPeriod int64
	// ForgetAfter is how long after a refusal the window returns to its initial width.
	ForgetAfter int64
	// ReportTTL is how long rates apply that the provider reported, unless it reports others.
	ReportTTL int64
	// SettingsTTL is how long the settings of another node apply that does not publish them
	// again. Nodes publish theirs twice in that time.
	SettingsTTL int64
	// NormalTurns and LowTurns are the turns that runs of normal and of low priority leave to others while they wait;
	// then the next turn is theirs. With fewer than 2 and 3 the two leave none to high priority.
	NormalTurns, LowTurns int
}

// DefaultLimits are the limits that apply unless others are set.
func DefaultLimits() Limits {
	return Limits{PauseMax: 5 * 60_000, BackoffMin: 500, BackoffMax: 60_000, JitterMax: 1000, QueueMax: 1000, TicketTTL: 10_000,
		Failures: 5, BreakerMin: 2000, BreakerMax: 60_000, InitialWindow: 4096, BurstPeriod: 3000, ForgetAfter: 10 * 60_000, ReportTTL: 24 * 3_600_000, SettingsTTL: 2 * 60_000, NormalTurns: 4, LowTurns: 9}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, p := range [...]struct {
		to *int64
		or int64
	}{{&l.PauseMax, d.PauseMax}, {&l.BackoffMin, d.BackoffMin}, {&l.BackoffMax, d.BackoffMax}, {&l.JitterMax, d.JitterMax}, {&l.QueueMax, d.QueueMax},
		{&l.TicketTTL, d.TicketTTL}, {&l.BreakerMin, d.BreakerMin}, {&l.BreakerMax, d.BreakerMax}, {&l.BurstPeriod, d.BurstPeriod}, {&l.ForgetAfter, d.ForgetAfter},
		{&l.ReportTTL, d.ReportTTL}, {&l.SettingsTTL, d.SettingsTTL}} {
		if *p.to <= 0 {
			*p.to = p.or
		}
	}
	for _, p := range [...]struct {
		to *int
		or int
	}{{&l.Failures, d.Failures}, {&l.InitialWindow, d.InitialWindow}, {&l.NormalTurns, d.NormalTurns}, {&l.LowTurns, d.LowTurns}} {
		if *p.to <= 0 {
			*p.to = p.or
		}
	}
	return l
}

// BreakerState is the state of the breaker.
type BreakerState string

// BreakerClosed lets every request through, BreakerOpen none, BreakerHalfOpen one request as a
// trial.
const (
	BreakerClosed   BreakerState = ""
	BreakerOpen     BreakerState = "open"
	BreakerHalfOpen BreakerState = "half_open"
)

// Throttle is the state of a throttle. It is a value: Step never changes one that it was given.
type Throttle struct {
	limits Limits
	seed   uint64
	now    int64

	closedUntil    int64 // no request is admitted before it
	closedBy       CallOutcome
	announcedUntil int64 // end of the pause that the other nodes were told
	refusalStreak  int   // refusals without an answer in between, of requests each sent after the one before

	breaker          BreakerState
	failureStreak    int    // in a row
	breakerOpenings  int    // how often in a row
	trialCall        string // the request on trial; "": none
	openedByProvider bool   // the provider itself caused it to open

	window         int64 // thousandths of requests at once
	slowGrowthFrom int64 // where the window grows slower
	windowCutAt    int64 // when it was last cut
	inFlight       *immutable.Map[string, inFlightCall]

	nodes    int
	rates    knownRates
	requests rateBucket
	tokens   rateBucket

	queue        fairQueue
	tickets      *immutable.SortedMap[string, ticket] // by caller
	ticketTokens int64                                // of all tickets
}

// inFlightCall is a request in flight.
type inFlightCall struct {
	since  int64
	tokens int64
}

// ticket admits one caller that was waiting without a reservation.
type ticket struct {
	until  int64
	tokens int64
}

// New makes a throttle that is open. Throttles of different nodes need different seeds.
func New(l Limits, seed uint64) Throttle {
	l = l.withDefaults()
	return Throttle{limits: l, seed: seed, nodes: 1, window: int64(l.InitialWindow) * windowUnit, slowGrowthFrom: int64(l.InitialWindow) * windowUnit, windowCutAt: -1,
		inFlight: immutable.NewMap[string, inFlightCall](nil), tickets: immutable.NewSortedMap[string, ticket](nil), queue: newQueue(l)}
}

// windowUnit is the unit of windows.
const windowUnit = 1000

// Step applies one event.
func (g Throttle) Step(e Event) (Throttle, []Effect) {
	g.now = max(g.now, e.eventTime())
	g = g.refillBuckets().expireRates()
	var fx []Effect
	switch e := e.(type) {
	case CallRequested:
		g, fx = g.admitOrQueue(e)
	case CallerLeft:
		g.queue = g.queue.withoutCaller(e.Who)
		g = g.revokeTicket(e.Who)
	case ReplyBegan:
		if g.trialCall == e.Call {
			g, fx = g.closeBreaker()
		}
	case CallAnswered:
		g, fx = g.applyAnswer(e)
	case NoticeReceived:
		g = g.applyNotice(e.Notice)
	case RatesSet:
		g = g.setRates(e.Rates)
	case NodeCountSet:
		g.nodes = max(1, e.Nodes)
		g = g.divideRates()
	case TimePassed:
	}
	g, rates := g.publishRates()
	g, more := g.admitWaiting()
	return g, slices.Concat(fx, rates, more)
}

// admitOrQueue admits a request whose caller has a ticket, and queues any other.
func (g Throttle) admitOrQueue(e CallRequested) (Throttle, []Effect) {
	t, invited := g.tickets.Get(e.Who)
	g.queue = g.queue.withoutCaller(e.Who)
	g = g.revokeTicket(e.Who)
	if invited && e.Reserved && t.until > g.now {
		return g.startCall(e.Who, e.Call, e.Tokens)
	}
	if _, again := g.inFlight.Get(e.Call); again {
		return g, nil
	}
	g.queue = g.queue.withRequest(waitingRequest{who: e.Who, call: e.Call, run: e.Run, rank: e.Priority.rank(), tokens: max(0, e.Tokens), reserved: e.Reserved, since: g.now})
	return g, nil
}

// startCall counts a request as in flight.
func (g Throttle) startCall(who, call string, tokens int64) (Throttle, []Effect) {
	if g.breaker == BreakerHalfOpen {
		g.trialCall = call
	}
	g = g.spendRates(tokens)
	g.inFlight = g.inFlight.Set(call, inFlightCall{since: g.now, tokens: tokens})
	return g, []Effect{AdmitCaller{Who: who, Call: call, Reserved: true}}
}

// revokeTicket revokes a ticket, and frees the rate that was kept for it.
func (g Throttle) revokeTicket(who string) Throttle {
	if t, ok := g.tickets.Get(who); ok {
		g.tickets = g.tickets.Delete(who)
		g.ticketTokens -= t.tokens
		if g.trialCall == ticketTrial(who) {
			g.trialCall = ""
		}
	}
	return g
}

// ticketTrial names the trial of an admitted caller that has not sent its request yet.
func ticketTrial(who string) string { return "ticket of " + who }

// admitWaiting admits the requests that may begin, and rejects callers that have queued too long with
// a reservation.
func (g Throttle) admitWaiting() (Throttle, []Effect) {
	var fx []Effect
	if g.breaker == BreakerOpen && g.now >= g.closedUntil {
		g.breaker = BreakerHalfOpen
	}
	if g.windowCutAt >= 0 && g.now-g.windowCutAt > g.limits.ForgetAfter && g.closedFor() == 0 {
		g.window, g.slowGrowthFrom, g.windowCutAt = int64(g.limits.InitialWindow)*windowUnit, int64(g.limits.InitialWindow)*windowUnit, -1
	}
	g = g.expireTickets()
	for {
		w, ok := g.queue.nextRequest()
		if !ok || !g.canAdmit(w.tokens) {
			break
		}
		g.queue = g.queue.withoutServed(w)
		if w.reserved {
			next, more := g.startCall(w.who, w.call, w.tokens)
			g, fx = next, append(fx, more...)
			continue
		}
		if g.breaker == BreakerHalfOpen {
			g.trialCall = ticketTrial(w.who)
		}
		g.ticketTokens += w.tokens
		g.tickets = g.tickets.Set(w.who, ticket{until: g.now + g.limits.TicketTTL, tokens: w.tokens})
		fx = append(fx, AdmitCaller{Who: w.who, Call: w.call})
	}
	wait := g.closedFor()
	for {
		w, ok := g.queue.oldestReserved()
		if !ok || wait == 0 && g.now < w.since+g.limits.QueueMax || wait > 0 && g.now+wait <= w.since+g.limits.QueueMax { //mutant:reservation-waits-at-the-throttle
			return g, fx
		}
		g.queue = g.queue.withoutCaller(w.who)
		reject := RejectCaller{Who: w.who, Call: w.call, AfterMS: max(wait, 1), Why: g.closedReason()}
		if refill := g.refillTime(w.tokens); wait == 0 && refill > 0 {
			reject.AfterMS, reject.Why = refill, OverRate
		}
		fx = append(fx, reject)
	}
}

// expireTickets drops tickets that were not used in time.
func (g Throttle) expireTickets() Throttle {
	var late []string
	for it := g.tickets.Iterator(); !it.Done(); {
		who, t, _ := it.Next()
		if t.until <= g.now || g.closedFor() > 0 {
			late = append(late, who)
		}
	}
	for _, who := range late {
		g = g.revokeTicket(who)
	}
	return g
}

// closedReason is why the throttle admits no request.
func (g Throttle) closedReason() CallOutcome {
	if g.closedBy == "" {
		return Limited
	}
	return g.closedBy
}
