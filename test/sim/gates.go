package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/model"
)

// gates are the rate limiters of a node: the real gates, the shells that wait
// there, and what the judge knows by itself. The simulator is one node; its life
// ends when all shells crash.
type gates struct {
	all    map[string]throttle.Gate // by model
	asks   []*ask
	closed map[string]int64      // by the provider's own words: nothing is sent before
	storms map[string]int64      // the provider refuses everybody until then
	passed map[lane]map[lane]int // times others were admitted while a request of a lane waits
}

// ask is a shell that waits at a rate limiter: with a reservation, or for its turn.
type ask struct {
	shell *shell
	model string
	call  *agent.CallModel
	pause int
	since int64
	step  int
}

func newGates() gates {
	return gates{all: map[string]throttle.Gate{}, closed: map[string]int64{}, storms: map[string]int64{}, passed: map[lane]map[lane]int{}}
}

// gateLimits are small, so that a run of a few seconds comes to know them.
var gateLimits = throttle.Limits{PauseMax: 20_000, BackoffMin: 200, BackoffMax: 2000, JitterMax: 100, Hold: 60, Ticket: 500,
	Failures: 3, BreakerMin: 200, BreakerMax: 2000, Forget: 5000}

func who(sh *shell) string { return string(sh.actor.addr) + "!" + sh.start }

// family is what the simulator's gates treat as a run: a child of the root, with
// all agents below it.
func family(id spec.ID) string {
	parts := strings.SplitN(string(id), "-", 4)
	return strings.Join(parts[:min(len(parts), 3)], "-")
}

// ask asks a gate for admission; a request with a call holds a reservation already.
func (s *sim) ask(a *ask) {
	s.leaveGate(a.shell)
	a.since, a.step = s.now, s.step
	if l := (lane{a.model, family(a.shell.actor.id)}); !slices.ContainsFunc(s.gates.asks, func(o *ask) bool {
		return o.model == l.model && family(o.shell.actor.id) == l.family
	}) {
		delete(s.gates.passed, l)
	}
	s.gates.asks = append(s.gates.asks, a)
	call := ""
	if a.call != nil {
		call = callName(a.shell, a.call.Lease)
	}
	s.stepGate(a.model, throttle.Asked{At: s.now, Who: who(a.shell), Call: call, Run: family(a.shell.actor.id), Held: a.call != nil})
	if a.call != nil && slices.Contains(s.gates.asks, a) && !s.quiet && s.on(Cancel) && s.percent(3*raceOdds) && s.cancels < cancelsMax {
		s.cancels++ // while it waits with its lease
		s.command(a.shell.actor, "canceled", agent.Canceled{Why: "enough", Now: s.percent(30)})
	}
}

func callName(sh *shell, lease int) string { return who(sh) + "." + itoa(lease) }

// leaveGate withdraws the request of a shell; a reservation is released.
func (s *sim) leaveGate(sh *shell) {
	if a := s.quitGate(sh); a != nil && a.call != nil {
		s.bar(a, 0)
	}
}

// quitGate withdraws the request of a shell that is gone.
func (s *sim) quitGate(sh *shell) *ask {
	i := slices.IndexFunc(s.gates.asks, func(a *ask) bool { return a.shell == sh })
	if i < 0 {
		return nil
	}
	a := s.gates.asks[i]
	s.forget(a)
	s.stepGate(a.model, throttle.Left{At: s.now, Who: who(sh)})
	return a
}

// givenUp reports requests to the gates whose answers no shell will receive.
func (s *sim) givenUp(lost []*run) {
	for _, r := range lost {
		s.answeredAt(r, throttle.Neutral, 0)
	}
}

func (s *sim) forget(a *ask) {
	s.gates.asks = slices.DeleteFunc(s.gates.asks, func(x *ask) bool { return x == a })
}

// bar posts that nothing was sent.
func (s *sim) bar(a *ask, afterMS int64) {
	s.reach.hit(BarredAtGate)
	s.ledger.barred[leaseKey{a.shell.actor.id, a.call.Lease}] = true
	s.done(a.shell, "barred", activation.ModelKey(a.call.Lease), agent.Barred{Lease: a.call.Lease, AfterMS: afterMS, Why: "busy"})
}

// stepGate makes a gate decide, and compares the decision with what the judge knows.
func (s *sim) stepGate(name string, e throttle.Event) {
	g, ok := s.gates.all[name]
	if !ok {
		l := gateLimits
		l.Window = s.window
		g = throttle.New(l, uint64(s.seed))
	}
	g, effects := g.Step(e)
	s.gates.all[name] = g
	for _, fx := range effects {
		switch fx := fx.(type) {
		case throttle.Admit:
			s.admit(name, fx)
		case throttle.Refuse:
			a := s.asking(fx.Who)
			s.note("the gate of %s sends %s away for %d ms", name, a.shell.start, fx.AfterMS)
			s.forget(a)
			s.bar(a, fx.AfterMS)
		}
	}
	for _, a := range s.gates.asks {
		if a.call != nil && s.now > a.since+gateLimits.Hold+tickMSMax && g.Status(s.now).Waiting > 0 && a.model == name {
			s.fail("%s holds a lease at the gate of %s since %d", a.shell.actor.id, name, a.since)
		}
	}
}

