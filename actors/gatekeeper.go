package actors

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-run/troupe/gate"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// Every model call of a node passes its gatekeeper, an actor with a gate for
// each provider, model and key. It begins the calls that are let in, so that
// what is under way is counted whatever becomes of the shell that asked, and it
// is the one place that hears how providers answer. It decides nothing: that is
// gate.Gate's.
type gatekeeper struct {
	cfg   Config
	began time.Time
	seed  uint64
	nodes int
	doors map[string]*door  // by what is behind them
	asks  map[string]string // the door at which somebody asks, by who
}

// door is one gate, with those who ask there.
type door struct {
	gate  gate.Gate
	asks  map[string]ask // by who
	timer *time.Timer
	due   int64
}

// Messages to the gatekeeper.
type (
	// ask is one call that wants to be made, or an agent that waits for its turn.
	ask struct {
		door   string
		at     mailbox.Address
		start  string // the life that asks
		call   string
		tokens int64
		// begin makes the call, and returns when it has ended; it is called from a
		// goroutine of its own. refuse says that it will not be made. Without a lease
		// both are nil, and admit says that it is the agent's turn.
		begin  func(streams func()) verdict
		refuse func(afterMS int64, why gate.Verdict)
		admit  func()
	}
	// leave: what a life asks for is not to be let in any more.
	leave struct {
		at    mailbox.Address
		start string
	}
	verdict struct {
		as      gate.Verdict
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
		notice gate.Notice
	}
	shared    struct{ nodes int }
	showGates struct {
		show func(map[string]gate.Status)
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
		k.step(c, m.door, gate.Answered{At: k.now(), Call: m.call, As: m.as, AfterMS: m.afterMS, Used: m.used})
	case streaming:
		k.step(c, m.door, gate.Began{At: k.now(), Call: m.call})
	case heard:
		k.step(c, m.door, gate.Heard{At: k.now(), Notice: m.notice})
	case gateDue:
		if d := k.doors[m.door]; d != nil {
			d.timer = nil
			k.step(c, m.door, gate.Ticked{At: k.now()})
		}
	case shared:
		k.nodes = m.nodes
		for name := range k.doors {
			k.step(c, name, gate.Shared{At: k.now(), Nodes: k.nodes})
		}
	case showGates:
		all := map[string]gate.Status{}
		for name, d := range k.doors {
			all[name] = d.gate.Status(k.now())
		}
		m.show(all)
	case *actor.Restarting: // it crashed, and the next one knows of nobody
		k.close()
	case *actor.Stopping:
		k.close()
	}
}

// close sends away whoever waits: the calls were never made, and whoever waits
// without a lease comes back with one, to the gatekeeper after this one.
func (k *gatekeeper) close() {
	for _, d := range k.doors {
		d.disarm()
		for _, m := range d.asks {
			if m.begin != nil {
				m.refuse(0, gate.Neutral)
			} else {
				m.admit()
			}
		}
		clear(d.asks)
	}
}

// ask asks the gate. Whoever asks does so for one thing at a time.
func (k *gatekeeper) ask(c actor.Context, m ask) {
	who := m.who()
	if at, ok := k.asks[who]; ok && (at != m.door || k.doors[at].asks[who].refuse != nil) {
		k.leave(c, who)
	}
	d := k.open(c, m.door)
	d.asks[who] = m
	k.asks[who] = m.door
	k.step(c, m.door, gate.Asked{At: k.now(), Who: who, Call: m.call, Run: m.at.Run(), Tokens: m.tokens, Held: m.begin != nil})
}

func (k *gatekeeper) leave(c actor.Context, who string) {
	name, ok := k.asks[who]
	if !ok {
		return
	}
	m := k.doors[name].take(who)
	delete(k.asks, who)
	if m.refuse != nil {
		m.refuse(0, gate.Neutral)
	}
	k.step(c, name, gate.Left{At: k.now(), Who: who})
}

