package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// allowanceRecord is what the judge knows of an allowance: what was granted, and what the attempts under
// it have cost so far, each at least as the provider counted it.
type allowanceRecord struct {
	grant int
	room  budget.Amount
	cost  map[int]budget.Amount // by reservation
}

// noteAllowance notes the allowance that comes with a grant, and checks that it may be given.
func (j *budgetJudge) noteAllowance(after *supervisor.State, key reservationKey, g agent.Granted) {
	a := g.Allowance
	if a == nil {
		return
	}
	account := after.Pool.Account(string(key.who))
	switch {
	case account.AheadOf != key.reservation || account.Ahead != a.Room || account.Kept != a.Kept:
		j.fail(allowancesAreCovered, "%s gets the allowance %+v with reservation %d, and %+v of %d is held, %+v kept", key.who, *a, key.reservation, account.Ahead, account.AheadOf, account.Kept)
	case after.Waiting() > 0:
		j.fail(allowancesAreCovered, "%s gets an allowance while %d wait for budget", key.who, after.Waiting())
	case g.Closing || after.Frozen || hasTurnRule(after) || !after.Pool.Overrun.Zero():
		j.fail(allowancesAreCovered, "%s gets an allowance (closing %v, frozen %v, a rule for turns %v, overrun %+v)", key.who, g.Closing, after.Frozen, hasTurnRule(after), after.Pool.Overrun)
	}
	j.allowances[key.who] = append(j.allowances[key.who], &allowanceRecord{key.reservation, a.Room, map[int]budget.Amount{}})
	j.reach.hit(placeAllowanceGranted)
}

// allowanceOf returns the allowance under which a reservation that was not granted may have begun: the
// newest one granted before it. A superseded activation may still use an older one than the newest. A supervisor
// whose log has lost its tail grants an old one again.
func (j *budgetJudge) allowanceOf(key reservationKey) *allowanceRecord {
	var found *allowanceRecord
	for _, a := range j.allowances[key.who] {
		if a.grant < key.reservation && (found == nil || a.grant >= found.grant) {
			found = a
		}
	}
	return found
}

// checkAhead checks an attempt that the agent has begun under an allowance: the allowance covers it after
// all that the attempts before it have cost, and the pool still holds it.
func (j *budgetJudge) checkAhead(sh *shell, key reservationKey, most budget.Amount) {
	a := j.allowanceOf(key)
	if a == nil {
		j.fail(allowancesAreCovered, "%s: a model call under reservation %d, which nobody granted", key.who, key.reservation)
		return
	}
	if n := key.reservation - a.grant; n > agent.GrantsAheadMax {
		j.fail(allowancesAreCovered, "%s: attempt %d under the allowance of reservation %d", key.who, n, a.grant)
	}
	left := a.room
	for reservation, cost := range a.cost {
		if reservation < key.reservation {
			left = left.Minus(cost)
		}
	}
	if over := most.Over(left); over.Tokens > 0 || over.Nano > 0 {
		j.fail(allowancesAreCovered, "%s: reservation %d may cost %+v, and %+v is left of the allowance", key.who, key.reservation, most, left)
	}
	a.cost[key.reservation] = most
	j.reach.hit(placeAttemptAhead)
	if st := sh.actor.shadow.agent.State; st.Activation != sh.start || j.population.super.damaged {
		return
	}
	account := j.population.super.shadow.super.State.Pool.Account(string(key.who))
	held := account.Ahead
	if account.Open == key.reservation { // the allowance was recalled, and this attempt has become an ordinary one
		held = account.Held
	}
	if over := most.Over(held); over.Tokens > 0 || over.Nano > 0 {
		j.fail(allowancesAreCovered, "%s: reservation %d may cost %+v, and the pool holds %+v", key.who, key.reservation, most, held)
	}
}

// noteCost notes what an attempt under an allowance has really cost, in tokens.
func (j *budgetJudge) noteCost(key reservationKey, tokens int64) {
	if _, granted := j.grants[key]; granted {
		return
	}
	if a := j.allowanceOf(key); a != nil {
		a.cost[key.reservation] = budget.Amount{Tokens: tokens}
	}
}

