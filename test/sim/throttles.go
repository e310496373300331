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

// throttles are the rate limiters of a node, which are the real ones, and the shells that
// wait there. The simulator is one node, whose life ends when all shells crash.
type throttles struct {
	*environment
	store     *logStore
	processes *processes
	executor  *executor
	injector  *injector
	judge     *throttleJudge
	budget    *budgetJudge
	all       map[string]throttle.Throttle // by model
	asks      []*throttleRequest
	storms    map[string]int64 // the provider refuses everybody until then
}

// forgetNode forgets what the node knew. Its providers go on to refuse.
func (th *throttles) forgetNode() {
	th.all, th.asks = map[string]throttle.Throttle{}, nil
	th.judge.resetState()
}

// throttleRequest is a shell that waits at a rate limiter: with a reservation, or for its turn.
type throttleRequest struct {
	shell *shell
	model string
	call  *agent.CallModel
	pause int
	since int64
	step  int
}

// gateLimits are small, so that a run of a few seconds comes to know them.
var gateLimits = throttle.Limits{PauseMax: 20_000, BackoffMin: 200, BackoffMax: 2000, JitterMax: 100, QueueMax: 60, TicketTTL: 500,
	Failures: 3, BreakerMin: 200, BreakerMax: 2000, ForgetAfter: 5000, BurstPeriod: 20_000, NormalTurns: 2, LowTurns: 3}

func requesterName(sh *shell) string { return string(sh.actor.addr) + "!" + sh.start }

// familyOf is what the simulator's throttles treat as a run: every second child of a step of the root, with all agents
// below them. Children of one step call at the same time, so that several agents of a family wait for its turns.
func familyOf(id spec.ID) string {
	parts := strings.SplitN(string(id), "-", 4)
	if len(parts) < 3 {
		return string(id)
	}
	last := parts[2][len(parts[2])-1]
	return parts[0] + "-" + parts[1] + "-" + itoa(int(last-'0')%2)
}

// simPriorities are the priorities of families.
var simPriorities = []throttle.Priority{throttle.PriorityHigh, throttle.PriorityNormal, throttle.PriorityLow}

// priorityOf returns the priority of a family, in the seeds in which families have different ones.
func (th *throttles) priorityOf(family string) throttle.Priority {
	if !th.mixedPriorities {
		return throttle.PriorityNormal
	}
	sum := 0
	for i := range len(family) {
		sum += int(family[i])
	}
	return simPriorities[sum%len(simPriorities)]
}

// requestAdmission asks a throttle for admission; a request with a call holds a reservation already.
func (th *throttles) requestAdmission(a *throttleRequest) {
	th.withdrawRequest(a.shell)
	a.since, a.step = th.now, th.step
	if l := (throttleQueue{a.model, familyOf(a.shell.actor.id)}); !slices.ContainsFunc(th.asks, func(o *throttleRequest) bool {
		return o.model == l.model && familyOf(o.shell.actor.id) == l.family
	}) {
		delete(th.judge.passed, l)
	}
	th.judge.beginWait(a)
	th.asks = append(th.asks, a)
	call := ""
	if a.call != nil {
		call = callName(a.shell, a.call.Reservation)
	}
	th.stepLimiter(a.model, throttle.CallRequested{At: th.now, Who: requesterName(a.shell), Call: call, Run: familyOf(a.shell.actor.id), Priority: th.priorityOf(familyOf(a.shell.actor.id)), Reserved: a.call != nil})
	if a.call != nil && slices.Contains(th.asks, a) && !th.faultsEnded && th.isOn(faultCancel) && th.percent(3*raceOdds) && th.injector.cancels < cancelsMax {
		th.injector.cancels++ // while it waits with its reservation
		th.store.appendCommand(a.shell.actor, "canceled", agent.Canceled{Why: "enough", Now: th.percent(30)})
	}
}

func callName(sh *shell, reservation int) string { return requesterName(sh) + "." + itoa(reservation) }

// withdrawRequest withdraws the request of a shell; a reservation is released.
func (th *throttles) withdrawRequest(sh *shell) {
	if a := th.removeShell(sh); a != nil && a.call != nil {
		th.postThrottled(a, 0)
	}
}

// removeShell withdraws the request of a shell that is gone.
func (th *throttles) removeShell(sh *shell) *throttleRequest {
	i := slices.IndexFunc(th.asks, func(a *throttleRequest) bool { return a.shell == sh })
	if i < 0 {
		return nil
	}
	a := th.asks[i]
	th.dropRequest(a)
	th.stepLimiter(a.model, throttle.CallerLeft{At: th.now, Who: requesterName(sh)})
	return a
}

// reportLost reports to the throttles the requests whose answers no shell will receive.
func (th *throttles) reportLost(lost []*job) {
	for _, r := range lost {
		th.reportAnswer(r, throttle.Neutral, 0)
	}
}

func (th *throttles) dropRequest(a *throttleRequest) {
	th.asks = slices.DeleteFunc(th.asks, func(x *throttleRequest) bool { return x == a })
}

// postThrottled posts that nothing was sent.
func (th *throttles) postThrottled(a *throttleRequest, afterMS int64) {
	th.reach.hit(placeThrottled)
	th.budget.throttled[reservationKey{a.shell.actor.id, a.call.Reservation}] = true
	th.processes.postResult(a.shell, "throttled", activation.ModelKey(a.call.Reservation), agent.Throttled{Reservation: a.call.Reservation, AfterMS: afterMS, Why: "busy"})
}

