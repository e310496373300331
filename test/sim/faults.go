package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// misfortunes are the faults that strike between two steps. Those of appends
// (LostAck, Ghost, Failing) strike where appends land.
var misfortunes = [...]struct {
	kind   Fault
	strike func(*sim)
}{
	{Crash, (*sim).crash},
	{Panic, (*sim).panics},
	{TwoHolders, (*sim).second},
	{Zombie, (*sim).freeze},
	{Bucket, (*sim).bucket},
	{Cancel, (*sim).cancel},
	{Truncate, (*sim).truncate},
	{Rot, (*sim).rot},
	{Garbage, (*sim).garbage},
	{Steer, (*sim).steer},
	{Clock, (*sim).early},
	{Veto, (*sim).repolicy},
	{Limits, (*sim).relimit},
	{Slow, (*sim).wait},
	{HandOver, (*sim).handOver},
	{Refusals, (*sim).refuseAll},
	{Head, (*sim).loseHead},
	{RunTail, (*sim).loseRunTail},
}

// misfortune strikes with one of the kinds that are on.
func (s *sim) misfortune() {
	n := s.IntN(len(misfortunes))
	for range misfortunes {
		m := misfortunes[n]
		if s.on(m.kind) {
			m.strike(s)
			return
		}
		n = (n + 1) % len(misfortunes)
	}
}

// someone picks a shell that is not frozen, or nil.
func (s *sim) someone() *shell {
	a := s.actors[s.IntN(len(s.actors))]
	if len(a.shells) == 0 {
		return nil
	}
	sh := a.shells[s.IntN(len(a.shells))]
	if sh.frozen {
		return nil
	}
	return sh
}

func (s *sim) crash() {
	sh := s.someone()
	if sh == nil {
		return
	}
	if s.percent(10) { // the whole machine
		s.note("all shells crash")
		for _, a := range s.actors {
			for len(a.shells) > 0 {
				s.kill(a.shells[0])
			}
		}
		s.gates = gates{storms: s.gates.storms, all: newGates().all, closed: newGates().closed, passed: newGates().passed}
		return
	}
	s.note("crash %s", sh.start)
	s.kill(sh)
}

func (s *sim) panics() {
	sh := s.someone()
	if sh == nil || !sh.active() || sh.lease != sh.actor.lease {
		return
	}
	s.note("panic %s", sh.start)
	a := sh.actor
	s.kill(sh)
	s.reach.hit(PanicRestart)
	s.restart(a)
}

func (s *sim) second() {
	sh := s.someone()
	if sh == nil || sh.actor.closed || len(sh.actor.shells) >= shellsMax {
		return
	}
	s.note("second holder of %s", sh.actor.id)
	s.takeover(sh.actor)
}

// shellsMax bounds the shells of one actor that live at once.
const shellsMax = 4

func (s *sim) freeze() {
	sh := s.someone()
	if sh != nil && sh.lost {
		s.regain(sh)
		return
	}
	if sh == nil || len(sh.actor.shells) >= shellsMax {
		return
	}
	s.note("freeze %s", sh.start)
	sh.frozen = true
}

// thaw makes a frozen shell continue. If its lease has run out meanwhile, the shell notices
// before it affects the world, unless its fence fails.
func (s *sim) thaw(sh *shell) {
	sh.frozen = false
	s.note("thaw %s", sh.start)
	if sh.lease != sh.actor.lease && !s.on(Unfenced) {
		sh.lost = true // it begins nothing
		if s.on(Zombie) && s.percent(regainOdds) {
			s.regain(sh)
		}
	}
}

// bucket makes the lease bucket anew: its revisions start again.
func (s *sim) bucket() {
	s.note("the lease bucket is made anew")
	s.leases = uint64(s.IntN(2))
}

// cancel cancels the run, or one agent, from outside.
func (s *sim) cancel() {
	if s.cancels++; s.cancels > cancelsMax {
		return
	}
	f := agent.Canceled{Why: "enough", Now: s.percent(50)}
	a := s.actors[s.IntN(len(s.actors))]
	who := s.delegating()
	switch {
	case who != "" && s.percent(35): // while its Delegate is under way
		f.Of = who
		s.command(s.super, "canceled", f)
	case who != "" && s.percent(50): // or above it, past the supervisor
		s.command(s.actor(mailbox.At(runName, string(spec.Root))), "canceled", f)
	case s.percent(5): // a child that may not be born yet
		s.command(s.actor(mailbox.At(runName, "root-1-0")), "canceled", f)
	case s.percent(50) || a == s.super:
		s.command(s.super, "canceled", f)
	case s.percent(70):
		f.Of = a.id
		s.command(s.super, "canceled", f)
	default:
		s.command(a, "canceled", f)
	}
}

