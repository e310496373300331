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

// gatekeeper is an actor with a throttle for each provider, model and key; every model call
// of a node passes it. It begins the calls that are admitted, so that calls in flight are
// counted even if the shell that asked has crashed, and it is the only place that learns how
// providers answer. It decides nothing: throttle.Gate decides.
type gatekeeper struct {
	cfg   Config
	began time.Time
	seed  uint64
	nodes int
	doors map[string]*door  // by provider, model and key
	asks  map[string]string // by asker, the door at which it asks
}

// door is one throttle, with the requests that wait at it.
type door struct {
	gate  throttle.Gate
	asks  map[string]ask // by asker
	timer *time.Timer
	due   int64
}

// Messages to the gatekeeper.
type (
	// ask is a model call that waits to begin, or an agent that waits for its turn.
	ask struct {
		door   string
		at     mailbox.Address
		start  string // the activation that asks
		call   string
		tokens int64
		// begin makes the call, and returns when it has ended; it runs on a goroutine of its
		// own. refuse says that the call will not be made. Without a reservation both are nil,
		// and admit says that it is the agent's turn.
		begin  func(streams func()) verdict
		refuse func(afterMS int64, why throttle.Verdict)
		admit  func()
	}
	// leave withdraws the requests of an activation.
	leave struct {
		at    mailbox.Address
		start string
	}
	verdict struct {
		as      throttle.Verdict
		afterMS int64
		used    int64
	}
	called struct {
		door, call string
		verdict
	}
	streaming struct{ door, call string }
	gateDue   struct{ door string }
	heard     struct {
		door   string
		notice throttle.Notice
	}
	shared    struct{ nodes int }
	showGates struct {
		show func(map[string]throttle.Status)
	}
)

func newGatekeeper(cfg Config) *gatekeeper {
	var seed [8]byte
	rand.Read(seed[:]) // never fails: crypto/rand ends the process instead
	return &gatekeeper{cfg: cfg, began: time.Now(), seed: binary.LittleEndian.Uint64(seed[:]), nodes: 1, doors: map[string]*door{}, asks: map[string]string{}}
}

func (a ask) who() string   { return string(a.at) + "!" + a.start }
func (l leave) who() string { return string(l.at) + "!" + l.start }

func (k *gatekeeper) now() int64 { return time.Since(k.began).Milliseconds() }

// Receive takes one message.
func (k *gatekeeper) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case ask:
		k.ask(c, m)
	case leave:
		k.leave(c, m.who())
	case called:
		k.step(c, m.door, throttle.Answered{At: k.now(), Call: m.call, As: m.as, AfterMS: m.afterMS, Used: m.used})
	case streaming:
		k.step(c, m.door, throttle.Began{At: k.now(), Call: m.call})
	case heard:
		k.step(c, m.door, throttle.Heard{At: k.now(), Notice: m.notice})
	case gateDue:
		if d := k.doors[m.door]; d != nil {
			d.timer = nil
			k.step(c, m.door, throttle.Ticked{At: k.now()})
		}
	case shared:
		k.nodes = m.nodes
		for name := range k.doors {
			k.step(c, name, throttle.Shared{At: k.now(), Nodes: k.nodes})
		}
	case showGates:
		all := map[string]throttle.Status{}
		for name, d := range k.doors {
			all[name] = d.gate.Status(k.now())
		}
		m.show(all)
	case *actor.Restarting: // the gatekeeper crashed, and its successor knows no requests
		k.close()
	case *actor.Stopping:
		k.close()
	}
}

// close refuses all waiting requests: their calls were never made. An agent that waits
// without a reservation asks again with one, at the next gatekeeper.
func (k *gatekeeper) close() {
	for _, d := range k.doors {
		d.disarm()
		for _, m := range d.asks {
			if m.begin != nil {
				m.refuse(0, throttle.Neutral)
			} else {
				m.admit()
			}
		}
		clear(d.asks)
	}
}

// ask puts a request to the throttle. An asker has one request at a time.
func (k *gatekeeper) ask(c actor.Context, m ask) {
	who := m.who()
	if at, ok := k.asks[who]; ok && (at != m.door || k.doors[at].asks[who].refuse != nil) {
		k.leave(c, who)
	}
	d := k.open(c, m.door)
	d.asks[who] = m
	k.asks[who] = m.door
	k.step(c, m.door, throttle.Asked{At: k.now(), Who: who, Call: m.call, Run: m.at.Run(), Tokens: m.tokens, Held: m.begin != nil})
}

func (k *gatekeeper) leave(c actor.Context, who string) {
	name, ok := k.asks[who]
	if !ok {
		return
	}
	m := k.doors[name].take(who)
	delete(k.asks, who)
	if m.refuse != nil {
		m.refuse(0, throttle.Neutral)
	}
	k.step(c, name, throttle.Left{At: k.now(), Who: who})
}

