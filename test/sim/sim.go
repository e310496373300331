package sim

import (
	"fmt"
	"runtime/debug"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Options of a run.
type Options struct {
	Faults *Fault // instead of the seed's own choice
	Trace  bool   // keep the script
	Record bool   // keep the facts that were stepped
}

// Log is the facts that an agent's machine stepped, in order.
type Log struct {
	Agent  spec.ID
	Facts  []activation.Fact
	Rotten bool // bits of it were changed: it contains what no actor wrote
}

// Mailbox is the log of an actor at the end of a run.
type Mailbox struct {
	At      mailbox.Address
	Entries []mailbox.Message
}

// Result is the outcome of a seed.
type Result struct {
	Seed   int64
	Steps  int
	Agents int
	Faults Fault
	Err    error // the invariant that was broken
	Reach  Reach
	Script []string // with Options.Trace
	Logs   []Log    // with Options.Record

	Mailboxes []Mailbox // with Options.Record
}

// Bounds of a run.
const (
	endStepsMax = 20_000 // steps within which a run ends once faults have stopped
	tickMSMax   = 25     // how far the clock goes in one step
)

// sim is one run of one seed. It has no goroutine and no clock.
type sim struct {
	dice
	plan
	seed   int64
	now    int64
	step   int
	quiet  bool // faults have stopped
	actors []*actor
	byAddr map[mailbox.Address]*actor
	forged map[mailbox.Address]bool // garbage speaks in these names: no log can account for it
	super  *actor

	flights []*flight
	ghosts  []ghost
	runs    []*run
	gates   gates
	acts    []action
	nonces  int
	request int
	cancels int
	spoken  int
	leases  uint64
	tracing bool
	records bool
	script  []string
	reach   Reach
	ledger  ledger
}

// actor is one address: its log, the shells that drive it, and the shadow that
// reads the log as it grows.
type actor struct {
	addr   mailbox.Address
	id     spec.ID
	log    []mailbox.Message
	shells []*shell
	lease  uint64
	starts uint64
	born   int64
	slow   int64 // until then no node starts a shell
	shadow shadow
	hurt   bool // its log was damaged, or garbage was forged in its name: many invariants no longer hold
	closed bool
	spoken bool // … and a message was sent to it since
}

// flight is an append that has not been acknowledged.
type flight struct {
	from     *shell
	to       mailbox.Address
	data     []byte
	name     string
	landed   int
	place    uint64 // where it landed last
	acked    bool
	claim    bool // one of the four is set, and says what it is
	own      *activation.Own
	messages []activation.OutboxMessage
	answer   *activation.OutboxMessage
}

// ghost is a copy of an append that lands whenever it likes.
type ghost struct {
	to   mailbox.Address
	data []byte
	name string
}

// violation is a broken invariant, on its way out of the simulator.
type violation struct{ text string }

func (s *sim) fail(format string, args ...any) {
	panic(violation{fmt.Sprintf(format, args...)})
}

func (s *sim) note(format string, args ...any) {
	if s.tracing {
		s.script = append(s.script, fmt.Sprintf("%4d %6d ", s.step, s.now)+fmt.Sprintf(format, args...))
	}
}

// Run plays one seed to its end.
func Run(seed int64, o Options) (res Result) {
	s := &sim{dice: roll(seed), seed: seed, byAddr: map[mailbox.Address]*actor{}, forged: map[mailbox.Address]bool{},
		tracing: o.Trace, records: o.Record}
	s.plan = newPlan(s.dice, o.Faults)
	s.ledger, s.gates = newLedger(), newGates()
	defer func() {
		r := recover()
		if v, ok := r.(violation); ok {
			res.Err = fmt.Errorf("seed %d, step %d: %s", seed, s.step, v.text)
		} else if r != nil {
			res.Err = fmt.Errorf("seed %d, step %d: panic: %v\n%s", seed, s.step, r, debug.Stack())
		}
		res.Seed, res.Steps, res.Agents, res.Faults = seed, s.step, len(s.actors)-1, s.faults
		res.Reach, res.Script = s.reach, s.script
		for _, a := range s.actors {
			if s.records {
				res.Mailboxes = append(res.Mailboxes, Mailbox{a.addr, a.log})
			}
			if a.shadow.agent != nil && s.records {
				res.Logs = append(res.Logs, Log{a.id, a.shadow.facts, a.shadow.rotten})
			}
		}
	}()
	s.begin()
	for !s.over() {
		s.step++
		switch {
		case !s.quiet && s.step > s.faultSteps:
			s.calm()
		case s.step > s.faultSteps+endStepsMax:
			s.fail("the run does not end: %s", s.describe())
		}
		s.now += int64(s.IntN(tickMSMax))
		if !s.quiet && s.permille(s.rate) {
			s.misfortune()
			continue
		}
		s.progress()
	}
	s.final()
	return res
}

// begin opens the run, as a client does.
func (s *sim) begin() {
	s.now = 1000
	s.super = s.actor(mailbox.At(runName, mailbox.Super))
	if s.on(Cancel) && s.permille(5) {
		s.cancel() // before Opened
	}
	s.command(s.super, "opened", s.opened)
	if s.on(Ghost) && s.percent(20) {
		s.request--
		s.command(s.super, "opened", s.opened)
	}
}

// calm ends all faults: from here on the run has to end by itself.
func (s *sim) calm() {
	s.quiet = true
	s.note("calm: no fault happens from here on")
	for _, a := range s.actors {
		a.slow = 0
		for _, sh := range a.shells {
			if sh.frozen {
				s.thaw(sh)
			}
		}
	}
}

// over reports whether the run is over and every log is closed.
func (s *sim) over() bool {
	for _, a := range s.actors {
		if !a.closed {
			return false
		}
	}
	return len(s.actors) > 0
}

// actor finds or makes an address.
func (s *sim) actor(at mailbox.Address) *actor {
	a := s.byAddr[at]
	if a == nil {
		a = &actor{addr: at, id: spec.ID(at.Agent()), born: s.now, hurt: s.forged[at]}
		if s.on(Slow) && !s.quiet && s.percent(20) {
			a.slow = s.now + int64(s.between(1000, 100_000))
		}
		a.shadow.reset(s, a)
		s.byAddr[at] = a
		s.actors = append(s.actors, a)
	}
	return a
}

// append puts an entry into a log: this is the one way in.
func (s *sim) append(to mailbox.Address, data []byte, name string) {
	a := s.actor(to)
	at := s.now
	if s.on(Clock) && s.percent(10) {
		at -= int64(s.IntN(50))
	}
	a.log = append(a.log, mailbox.Message{To: to, Place: a.head() + 1, At: at, Data: data})
	s.note("  log %s #%d: %s", to.Agent(), len(a.log), name)
	a.shadow.feed()
	a.spoken = a.spoken || a.closed && activation.Reopens(a.addr, data)
}

// head is the place of the newest entry.
func (a *actor) head() uint64 {
	if len(a.log) == 0 {
		return 0
	}
	return a.log[len(a.log)-1].Place
}

// between is the log after a place, up to another.
func (a *actor) between(after, through uint64) []mailbox.Message {
	var part []mailbox.Message
	for _, m := range a.log {
		if m.Place > after && m.Place <= through {
			part = append(part, m)
		}
	}
	return part
}

// command appends the command of a client, which has its acknowledgement already.
func (s *sim) command(a *actor, kind string, body any) {
	raw, err := mailbox.Marshal(body)
	if err != nil {
		s.fail("a command does not encode: %v", err)
	}
	s.request++
	e := mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: fmt.Sprintf("req%d", s.request), Kind: kind, Body: raw}}}
	data := s.encode(e)
	s.append(a.addr, data, "command "+kind)
	if s.on(Ghost) && !s.quiet && s.percent(10) {
		s.ghosts = append(s.ghosts, ghost{a.addr, data, "command " + kind})
	}
}

func (s *sim) encode(e mailbox.Entry) []byte {
	data, err := mailbox.Encode(e)
	if err != nil {
		s.fail("an entry does not encode: %v", err)
	}
	return data
}

func (s *sim) describe() string {
	text := ""
	if s.super != nil {
		st := s.super.shadow.super.State
		text = fmt.Sprintf(" run %s, live %d, waiting %d;", st.Phase, st.Live, st.Waiting())
		st.Members(func(m supervisor.Member) {
			if !m.Done {
				text += fmt.Sprintf(" %s is not done;", m.ID)
			}
		})
	}
	for _, a := range s.actors {
		text += fmt.Sprintf(" %s(%d entries, closed %v", a.addr.Agent(), len(a.log), a.closed)
		if st := a.shadow.agent; st != nil {
			text += fmt.Sprintf(", %s", st.State.Phase)
		}
		for _, sh := range a.shells {
			text += fmt.Sprintf(", shell %s at %d %s", sh.start, sh.reader().N, sh.reader().Phase)
		}
		text += ")"
	}
	return text
}
