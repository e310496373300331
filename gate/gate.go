// Package gate is the gate before one provider, model and key as a value: Step
// takes a Gate and an Event and returns the next Gate and what is to be said to
// whom. Every model call of a node passes it, so that a refusal is heard once
// and obeyed by all; what the provider has said goes on to the other nodes as a
// Notice, and theirs comes in as Heard.
//
// It has no clock, goroutine or random number: times come in as milliseconds of
// any clock that does not go back, chance comes from the seed that it was made
// with. Nothing of it is in a log, and nothing of it has to survive: what a gate
// forgets, the next refusal tells it again.
package gate

import (
	"github.com/benbjohnson/immutable"
)

// Limits of a gate, in milliseconds where they are times. Zero fields mean the
// defaults that DefaultLimits gives.
type Limits struct {
	// PauseMax is the longest pause that a provider may ask for.
	PauseMax int64
	// BackoffMin is the first pause where the provider names none; it doubles with
	// each refusal up to BackoffMax, until something is answered.
	BackoffMin, BackoffMax int64
	// JitterMax is how much later than its end a pause may be over, by chance, so
	// that nodes do not all begin at once.
	JitterMax int64
	// Hold is how long who holds a lease may wait here for its turn.
	Hold int64
	// Ticket is how long who was let in may take to come.
	Ticket int64
	// Failures in a row open the breaker, for BreakerMin at first, BreakerMax at most.
	Failures               int
	BreakerMin, BreakerMax int64
	// Window is how many requests may be under way before anything was refused.
	Window int
	// Burst is the time whose requests and tokens may be spent at once.
	Burst int64
	// Forget is how long after a refusal the window is as wide as at first again, and
	// how long rates count that another node named.
	Forget int64
}

// DefaultLimits are the limits that hold where nobody says otherwise.
func DefaultLimits() Limits {
	return Limits{PauseMax: 5 * 60_000, BackoffMin: 500, BackoffMax: 60_000, JitterMax: 1000, Hold: 1000, Ticket: 10_000,
		Failures: 5, BreakerMin: 2000, BreakerMax: 60_000, Window: 4096, Burst: 10_000, Forget: 10 * 60_000}
}

func (l Limits) filled() Limits {
	d := DefaultLimits()
	for _, p := range [...]struct {
		to *int64
		or int64
	}{{&l.PauseMax, d.PauseMax}, {&l.BackoffMin, d.BackoffMin}, {&l.BackoffMax, d.BackoffMax}, {&l.JitterMax, d.JitterMax}, {&l.Hold, d.Hold},
		{&l.Ticket, d.Ticket}, {&l.BreakerMin, d.BreakerMin}, {&l.BreakerMax, d.BreakerMax}, {&l.Burst, d.Burst}, {&l.Forget, d.Forget}} {
		if *p.to <= 0 {
			*p.to = p.or
		}
	}
	if l.Failures <= 0 {
		l.Failures = d.Failures
	}
	if l.Window <= 0 {
		l.Window = d.Window
	}
	return l
}

// Verdict is how a request was answered.
type Verdict string

// Verdicts. Limited and Overloaded are the provider's own words, and everybody's
// to obey; Failed is what this node alone has seen. Neutral says nothing about
// the provider: the call was stopped, or never made.
const (
	OK         Verdict = "ok"
	Limited    Verdict = "rate_limit"
	Overloaded Verdict = "overload"
	Failed     Verdict = "network"
	Neutral    Verdict = "neutral"
)

// Events.
type (
	// Asked: a call wants to be made. Who is whoever asks, and asks one thing at a
	// time; Call names the request. With Held it holds a lease, and waits for Hold
	// at most; without, it waits for its turn and comes back with Held.
	Asked struct {
		At        int64
		Who, Call string
		Run       string
		Tokens    int64 // about so many; corrected by what is counted
		Held      bool
	}
	// Left: who asked does so no more, and a request that was not begun never will be.
	Left struct {
		At  int64
		Who string
	}
	// Began: the provider has begun to answer a request.
	Began struct {
		At   int64
		Call string
	}
	// Answered ends a request. AfterMS is the pause that the provider asked for, Used
	// the tokens that it counted, 0 where it does not say.
	Answered struct {
		At      int64
		Call    string
		As      Verdict
		AfterMS int64
		Used    int64
	}
	// Heard is what another node was told by the provider.
	Heard struct {
		At int64
		Notice
	}
	// Ruled sets how many requests and tokens a minute the key allows; 0 is unknown.
	Ruled struct {
		At               int64
		Requests, Tokens int64
	}
	// Shared: so many nodes share what the key allows.
	Shared struct {
		At    int64
		Nodes int
	}
	// Ticked: time has passed.
	Ticked struct{ At int64 }
)