// open returns a door, and creates it if necessary.
func (k *gatekeeper) open(c actor.Context, name string) *door {
	d := k.doors[name]
	if d == nil {
		k.seed += 2 // throttles need different seeds
		d = &door{gate: throttle.New(k.cfg.Gates, k.seed), asks: map[string]ask{}}
		k.doors[name] = d
		k.step(c, name, throttle.Shared{At: k.now(), Nodes: k.nodes})
		if requests, tokens := k.cfg.Rates(name); requests > 0 || tokens > 0 {
			k.doors[name] = d
			k.step(c, name, throttle.Ruled{At: k.now(), Requests: requests, Tokens: tokens})
		}
		k.doors[name] = d // step has removed the door if its throttle knows nothing yet
	}
	return d
}

func (d *door) take(who string) ask {
	m := d.asks[who]
	delete(d.asks, who)
	return m
}

// heardDoorsMax bounds the doors that a node keeps for notices of other nodes: other nodes
// choose the names, and this node may never use them. If a door is not kept, this node learns
// from the first refusal of its own.
const heardDoorsMax = 1024

// step passes an event to a throttle and carries out the effects.
func (k *gatekeeper) step(c actor.Context, name string, e throttle.Event) {
	d := k.doors[name]
	if d == nil {
		if _, told := e.(throttle.Heard); !told || len(k.doors) >= heardDoorsMax {
			return // the throttle has nothing to remember, or this node may never use it
		}
		d = k.open(c, name)
	}
	next, effects := d.gate.Step(e)
	d.gate = next
	for _, fx := range effects {
		switch fx := fx.(type) {
		case throttle.Admit:
			delete(k.asks, fx.Who)
			k.admit(c, name, d.take(fx.Who))
		case throttle.Refuse:
			delete(k.asks, fx.Who)
			d.take(fx.Who).refuse(fx.AfterMS, fx.Why)
		case throttle.Tell:
			k.cfg.Told(name, fx.Notice)
		}
	}
	if d.gate.Idle(k.now()) && len(d.asks) == 0 {
		d.disarm()
		delete(k.doors, name)
		return
	}
	d.arm(c, name, k.now())
}

// admit begins a call, or tells an agent that it is its turn.
func (k *gatekeeper) admit(c actor.Context, name string, m ask) {
	if m.begin == nil {
		m.admit()
		return
	}
	self, root := c.Self(), c.ActorSystem().Root
	streams := func() { root.Send(self, streaming{name, m.call}) }
	go func() { root.Send(self, called{name, m.call, m.begin(streams)}) }()
}

// arm sets a timer for the moment when time alone changes the state of the throttle.
func (d *door) arm(c actor.Context, name string, now int64) {
	at, ok := d.gate.Next()
	switch {
	case !ok:
		d.disarm()
		return
	case d.timer != nil && d.due == at:
		return
	}
	d.disarm()
	self, root := c.Self(), c.ActorSystem().Root
	d.due = at
	d.timer = time.AfterFunc(time.Duration(max(at-now, 0))*time.Millisecond, func() { root.Send(self, gateDue{name}) })
}

func (d *door) disarm() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

// told derives from an attempt how the provider answered. If the provider refuses only this
// one request, that counts as an answer.
func told(reply model.Reply, err error) verdict {
	v := verdict{as: throttle.OK}
	if reply.UsageKnown {
		v.used = reply.Usage.Total()
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

// Hear takes a notice of a provider that another node received.
func (n *Node) Hear(door string, notice throttle.Notice) {
	n.system.Root.Send(n.keeper, heard{door, notice})
}

// Share sets how many nodes share the limits of the keys.
func (n *Node) Share(nodes int) { n.system.Root.Send(n.keeper, shared{nodes}) }

// Gates shows the throttles that hold state, by the name of their door. The gatekeeper calls
// show on another goroutine, so show must not block; it is not called once the node has
// stopped.
func (n *Node) Gates(show func(map[string]throttle.Status)) {
	n.system.Root.Send(n.keeper, showGates{show})
}

// orDefaults supplies the throttle functions that a single node needs and the Config lacks.
func orDefaults(cfg Config) (door func(string) string, rates func(string) (int64, int64), told func(string, throttle.Notice)) {
	door, rates, told = cfg.Gate, cfg.Rates, cfg.Told
	if door == nil {
		door = func(route string) string { return route }
	}
	if rates == nil {
		rates = func(string) (int64, int64) { return 0, 0 }
	}
	if told == nil {
		told = func(string, throttle.Notice) {}
	}
	return door, rates, told
}
