package actors

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// throttleKeeper is an actor with a throttle for each provider, model and key; every model call
// of a node passes it. It begins the calls that are admitted, so that calls in flight are
// counted even if the shell that asked has crashed, and it is the only place that learns how
// providers answer. It decides nothing: throttle.Throttle decides.
type throttleKeeper struct {
	cfg        Config
	began      time.Time
	seed       uint64
	nodes      int
	throttles  map[string]*modelThrottle // by provider, model and key
	throttleOf map[string]string         // by asker, the throttle at which it asks
}

// modelThrottle is one throttle, with the requests that wait at it.
type modelThrottle struct {
	state    throttle.Throttle
	requests map[string]throttleRequest // by asker
	rates    throttle.Rates             // of the settings
	timer    *time.Timer
	due      int64
}

// Messages to the throttle keeper.
type (
	// throttleRequest is a model call that waits to begin, or an agent that waits for its turn.
	throttleRequest struct {
		name     string
		at       mailbox.Address
		start    string // the activation that asks
		call     string
		tokens   int64
		rates    throttle.Rates // of the settings
		priority throttle.Priority
		// begin makes the call, and returns when it has ended; it runs on a goroutine of its
		// own. refuse says that the call will not be made. Without a reservation both are nil,
		// and admit says that it is the agent's turn.
		begin  func(streams func()) callVerdict
		refuse func(afterMS int64, why throttle.CallOutcome)
		admit  func()
	}
	// withdrawal withdraws the requests of an activation.
	withdrawal struct {
		at    mailbox.Address
		start string
	}
	callVerdict struct {
		as      throttle.CallOutcome
		afterMS int64
		used    int64
		report  throttle.RateReport
	}
	callEnded struct {
		name, call string
		callVerdict
	}
	callStreaming struct{ name, call string }
	throttleDue   struct{ name string }
	peerNotice    struct {
		name   string
		notice throttle.Notice
	}
	nodesChanged  struct{ nodes int }
	showThrottles struct {
		show func(map[string]throttle.Status)
	}
)

func newThrottleKeeper(cfg Config) *throttleKeeper {
	var seed [8]byte
	rand.Read(seed[:]) // never fails: crypto/rand ends the process instead
	return &throttleKeeper{cfg: cfg, began: time.Now(), seed: binary.LittleEndian.Uint64(seed[:]), nodes: 1, throttles: map[string]*modelThrottle{}, throttleOf: map[string]string{}}
}

func (a throttleRequest) asker() string { return string(a.at) + "!" + a.start }
func (l withdrawal) asker() string      { return string(l.at) + "!" + l.start }

func (k *throttleKeeper) clockMS() int64 { return time.Since(k.began).Milliseconds() }

// receive takes one message.
func (k *throttleKeeper) receive(c actor.Context) {
	switch m := c.Message().(type) {
	case throttleRequest:
		k.submitRequest(c, m)
	case withdrawal:
		k.withdrawRequest(c, m.asker())
	case callEnded:
		k.stepThrottle(c, m.name, throttle.CallAnswered{At: k.clockMS(), Call: m.call, Outcome: m.as, AfterMS: m.afterMS, Used: m.used, Report: m.report})
	case callStreaming:
		k.stepThrottle(c, m.name, throttle.ReplyBegan{At: k.clockMS(), Call: m.call})
	case peerNotice:
		k.stepThrottle(c, m.name, throttle.NoticeReceived{At: k.clockMS(), Notice: m.notice})
	case throttleDue:
		if d := k.throttles[m.name]; d != nil {
			d.timer = nil
			k.stepThrottle(c, m.name, throttle.TimePassed{At: k.clockMS()})
		}
	case nodesChanged:
		k.nodes = m.nodes
		for name := range k.throttles {
			k.stepThrottle(c, name, throttle.NodeCountSet{At: k.clockMS(), Nodes: k.nodes})
		}
	case showThrottles:
		all := map[string]throttle.Status{}
		for name, d := range k.throttles {
			all[name] = d.state.Status(k.clockMS())
		}
		m.show(all)
	case *actor.Restarting: // the keeper crashed, and its successor knows no requests
		k.refuseAll()
	case *actor.Stopping:
		k.refuseAll()
	}
}