// Event is one of the events above.
//
//sumtype:decl
type Event interface{ at() int64 }

func (e Asked) at() int64    { return e.At }
func (e Left) at() int64     { return e.At }
func (e Began) at() int64    { return e.At }
func (e Answered) at() int64 { return e.At }
func (e Heard) at() int64    { return e.At }
func (e Ruled) at() int64    { return e.At }
func (e Shared) at() int64   { return e.At }
func (e Ticked) at() int64   { return e.At }

// Effects.
type (
	// Admit lets the request begin, if it was asked for with Held; who waited
	// without a lease may go and get one.
	Admit struct {
		Who, Call string
		Held      bool
	}
	// Refuse sends away who asked with Held: the gate does not open in time. It may
	// be worth another try after AfterMS.
	Refuse struct {
		Who, Call string
		AfterMS   int64
		Why       Verdict
	}
	// Tell is for the other nodes.
	Tell struct{ Notice }
)

// Effect is one of the effects above.
//
//sumtype:decl
type Effect interface{ effect() }

func (Admit) effect()  {}
func (Refuse) effect() {}
func (Tell) effect()   {}

// Notice is what a node was told by the provider itself. It holds for PauseMS
// from when it was said; a pause of 0 takes back what overload had closed.
type Notice struct {
	PauseMS  int64   `json:"pause_ms,omitempty"`
	Why      Verdict `json:"why,omitempty"`
	Requests int64   `json:"requests_per_minute,omitempty"`
	Tokens   int64   `json:"tokens_per_minute,omitempty"`
}

// Breaker is the state of the breaker.
type Breaker string

// The zero Breaker is closed, and lets everything through. Open lets nothing
// through, Half one request as a trial.
const (
	Closed Breaker = ""
	Open   Breaker = "open"
	Half   Breaker = "half_open"
)

// Gate is a gate. It is a value: Step never changes one that it was given.
type Gate struct {
	limits Limits
	seed   uint64
	now    int64

	until  int64 // nothing is let in before it
	why    Verdict
	said   int64 // the pause that others were told of ends then
	streak int   // refusals without an answer in between, of requests sent after each other

	breaker Breaker
	fails   int    // in a row
	opened  int    // how often in a row
	trial   string // the request that is on trial; "": none
	ours    bool   // the provider itself said what opened it

	window int64 // thousandths of requests at once
	knee   int64 // where the window grows slower
	cut    int64 // when it was last cut
	flying *immutable.Map[string, flight]

	nodes    int
	own      Ruled // the rates that were set here
	lent     int64 // until when those of another node count instead; 0: they do not
	requests bucket
	tokens   bucket

	queue   queue
	tickets *immutable.SortedMap[string, ticket] // by who
}

// flight is a request under way.
type flight struct {
	since  int64
	tokens int64
}

// ticket lets one in who was waiting without a lease.
type ticket struct {
	until  int64
	tokens int64
}

// New makes a gate that is open. Gates of different nodes need different seeds.
func New(l Limits, seed uint64) Gate {
	l = l.filled()
	return Gate{limits: l, seed: seed, nodes: 1, window: int64(l.Window) * milli, knee: int64(l.Window) * milli, cut: -1,
		flying: immutable.NewMap[string, flight](nil), tickets: immutable.NewSortedMap[string, ticket](nil), queue: newQueue()}
}

// milli is the unit of windows.
const milli = 1000