// delegating is an agent below the root whose Delegate is on its way, if any.
func (s *sim) delegating() spec.ID {
	for _, f := range s.flights {
		if f.messages != nil && f.landed == 0 && f.from.actor.id != spec.Root && strings.Contains(f.name, " delegate(") {
			return f.from.actor.id
		}
	}
	return ""
}

// cancelsMax leaves some runs that end by themselves.
const cancelsMax = 3

func (s *sim) steer() {
	a := s.actors[s.IntN(len(s.actors))]
	if a != s.super {
		s.command(a, "steered", agent.Steered{Text: fmt.Sprintf("mind %d", s.step)})
	}
}

// early fires a timer before it is due: the node's clock runs ahead.
func (s *sim) early() {
	if s.softMS > 0 && slices.ContainsFunc(s.actors, (*actor).idles) && s.percent(30) {
		s.now += s.softMS // the time is over of who only waits for children
		return
	}
	sh := s.someone()
	if sh == nil || !sh.active() || !sh.came || len(sh.timers) == 0 {
		return
	}
	if i := s.IntN(len(sh.timers)); sh.timers[i].fact == nil {
		s.fire(sh, i)
	}
}

func (s *sim) repolicy() {
	s.command(s.super, "policy_set", supervisor.PolicySet{Policy: policy(s.dice)})
}

// relimit changes the limits of the live run: up, or down to what is committed.
func (s *sim) relimit() {
	st := s.super.shadow.super.State
	l := st.Run.Limits
	if st.Phase == "" {
		return
	}
	set := supervisor.LimitSet{}
	switch s.IntN(6) {
	case 5:
		set.Freeze = true
	case 0:
		l.Tokens = max(1, st.Pool.Spent.Tokens+st.Pool.Held.Tokens)
	case 1:
		l.Tokens = max(1, st.Pool.Spent.Tokens+st.Pool.Held.Tokens+st.Pool.Kept.Tokens)
	case 2:
		l.Tokens += int64(s.between(500, 20_000))
	case 3:
		l.Depth = s.between(1, 3)
	default:
		l.Children, l.Agents = s.between(1, 3), s.between(2, 6)
	}
	set.Limits = l
	s.command(s.super, "limit_set", set)
}

// wait lets a long time pass.
func (s *sim) wait() {
	ms := int64(s.between(1000, 61_000))
	s.now += ms
	s.note("%d ms pass", ms)
}

// garbage writes what no actor of the run wrote.
func (s *sim) garbage() {
	a := s.actors[s.IntN(len(s.actors))]
	if a.closed && s.percent(80) {
		return
	}
	stranger := mailbox.At(runName, "stranger")
	if a != s.super && s.percent(50) {
		stranger = mailbox.At(runName, "root-9-9")
	}
	body, _ := mailbox.Marshal(map[string]any{"l": 1, "c": "1-0", "a": 1, "t": "forged", "i": "root-1-0"})
	kind := oneOf(s.dice, "granted", "returned", "replied", "started", "reserve", "delegate", "finish", "submitted", "canceled",
		"opened", "back", "closed", "resumed", "messaged", "send", "nonsense")
	e := mailbox.Entry{Form: mailbox.Form, From: stranger, Items: []mailbox.Item{{N: uint64(s.IntN(90)), I: 0, Kind: kind, Body: body}}}
	switch s.IntN(6) {
	case 0: // bytes
		data := make([]byte, s.between(0, 40))
		for i := range data {
			data[i] = byte(s.IntN(256))
		}
		s.append(a.addr, data, "garbage bytes")
		return
	case 1: // another run
		e.From = "02OTHER.super"
	case 2: // from itself, of no activation
		e.From, e.Items[0].N = a.addr, 0
		e.Items[0].Kind = oneOf(s.dice, "replied", "started", "checkpoint", "closed", "woke", "granted")
	case 3: // a command without an id, or of an unknown kind
		e.From, e.Items[0].N = "", 0
		if s.percent(50) && kind != "canceled" && kind != "opened" {
			e.Items[0].ID = fmt.Sprintf("forged%d", s.step)
		}
	}
	if e.From == stranger {
		s.forged[stranger] = true
	}
	s.append(a.addr, s.encode(e), "garbage "+string(e.From)+" "+kind)
}