// refuseAll refuses all waiting requests: their calls were never made. An agent that waits
// without a reservation asks again with one, at the next keeper.
func (k *throttleKeeper) refuseAll() {
	for _, d := range k.throttles {
		d.stopTimer()
		for _, m := range d.requests {
			if m.begin != nil {
				m.refuse(0, throttle.Neutral)
			} else {
				m.admit()
			}
		}
		clear(d.requests)
	}
}

// submitRequest puts a request to the throttle. An asker has one request at a time.
func (k *throttleKeeper) submitRequest(c actor.Context, m throttleRequest) {
	who := m.asker()
	if at, ok := k.throttleOf[who]; ok && (at != m.name || k.throttles[at].requests[who].refuse != nil) {
		k.withdrawRequest(c, who)
	}
	d := k.openThrottle(m.name)
	d.requests[who] = m
	k.throttleOf[who] = m.name
	if d.rates != m.rates {
		d.rates = m.rates
		k.stepThrottle(c, m.name, throttle.RatesSet{At: k.clockMS(), Rates: m.rates})
	}
	k.stepThrottle(c, m.name, throttle.CallRequested{At: k.clockMS(), Who: who, Call: m.call, Run: m.at.Run(), Priority: m.priority, Tokens: m.tokens, Reserved: m.begin != nil})
}

func (k *throttleKeeper) withdrawRequest(c actor.Context, who string) {
	name, ok := k.throttleOf[who]
	if !ok {
		return
	}
	m := k.throttles[name].takeRequest(who)
	delete(k.throttleOf, who)
	if m.refuse != nil {
		m.refuse(0, throttle.Neutral)
	}
	k.stepThrottle(c, name, throttle.CallerLeft{At: k.clockMS(), Who: who})
}

// openThrottle returns a throttle, and creates it if necessary.
func (k *throttleKeeper) openThrottle(name string) *modelThrottle {
	d := k.throttles[name]
	if d == nil {
		k.seed += 2 // throttles need different seeds
		d = &modelThrottle{state: throttle.New(k.cfg.ThrottleLimits, k.seed), requests: map[string]throttleRequest{}}
		// no request waits: there are no effects
		d.state, _ = d.state.Step(throttle.NodeCountSet{At: k.clockMS(), Nodes: k.nodes})
		k.throttles[name] = d
	}
	return d
}

func (d *modelThrottle) takeRequest(who string) throttleRequest {
	m := d.requests[who]
	delete(d.requests, who)
	return m
}

// peerThrottlesMax bounds the throttles that a node keeps for notices of other nodes: other nodes
// choose the names, and this node may never use them. If a throttle is not kept, this node learns
// from the first refusal of its own.
const peerThrottlesMax = 1024

// stepThrottle passes an event to a throttle and carries out the effects.
func (k *throttleKeeper) stepThrottle(c actor.Context, name string, e throttle.Event) {
	d := k.throttles[name]
	if d == nil {
		if _, told := e.(throttle.NoticeReceived); !told || len(k.throttles) >= peerThrottlesMax {
			return // the throttle has nothing to remember, or this node may never use it
		}
		d = k.openThrottle(name)
	}
	next, effects := d.state.Step(e)
	d.state = next
	for _, fx := range effects {
		switch fx := fx.(type) {
		case throttle.AdmitCaller:
			delete(k.throttleOf, fx.Who)
			k.admitRequest(c, name, d.takeRequest(fx.Who))
		case throttle.RejectCaller:
			delete(k.throttleOf, fx.Who)
			d.takeRequest(fx.Who).refuse(fx.AfterMS, fx.Why)
		case throttle.PublishNotice:
			k.cfg.PublishNotice(name, fx.Notice)
		}
	}
	if d.state.IsIdle(k.clockMS()) && len(d.requests) == 0 {
		d.stopTimer()
		delete(k.throttles, name)
		return
	}
	d.armTimer(c, name, k.clockMS())
}