// Step takes one event.
func (g Gate) Step(e Event) (Gate, []Effect) {
	g.now = max(g.now, e.at())
	g = g.refilled().returned()
	var fx []Effect
	switch e := e.(type) {
	case Asked:
		g, fx = g.asked(e)
	case Left:
		g.queue = g.queue.without(e.Who)
		g = g.revoked(e.Who)
	case Began:
		if g.trial == e.Call {
			g, fx = g.recovered()
		}
	case Answered:
		g, fx = g.answered(e)
	case Heard:
		g = g.heard(e.Notice)
	case Ruled:
		g, fx = g.ruled(e)
	case Shared:
		g.nodes = max(1, e.Nodes)
		g = g.shared()
	case Ticked:
	}
	g, more := g.move()
	return g, append(fx, more...)
}

// asked lets a request pass that has a ticket, and queues any other.
func (g Gate) asked(e Asked) (Gate, []Effect) {
	t, invited := g.tickets.Get(e.Who)
	g.queue = g.queue.without(e.Who)
	g = g.revoked(e.Who)
	if invited && e.Held && t.until > g.now {
		return g.fly(e.Who, e.Call, e.Tokens)
	}
	if _, again := g.flying.Get(e.Call); again {
		return g, nil
	}
	g.queue = g.queue.with(wait{who: e.Who, call: e.Call, run: e.Run, tokens: max(0, e.Tokens), held: e.Held, since: g.now})
	return g, nil
}

// fly counts a request as under way.
func (g Gate) fly(who, call string, tokens int64) (Gate, []Effect) {
	if g.breaker == Half {
		g.trial = call
	}
	g = g.spend(tokens)
	g.flying = g.flying.Set(call, flight{since: g.now, tokens: tokens})
	return g, []Effect{Admit{Who: who, Call: call, Held: true}}
}

// revoked takes a ticket back, with what was spent on it.
func (g Gate) revoked(who string) Gate {
	if t, ok := g.tickets.Get(who); ok {
		g.tickets = g.tickets.Delete(who)
		g.requests, g.tokens = g.requests.give(1), g.tokens.give(float64(t.tokens))
		if g.trial == trialOf(who) {
			g.trial = ""
		}
	}
	return g
}

// trialOf names the trial of who was let in and has not come yet.
func trialOf(who string) string { return "ticket of " + who }

// move lets in whoever may pass, and sends away who has waited long enough with
// a lease in hand.
func (g Gate) move() (Gate, []Effect) {
	var fx []Effect
	if g.breaker == Open && g.now >= g.until {
		g.breaker = Half
	}
	if g.cut >= 0 && g.now-g.cut > g.limits.Forget && g.closedFor() == 0 {
		g.window, g.knee, g.cut = int64(g.limits.Window)*milli, int64(g.limits.Window)*milli, -1
	}
	g = g.expired()
	for {
		w, ok := g.queue.first()
		if !ok || !g.open(w.tokens) {
			break
		}
		g.queue = g.queue.served(w)
		if w.held {
			next, more := g.fly(w.who, w.call, w.tokens)
			g, fx = next, append(fx, more...)
			continue
		}
		if g.breaker == Half {
			g.trial = trialOf(w.who)
		}
		g = g.spend(w.tokens)
		g.tickets = g.tickets.Set(w.who, ticket{until: g.now + g.limits.Ticket, tokens: w.tokens})
		fx = append(fx, Admit{Who: w.who, Call: w.call})
	}
	wait := g.closedFor()
	for {
		w, ok := g.queue.oldestHeld()
		if !ok || wait == 0 && g.now < w.since+g.limits.Hold || wait > 0 && g.now+wait <= w.since+g.limits.Hold { //mutant:lease-waits-at-the-gate
			return g, fx
		}
		g.queue = g.queue.without(w.who)
		fx = append(fx, Refuse{Who: w.who, Call: w.call, AfterMS: max(wait, 1), Why: g.reason()})
	}
}

// expired drops the tickets of those who never came.
func (g Gate) expired() Gate {
	var late []string
	for it := g.tickets.Iterator(); !it.Done(); {
		who, t, _ := it.Next()
		if t.until <= g.now || g.closedFor() > 0 {
			late = append(late, who)
		}
	}
	for _, who := range late {
		g = g.revoked(who)
	}
	return g
}

// reason is why the gate lets nobody in.
func (g Gate) reason() Verdict {
	if g.why == "" {
		return Limited
	}
	return g.why
}
