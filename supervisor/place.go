package supervisor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent"
)

// DefaultPool is the pool of all supervisors, and of agents that nobody places.
const DefaultPool = "default"

// Place is the pool in which an agent of a definition lives; "" is DefaultPool.
// A pool without a node answers nothing: what is sent there waits, and a child
// that gives no first sign of life in time is given up, with the pool in the reason.
func (o Opened) Place(def Definition) string {
	pool := cmp.Or(def.Pool, o.Pool)
	if pool == DefaultPool {
		return ""
	}
	return pool
}

// RootPlace is where the root lives.
func (o Opened) RootPlace() string {
	def, _ := State{Run: o}.definition(o.Root)
	return o.Place(def)
}

// FirstSignMS is how long a member may take until its first letter.
const FirstSignMS = 60_000

const signTimer = "sign/"

// seen notes a member's first letter.
func (s State) seen(m Member, fx []Effect) (State, []Effect) {
	if m.Seen {
		return s, fx
	}
	m.Seen = true
	return s.put(m), append(fx, Disarm{Timer: signTimer + string(m.ID)})
}

// Unseen reports whether a timer is that of a member that has given no sign of life
// yet, and in which pool it lives.
func (s State) Unseen(timer string) (pool string, ok bool) {
	id, sign := strings.CutPrefix(timer, signTimer)
	m, known := s.Member(agent.ID(id))
	return cmp.Or(m.Pool, DefaultPool), sign && known && !m.Seen && !m.Done
}

// woke takes a timer. A member without any sign of life is given up: its
// parent must not wait for ever.
func woke(s State, f agent.Woke) (State, []Effect) {
	if f.Timer == askTimer {
		return s.wokeToAsk()
	}
	id, ok := strings.CutPrefix(f.Timer, signTimer)
	m, known := s.Member(agent.ID(id))
	if !ok || !known || m.Seen || m.Done {
		return s, nil
	}
	if s.Now < m.Sign { // the stamp of the log counts, not the clock of a node
		return s, []Effect{Arm{Timer: f.Timer, Due: m.Sign}}
	}
	detail := "no sign of life"
	if m.Pool != "" {
		detail += fmt.Sprintf(" from pool %s: is a node of it there?", m.Pool)
	}
	next, fx := giveUp(s, m, agent.Outcome{Reason: agent.Timeout, Partial: true, Detail: detail}, "")
	if s.Run.Rules >= agent.WorkRules { // if this log lost its tail, the member reads the question alone: see agent/status.go
		fx = append([]Effect{s.question(m)}, fx...)
	}
	return next, fx
}