// stepLimiter makes a throttle decide, and compares the decision with what the judge knows.
func (th *throttles) stepLimiter(name string, e throttle.Event) {
	g, ok := th.all[name]
	if !ok {
		l := gateLimits
		l.InitialWindow = th.window
		g = throttle.New(l, uint64(th.seed))
		g, _ = g.Step(throttle.RatesSet{At: th.now, Rates: throttle.Rates{Requests: th.perMinute}}) // no request waits
	}
	g, effects := g.Step(e)
	th.all[name] = g
	for _, fx := range effects {
		switch fx := fx.(type) {
		case throttle.AdmitCaller:
			th.admitRequest(name, fx)
		case throttle.RejectCaller:
			a := th.findRequest(fx.Who)
			th.traceLine("the gate of %s sends %s away for %d ms", name, a.shell.start, fx.AfterMS)
			if fx.Why == throttle.OverRate {
				th.reach.hit(placeHeldByRate)
			}
			th.dropRequest(a)
			th.postThrottled(a, fx.AfterMS)
		}
	}
	for _, a := range th.asks {
		if a.call != nil && th.now > a.since+gateLimits.QueueMax+tickMSMax && g.Status(th.now).Waiting > 0 && a.model == name {
			th.fail(throttlesAreObeyed, "%s holds a reservation at the gate of %s since %d", a.shell.actor.id, name, a.since)
		}
	}
}

func (th *throttles) findRequest(who_ string) *throttleRequest {
	i := slices.IndexFunc(th.asks, func(a *throttleRequest) bool { return requesterName(a.shell) == who_ })
	if i < 0 {
		th.fail(throttlesAreObeyed, "a gate answers %s, who does not ask", who_)
	}
	return th.asks[i]
}

// admitRequest begins a request, or notifies an agent that it is its turn.
func (th *throttles) admitRequest(name string, fx throttle.AdmitCaller) {
	a := th.findRequest(fx.Who)
	th.dropRequest(a)
	th.traceLine("the gate of %s lets %s in (%v)", name, a.shell.start, fx.Reserved)
	if th.now < th.judge.closed[name] {
		th.fail(throttlesAreObeyed, "%s is let in at the gate of %s, whose provider said to wait until %d", a.shell.actor.id, name, th.judge.closed[name])
	}
	th.judge.checkFairShare(a, fx)
	if a.call != nil {
		th.judge.checkRate(name)
		th.sendAdmitted(a)
		return
	}
	th.reach.hit(placeAdmittedAtGate)
	th.processes.postResult(a.shell, "admitted", itoa(a.pause), agent.Admitted{Pause: a.pause})
}

// sendAdmitted sends a request that a throttle has admitted.
func (th *throttles) sendAdmitted(a *throttleRequest) {
	if a.shell.lost { // the node looks again just before it sends (P27)
		th.postThrottled(a, 0)
		th.stepLimiter(a.model, throttle.CallAnswered{At: th.now, Call: callName(a.shell, a.call.Reservation), Outcome: throttle.Neutral})
		return
	}
	key := reservationKey{a.shell.actor.id, a.call.Reservation}
	if th.budget.throttled[key] && !a.shell.actor.damaged {
		th.fail(reservedFirst, "%s: a request under reservation %d, which came back from the gate", key.who, key.reservation)
	}
	if st := a.shell.state.Agent.State; a.step != th.step && (st.Cancel != nil || st.Phase == agent.Done) {
		th.fail(nothingAfterCancel, "%s: a request is sent after the cancel, or the end, was read", key.who)
	}
	th.executor.sendRequest(a.shell, *a.call)
}

// reportAnswer reports the end of a request to a throttle.
func (th *throttles) reportAnswer(r *job, as throttle.CallOutcome, afterMS int64) {
	name := r.model
	if as == throttle.Limited || as == throttle.Overloaded && afterMS > 0 {
		th.judge.closed[name] = max(th.judge.closed[name], th.now+min(max(afterMS, 0), gateLimits.PauseMax))
	}
	th.stepLimiter(name, throttle.CallAnswered{At: th.now, Call: callName(r.shell, r.reservation), Outcome: as, AfterMS: afterMS, Report: th.reportOf(as)})
}

// reportOf returns what a provider reports about its rates: with a setting, twice as much as the setting allows.
func (th *throttles) reportOf(as throttle.CallOutcome) (r throttle.RateReport) {
	if th.perMinute > 0 && as != throttle.Neutral {
		r.Requests = 2 * th.perMinute
		r.RequestsLeft = r.Requests
	}
	return r
}

// verdictOf translates an answer into a verdict about the provider.
func verdictOf(f *agent.Failed) (as throttle.CallOutcome, afterMS int64) {
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

// startRefusals has a provider refuse everybody for a while.
func (th *throttles) startRefusals() {
	models := slices.Sorted(maps.Keys(th.allModels()))
	name := oneOf(th.dice, th.opened.Model.Name, models[th.IntN(len(models))])
	th.storms[name] = th.now + int64(th.between(100, 30_000))
	th.traceLine("%s refuses everybody until %d", name, th.storms[name])
}

// refusalOf returns the refusal of a provider while it throttles every caller.
func (th *throttles) refusalOf(r *job) *agent.Failed {
	if th.faultsEnded || r.aborted || th.now >= th.storms[r.model] {
		return nil
	}
	th.reach.hit(placeStormed)
	left := th.storms[r.model] - th.now
	f := &agent.Failed{Class: oneOf(th.dice, model.RateLimit, model.RateLimit, model.Overload), Detail: "busy", Unbilled: true}
	f.AfterMS = oneOf(th.dice, left, left, left/3, 0)
	return f
}

// nextDue returns the earliest time at which a throttle must be checked.
func (th *throttles) nextDue() (name string, at int64, ok bool) {
	for _, n := range slices.Sorted(maps.Keys(th.all)) {
		if t, due := th.all[n].NextTick(); due && (!ok || t < at) {
			name, at, ok = n, t, true
		}
	}
	return name, at, ok
}