// truncate removes the tail of an agent's log while no shell holds it. Half
// of the time the next claim is the first entry appended after that: where other
// entries fill the gap first, only a lease reveals that the log lost entries.
func (s *sim) truncate() {
	a := s.actors[s.IntN(len(s.actors))]
	if a == s.super || a.closed || a.hurt || len(a.log) < 2 {
		return
	}
	for len(a.shells) > 0 {
		s.kill(a.shells[0])
	}
	keep := max(1, len(a.log)-s.between(1, 6))
	if at := started(a.log); len(at) > 0 && s.percent(80) {
		keep = at[s.IntN(len(at))] // before a side effect, which its log then knows nothing of
	}
	s.spoil(a, keep)
	s.note("truncate %s to %d entries", a.id, keep)
	a.log = a.log[:keep:keep]
	a.shadow.again()
	if s.takeover(a); s.percent(50) {
		for uint64(len(a.log)) < a.shadow.heard {
			s.append(a.addr, s.encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{Kind: "steered"}}}), "filler")
		}
		return
	}
	claim := s.flights[len(s.flights)-1]
	claim.landed, claim.acked = 1, true
	s.append(a.addr, claim.data, claim.name)
	claim.place = a.head()
}

// started are the places of a log before each Started.
func started(log []mailbox.Message) (at []int) {
	for i := 1; i < len(log); i++ {
		if e, err := mailbox.Decode(log[i].Data); err == nil && len(e.Items) > 0 && e.Items[0].Kind == "started" {
			at = append(at, i)
		}
	}
	return at
}

// behead removes the first entries of an agent's log, all of them under an
// ack floor that a current activation has claimed.
func (s *sim) behead(a *actor, covered int) {
	k := s.between(1, covered)
	s.spoil(a, len(a.log)-k)
	a.shadow.rotten = true
	s.note("behead %s of %d entries", a.id, k)
	a.log = append(a.log[:0:0], a.log[k:]...)
	a.shadow.again()
}

// rot changes a byte of an entry that a later claim covers.
func (s *sim) rot() {
	a := s.actors[s.IntN(len(s.actors))]
	covered := a.shadow.covered
	if a.closed || a.hurt || covered == 0 {
		return
	}
	for len(a.shells) > 0 {
		s.kill(a.shells[0])
	}
	if a != s.super && s.percent(30) {
		s.behead(a, int(covered))
		return
	}
	i := s.IntN(int(covered))
	s.spoil(a, len(a.log))
	a.shadow.rotten = true
	data := append([]byte{}, a.log[i].Data...)
	if len(data) == 0 {
		data = []byte{0}
	}
	data[s.IntN(len(data))] ^= byte(1 << s.IntN(8))
	if e, err := mailbox.Decode(a.log[i].Data); err == nil && e.From == a.addr && e.Items[0].Kind == "resumed" {
		// One bit of a Resumed can make it a later claim, and all after it
		// superseded, whose hashes are only logged (PROTOCOL P13).
		data[0] = unreadable
	}
	if newer(data) {
		// An activation steps no entry that looks newer than its own rules; a reader that only
		// watches does (PROTOCOL P10): both notice the damage, through different states.
		data[0] = unreadable
	}
	s.note("rot in entry %d of %s", i+1, a.id)
	a.log = append(a.log[:0:0], a.log...)
	a.log[i].Data = data
	a.shadow.again()
}

// newer reports whether an entry begins a run or an agent under rules that no build knows.
func newer(data []byte) bool {
	e, err := mailbox.Decode(data)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(e.Items, func(i mailbox.Item) bool {
		var o supervisor.Opened
		var t agent.Submitted
		switch i.Kind {
		case o.Kind():
			return mailbox.Unmarshal(i.Body, &o) == nil && o.Rules > spec.Rules
		case t.Kind():
			return mailbox.Unmarshal(i.Body, &t) == nil && t.Task.Rules > spec.Rules
		}
		return false
	})
}

// unreadable is a byte that no entry begins with.
const unreadable = 0xc1

// spoil marks an actor whose log was damaged.
func (s *sim) spoil(a *actor, keep int) {
	a.hurt = true
	a.shadow.cut = uint64(keep)
	a.shadow.heard = s.super.shadow.high[a.addr]
	account := s.super.shadow.super.State.Pool.Account(string(a.id))
	a.shadow.granted = max(account.Open, account.Closed)
	a.shadow.done = a.shadow.Ended()
}