func (s *sim) asking(who_ string) *ask {
	i := slices.IndexFunc(s.gates.asks, func(a *ask) bool { return who(a.shell) == who_ })
	if i < 0 {
		s.fail("a gate answers %s, who does not ask", who_)
	}
	return s.gates.asks[i]
}

// admit begins a request, or notifies an agent that it is its turn.
func (s *sim) admit(name string, fx throttle.Admit) {
	a := s.asking(fx.Who)
	s.forget(a)
	s.note("the gate of %s lets %s in (%v)", name, a.shell.start, fx.Held)
	if s.now < s.gates.closed[name] {
		s.fail("%s is let in at the gate of %s, whose provider said to wait until %d", a.shell.actor.id, name, s.gates.closed[name])
	}
	s.watchShare(a, fx)
	if a.call != nil {
		s.sendAsked(a)
		return
	}
	s.reach.hit(AdmittedAtGate)
	s.done(a.shell, "admitted", itoa(a.pause), agent.Admitted{Pause: a.pause})
}

// sendAsked sends a request whose lease was let in.
func (s *sim) sendAsked(a *ask) {
	if a.shell.lost { // the node looks again just before it sends (P27)
		s.bar(a, 0)
		s.stepGate(a.model, throttle.Answered{At: s.now, Call: callName(a.shell, a.call.Lease), As: throttle.Neutral})
		return
	}
	key := leaseKey{a.shell.actor.id, a.call.Lease}
	if s.ledger.barred[key] && !a.shell.actor.hurt {
		s.fail("%s: a request under lease %d, which came back from the gate", key.who, key.lease)
	}
	if st := a.shell.state.Agent.State; a.step != s.step && (st.Cancel != nil || st.Phase == agent.Done) {
		s.fail("%s: a request is sent after the cancel, or the end, was read", key.who)
	}
	s.sendRequest(a.shell, *a.call)
}

// lane is a family that waits for a model.
type lane struct{ model, family string }

// watchShare checks that a gate admits another family at most once while one family waits.
func (s *sim) watchShare(a *ask, fx throttle.Admit) {
	mine := lane{a.model, family(a.shell.actor.id)}
	delete(s.gates.passed, mine)
	if fx.Held && a.since == s.now {
		return // a has returned with a reservation after its turn, or no family waits
	}
	seen := map[lane]bool{mine: true}
	for _, other := range s.gates.asks {
		l := lane{other.model, family(other.shell.actor.id)}
		if l.model != a.model || seen[l] {
			continue
		}
		seen[l] = true
		if s.gates.passed[l] == nil {
			s.gates.passed[l] = map[lane]int{}
		}
		if s.gates.passed[l][mine]++; s.gates.passed[l][mine] > 1 {
			s.fail("%s is let in again at the gate of %s, while %s waits", mine.family, a.model, l.family)
		}
		s.reach.hit(SharedGate)
	}
}

// answeredAt reports the end of a request to a gate.
func (s *sim) answeredAt(r *run, as throttle.Verdict, afterMS int64) {
	name := r.model
	if as == throttle.Limited || as == throttle.Overloaded && afterMS > 0 {
		s.gates.closed[name] = max(s.gates.closed[name], s.now+min(max(afterMS, 0), gateLimits.PauseMax))
	}
	s.stepGate(name, throttle.Answered{At: s.now, Call: callName(r.shell, r.lease), As: as, AfterMS: afterMS})
}

// verdictOf translates an answer into a verdict about the provider.
func verdictOf(f *agent.Failed) (as throttle.Verdict, afterMS int64) {
	if f == nil {
		return throttle.OK, 0
	}
	if f.Class == model.Overload && f.Unbilled {
		return throttle.Limited, f.AfterMS
	}
	switch f.Class {
	case model.RateLimit:
		return throttle.Limited, f.AfterMS
	case model.Overload:
		return throttle.Overloaded, f.AfterMS
	case model.Network:
		return throttle.Failed, 0
	case model.Aborted:
		return throttle.Neutral, 0
	}
	return throttle.OK, 0
}

// refuseAll has a provider refuse everybody for a while.
func (s *sim) refuseAll() {
	models := slices.Sorted(maps.Keys(s.models()))
	name := oneOf(s.dice, s.opened.Model.Name, models[s.IntN(len(models))])
	s.gates.storms[name] = s.now + int64(s.between(100, 30_000))
	s.note("%s refuses everybody until %d", name, s.gates.storms[name])
}

// stormy returns the refusal of a provider while it throttles every caller.
func (s *sim) stormy(r *run) *agent.Failed {
	if s.quiet || r.aborted || s.now >= s.gates.storms[r.model] {
		return nil
	}
	s.reach.hit(Stormed)
	left := s.gates.storms[r.model] - s.now
	f := &agent.Failed{Class: oneOf(s.dice, model.RateLimit, model.RateLimit, model.Overload), Detail: "busy", Unbilled: true}
	f.AfterMS = oneOf(s.dice, left, left, left/3, 0)
	return f
}

// gateDue returns the earliest time at which a gate must be checked.
func (s *sim) gateDue() (name string, at int64, ok bool) {
	for _, n := range slices.Sorted(maps.Keys(s.gates.all)) {
		if t, due := s.gates.all[n].Next(); due && (!ok || t < at) {
			name, at, ok = n, t, true
		}
	}
	return name, at, ok
}