// noteReturn checks the return of an allowance.
func (j *budgetJudge) noteReturn(before, after *supervisor.State, from spec.ID, e agent.ReturnAllowance) {
	j.reach.hit(placeAllowanceReturned)
	if e.Open {
		j.reach.hit(placeAttemptKept)
	}
	if e.Open && e.Taken.Zero() {
		j.fail(allowancesAreCovered, "%s returns its allowance, and nothing for reservation %d, which is open", from, e.Reservation)
	}
	kept := after.Pool.Account(string(from)).Kept
	if before.Pool.Account(string(from)).AheadOf == e.Grant && e.Keep.Tokens > kept.Tokens && after.Cancel == nil && !j.population.anyDamaged() {
		j.fail(allowancesAreCovered, "%s returns its allowance and needs %+v for its closing turn, and %+v are kept", from, e.Keep, kept)
	}
}

// checkFinish checks that an agent that reports its end has settled all that it began: none of its
// allowance is charged.
func (j *budgetJudge) checkFinish(before, after *supervisor.State, from spec.ID) {
	if was, is := before.Pool.Unknown, after.Pool.Unknown; was != is && !j.population.anyDamaged() {
		j.fail(poolAddsUp, "%s ends, and %+v of what it held are spent without a reply", from, is.Minus(was))
	}
}

// checkRecalls checks that the supervisor has recalled every allowance that it would not grant now. It recalls more
// at once than any run of the simulator has.
func (j *budgetJudge) checkRecalls(after *supervisor.State, f activation.Fact) {
	if after.Cancel != nil || after.Phase == supervisor.Over || j.population.anyDamaged() {
		return
	}
	p := after.Pool
	free := p.Limit.Room(p.Spent.Plus(p.Held).Plus(p.Kept))
	if p.Carved.Tokens <= free.Tokens {
		free.Tokens -= p.Carved.Tokens
	}
	if p.Carved.Nano <= free.Nano {
		free.Nano -= p.Carved.Nano
	}
	ample := 2*p.Ahead.Tokens <= free.Tokens && 2*p.Ahead.Nano <= free.Nano && 2*p.Ahead.Calls <= free.Calls
	if after.Waiting() == 0 && !after.Frozen && p.Overrun.Zero() && !hasTurnRule(after) && ample && !changesLimits(j.population, f) {
		return
	}
	after.Members(func(m supervisor.Member) {
		key := reservationKey{m.ID, p.Account(string(m.ID)).AheadOf}
		if key.reservation != 0 && !j.recalled[key] {
			j.fail(allowancesAreCovered, "%s keeps the allowance of reservation %d (%d wait, frozen %v, overrun %+v, a rule for turns %v, of %+v all allowances hold %+v)", m.ID,
				key.reservation, after.Waiting(), after.Frozen, p.Overrun, hasTurnRule(after), free, p.Ahead)
		}
	})
}

// changesLimits reports whether a fact changes more of the limits than the time.
func changesLimits(p *population, f activation.Fact) bool {
	if f.Kind == (supervisor.SubtreeLimitSet{}).Kind() {
		return true
	}
	if f.Kind != (supervisor.LimitSet{}).Kind() {
		return false
	}
	e := decodeFact[supervisor.LimitSet](p, f)
	return !e.Patch || e.Freeze || e.Limits != (spec.RunLimits{})
}

// hasTurnRule reports whether a rule of the policy may veto a turn.
func hasTurnRule(s *supervisor.State) bool {
	return slices.ContainsFunc(s.Run.Policy.Rules, func(r supervisor.Rule) bool { return r.On == "turn" })
}

// noteRecall notes that an allowance is recalled.
func (j *budgetJudge) noteRecall(t activation.OutboxMessage) {
	var f agent.AllowanceRecalled
	if err := mailbox.Unmarshal(t.Body, &f); err != nil {
		j.fail(factsAreReadable, "allowance_recalled: %v", err)
	}
	j.recalled[reservationKey{spec.ID(t.To.Agent()), f.Grant}] = true
	j.reach.hit(placeAllowanceRecalled)
}

// checkRecalled checks that an agent answers the recall of the allowance that it holds.
func (j *agentJudge) checkRecalled(before *agent.State, f activation.Fact, out activation.Stepped) {
	e := decodeFact[agent.AllowanceRecalled](j.population, f)
	answered := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool { return t.Kind == (agent.ReturnAllowance{}).Kind() })
	if holds := before.Allowance.Grant != 0 && before.Allowance.Grant == e.Grant && before.Phase != agent.Done; holds != answered {
		j.fail(allowancesAreCovered, "%s holds the allowance of reservation %d, that of %d is recalled, answered: %v", j.actor.id, before.Allowance.Grant, e.Grant, answered)
	}
}