// open finds a door, or makes it.
func (k *gatekeeper) open(c actor.Context, name string) *door {
	d := k.doors[name]
	if d == nil {
		k.seed += 2 // gates need different seeds
		d = &door{gate: gate.New(k.cfg.Gates, k.seed), asks: map[string]ask{}}
		k.doors[name] = d
		k.step(c, name, gate.Shared{At: k.now(), Nodes: k.nodes})
		if requests, tokens := k.cfg.Rates(name); requests > 0 || tokens > 0 {
			k.doors[name] = d
			k.step(c, name, gate.Ruled{At: k.now(), Requests: requests, Tokens: tokens})
		}
		k.doors[name] = d // a gate that knows nothing yet looks like one to forget
	}
	return d
}

func (d *door) take(who string) ask {
	m := d.asks[who]
	delete(d.asks, who)
	return m
}

// heardDoorsMax bounds the doors that a node keeps for what others say: the names
// are theirs, and a door may never be used here. A door that is not kept hears its
// first refusal for itself.
const heardDoorsMax = 1024

// step lets a gate decide, and does what it says.
func (k *gatekeeper) step(c actor.Context, name string, e gate.Event) {
	d := k.doors[name]
	if d == nil {
		if _, told := e.(gate.Heard); !told || len(k.doors) >= heardDoorsMax {
			return // of a gate that has nothing to remember, or may be nobody's
		}
		d = k.open(c, name)
	}
	next, effects := d.gate.Step(e)
	d.gate = next
	for _, fx := range effects {
		switch fx := fx.(type) {
		case gate.Admit:
			delete(k.asks, fx.Who)
			k.admit(c, name, d.take(fx.Who))
		case gate.Refuse:
			delete(k.asks, fx.Who)
			d.take(fx.Who).refuse(fx.AfterMS, fx.Why)
		case gate.Tell:
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

// arm has the gate looked at again when time alone will have changed something.
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

// told is what an attempt tells about its provider. A refusal of this one
// request is an answer like another.
func told(reply model.Reply, err error) verdict {
	v := verdict{as: gate.OK}
	if reply.UsageKnown {
		v.used = reply.Usage.Total()
	}
	if err == nil {
		return v
	}
	var known *model.Error
	if !errors.As(err, &known) {
		v.as = gate.Neutral
		return v
	}
	v.afterMS = known.RetryAfter.Milliseconds()
	switch {
	case known.Class == model.RateLimit, known.Class == model.Overload && known.Unbilled: // turned away, and nothing was done
		v.as = gate.Limited
	case known.Class == model.Overload:
		v.as = gate.Overloaded
	case known.Class == model.Network:
		v.as = gate.Failed
	case known.Class == model.Aborted, known.Status == 0:
		v.as = gate.Neutral
	}
	return v
}

// Hear takes what another node was told by a provider.
func (n *Node) Hear(door string, notice gate.Notice) {
	n.system.Root.Send(n.keeper, heard{door, notice})
}

// Share says how many nodes share what keys allow.
func (n *Node) Share(nodes int) { n.system.Root.Send(n.keeper, shared{nodes}) }

// Gates shows the gates that know something, by the name of their door. show is
// called from another goroutine and must not block; it is not called when the
// node has stopped.
func (n *Node) Gates(show func(map[string]gate.Status)) {
	n.system.Root.Send(n.keeper, showGates{show})
}

// orDefaults are what a node without others does about gates.
func orDefaults(cfg Config) (door func(string) string, rates func(string) (int64, int64), told func(string, gate.Notice)) {
	door, rates, told = cfg.Gate, cfg.Rates, cfg.Told
	if door == nil {
		door = func(route string) string { return route }
	}
	if rates == nil {
		rates = func(string) (int64, int64) { return 0, 0 }
	}
	if told == nil {
		told = func(string, gate.Notice) {}
	}
	return door, rates, told
}