// admitRequest begins a call, or tells an agent that it is its turn.
func (k *throttleKeeper) admitRequest(c actor.Context, name string, m throttleRequest) {
	if m.begin == nil {
		m.admit()
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	streams := func() { root.Send(self, callStreaming{name, m.call}) }
	k.cfg.calls.Go(func() { root.Send(self, callEnded{name, m.call, m.begin(streams)}) })
}

// armTimer sets a timer for the moment when time alone changes the state of the throttle.
func (d *modelThrottle) armTimer(c actor.Context, name string, now int64) {
	at, ok := d.state.NextTick()
	switch {
	case !ok:
		d.stopTimer()
		return
	case d.timer != nil && d.due == at:
		return
	}
	d.stopTimer()
	self, root := c.Self(), c.ActorSystem().Root
	d.due = at
	d.timer = time.AfterFunc(time.Duration(max(at-now, 0))*time.Millisecond, func() { root.Send(self, throttleDue{name}) })
}

func (d *modelThrottle) stopTimer() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// judgeAttempt derives from an attempt how the provider answered. If the provider refuses only this
// one request, that counts as an answer.
func judgeAttempt(reply model.Reply, err error) callVerdict {
	l := reply.Limits
	v := callVerdict{as: throttle.OK, report: throttle.RateReport{Rates: throttle.Rates{Requests: l.Requests, Tokens: l.Tokens}, RequestsLeft: l.RequestsLeft, TokensLeft: l.TokensLeft}}
	if v.used = reply.Usage.Total(); l.CacheReadsFree {
		v.used -= reply.Usage.CacheRead
	}
	if !reply.UsageKnown {
		v.used = 0
	}
	if err == nil {
		return v
	}
	var known *model.Error
	if !errors.As(err, &known) {
		v.as = throttle.Neutral
		return v
	}
	v.afterMS = known.RetryAfter.Milliseconds()
	switch {
	case known.Class == model.RateLimit, known.Class == model.Overload && known.Unbilled: // rejected before any work
		v.as = throttle.Limited
	case known.Class == model.Overload:
		v.as = throttle.Overloaded
	case known.Class == model.Network:
		v.as = throttle.Failed
	case known.Class == model.Aborted, known.Status == 0:
		v.as = throttle.Neutral
	}
	return v
}

// ApplyNotice takes a notice of a provider that another node received.
func (n *Node) ApplyNotice(name string, notice throttle.Notice) {
	n.system.Root.Send(n.keeper, peerNotice{name, notice})
}

// ShareLimits sets how many nodes share the limits of the keys.
func (n *Node) ShareLimits(nodes int) { n.system.Root.Send(n.keeper, nodesChanged{nodes}) }

// Throttles shows the throttles that hold state, by the name of each. The keeper calls
// show on another goroutine, so show must not block; it is not called once the node has
// stopped.
func (n *Node) Throttles(show func(map[string]throttle.Status)) {
	n.system.Root.Send(n.keeper, showThrottles{show})
}

// orDefaults supplies the throttle functions that a single node needs and the Config lacks.
func orDefaults(cfg Config) (throttleOf func(string) string, rates func(string) throttle.Rates, publish func(string, throttle.Notice)) {
	throttleOf, rates, publish = cfg.ThrottleOf, cfg.Rates, cfg.PublishNotice
	if throttleOf == nil {
		throttleOf = func(route string) string { return route }
	}
	if rates == nil {
		rates = func(string) throttle.Rates { return throttle.Rates{} }
	}
	if publish == nil {
		publish = func(string, throttle.Notice) {}
	}
	return throttleOf, rates, publish
}
