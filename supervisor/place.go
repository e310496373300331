package supervisor

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// DefaultPool is the node pool of all supervisors, and of agents that no definition places.
const DefaultPool = "default"

// PoolFor is the node pool in which an agent of a definition lives; "" is DefaultPool. A
// pool without a node answers nothing: messages to it wait, and a child that sends no
// first message in time is given up, with the pool in the reason.
func (o Opened) PoolFor(def Definition) string {
	pool := cmp.Or(def.NodePool, o.NodePool)
	if pool == DefaultPool {
		return ""
	}
	return pool
}

// RootPlace is the node pool in which the root lives.
func (o Opened) RootPlace() string {
	def, _ := o.findDefinition(o.Root)
	return o.PoolFor(def)
}

// FirstMessageMS is how long a member may take to send its first message.
const FirstMessageMS = 60_000

const firstMessageTimer = "first_message/"

// markFirstMessage records a member's first message.
func (s State) markFirstMessage(m Member, fx []Effect) (State, []Effect) {
	if m.Seen {
		return s, fx
	}
	m.Seen = true
	return s.put(m), append(fx, Disarm{Timer: firstMessageTimer + string(m.ID)})
}

// Unseen reports whether a timer belongs to a member that has sent nothing yet,
// and in which pool that member lives.
func (r roster) Unseen(timer string) (pool string, ok bool) {
	id, isTimer := strings.CutPrefix(timer, firstMessageTimer)
	m, known := r.Member(spec.ID(id))
	return cmp.Or(m.NodePool, DefaultPool), isTimer && known && !m.Seen && !m.Done
}

// handleTimer handles a timer. A member that has sent nothing is given up: its parent
// must not wait forever.
func handleTimer(s State, f agent.Woke) (State, []Effect) {
	switch f.Timer {
	case askTimer:
		return wokeToAsk(s)
	case parkTimer:
		return handleParkTimer(s)
	}
	id, ok := strings.CutPrefix(f.Timer, firstMessageTimer)
	m, known := s.Member(spec.ID(id))
	if !ok || !known || m.Seen || m.Done {
		return s, nil
	}
	if s.Now < m.FirstMessageDue { // the stamp of the log counts, not the clock of a node
		return s, []Effect{Arm{Timer: f.Timer, Due: m.FirstMessageDue}}
	}
	detail := "no sign of life"
	if m.NodePool != "" {
		detail += fmt.Sprintf(" from pool %s: is a node of it there?", m.NodePool)
	}
	next, fx := giveUpMember(s, m, spec.Outcome{Reason: spec.Timeout, Partial: true, Detail: detail}, "")
	// If this log lost its tail, the member reads the question alone: see agent/status.go.
	return next, append([]Effect{askStatus(m, s.Activation)}, fx...)
}
