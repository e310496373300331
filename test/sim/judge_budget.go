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

// budgetJudge keeps its own account of reservations, of what providers count, and of the
// agents that wait for budget.
type budgetJudge struct {
	*environment
	population      *population
	called          map[reservationKey]int           // model calls by reservation
	throttled       map[reservationKey]bool          // reservations that a throttle returned unused
	grants          map[reservationKey]budget.Amount // what the supervisor granted for a reservation
	allowances      map[spec.ID][]*allowanceRecord   // of each agent, in order
	recalled        map[reservationKey]bool          // allowances that were recalled, by their grants
	bills           map[spec.ID]int64                // tokens that the provider counted
	queue           []spec.ID                        // agents that wait for budget, in order
	overCommitted   budget.Amount                    // over a limit that was lowered below what was committed
	overWithClosing budget.Amount                    // the same, with what is reserved for closing turns
	limitsSet       bool
	subtrees        map[spec.ID]subtreeRecord // limits of agents and those below them
	paused          []spec.ID                 // agents that wait for the end of a freeze, in order
	others          supervisor.OthersUse      // what agents that are not in the run have
}

func newBudgetJudge(p *population) *budgetJudge {
	return &budgetJudge{environment: p.environment, population: p, called: map[reservationKey]int{}, throttled: map[reservationKey]bool{},
		grants: map[reservationKey]budget.Amount{}, allowances: map[spec.ID][]*allowanceRecord{}, recalled: map[reservationKey]bool{}, bills: map[spec.ID]int64{}}
}

// chargeUnread charges a call although no shell will receive its answer: the provider counts it anyway.
func (j *budgetJudge) chargeUnread(r *job) {
	j.bills[r.shell.actor.id] += promptTokens(r.request) + int64(j.IntN(int(r.request.MaxOutput)+1))
}

// checkGrant notes the amount of a reservation.
func (j *budgetJudge) checkGrant(before, after *supervisor.State, t activation.OutboxMessage) {
	var g agent.Granted
	if err := mailbox.Unmarshal(t.Body, &g); err != nil {
		j.fail(factsAreReadable, "granted: %v", err)
	}
	id := t.To.Agent()
	account := after.Pool.Account(id)
	key := reservationKey{spec.ID(id), g.Reservation}
	if account.Open != g.Reservation {
		j.fail(grantsAreDue, "%s is granted reservation %d, and %d is open", id, g.Reservation, account.Open)
	}
	if _, twice := j.grants[key]; twice && !j.population.super.damaged && !j.population.anyDamaged() {
		j.fail(grantsAreDue, "%s is granted reservation %d twice", id, g.Reservation)
	}
	if after.Cancel != nil {
		j.fail(grantsAreDue, "%s is granted reservation %d after the cancel", id, g.Reservation)
	}
	if !g.Closing && before.Frozen && after.Frozen {
		j.fail(grantsAreDue, "%s is granted a turn of a frozen budget", id)
	}
	if !g.Closing && !before.Pool.Overrun.Zero() {
		j.fail(grantsAreDue, "%s is granted a turn after an overrun", id)
	}
	if !g.Closing && account.Kept.Tokens < account.Held.Tokens+closingOutput && !j.population.anyDamaged() {
		j.fail(grantsAreDue, "%s is granted a turn, and only %+v are kept for its closing turn", id, account.Kept)
	}
	j.checkThaw(after, key.who)
	j.grants[key] = account.Held
	j.noteAllowance(after, key, g)
}

// checkPool checks that nothing is committed beyond the limit, and that the accounts add up.
func (j *budgetJudge) checkPool(before, after *supervisor.State, f activation.Fact) {
	p := after.Pool
	used := p.Spent.Plus(p.Held).Minus(p.Overrun)
	// What the others had is a record: a log that has lost an earlier one may have admitted agents into that room.
	contradicted := f.Kind == (supervisor.OthersUse{}).Kind() && j.population.anyDamaged()
	if f.Kind == "limit_set" || contradicted {
		j.limitsSet = true
		j.overCommitted = used.Over(budget.Amount(p.Limit))
		j.overWithClosing = used.Plus(p.Kept).Over(budget.Amount(p.Limit))
	}
	room := p.Limit.Room(used)
	over := budget.Amount{Tokens: -room.Tokens, Nano: -room.Nano, Calls: -room.Calls}
	if more := over.Over(j.overCommitted); !more.Zero() {
		j.fail(spendingStaysWithinLimits, "%+v are committed beyond the limit %+v: spent %+v, held %+v", more, p.Limit, p.Spent, p.Held)
	}
	if j.overCommitted.Zero() && !p.Within() {
		j.fail(spendingStaysWithinLimits, "the pool is not within its limit")
	}
	all := p.Limit.Room(used.Plus(p.Kept))
	if more := (budget.Amount{Tokens: -all.Tokens, Nano: -all.Nano}).Over(j.overWithClosing); more.Tokens > 0 || more.Nano > 0 {
		j.fail(spendingStaysWithinLimits, "%+v are kept for closing turns beyond the limit %+v: spent %+v, held %+v, kept %+v", more, p.Limit, p.Spent, p.Held, p.Kept)
	}
	held, kept, spent, ahead, carved := j.others.Held, j.others.Kept, j.others.Spent, j.others.Ahead, j.others.Carved
	live, parked := 0, 0
	below := map[string]budget.Amount{}
	after.Members(func(m supervisor.Member) {
		a := p.Account(string(m.ID))
		held, kept, spent = held.Plus(a.InUse()), kept.Plus(a.Kept), spent.Plus(a.Spent)
		ahead = ahead.Plus(a.Ahead)
		rest := a.Share.Over(a.Spent.Plus(a.InUse()).Plus(a.Kept).Plus(a.Below))
		carved = carved.Plus(rest)
		if a.Sharer != "" {
			below[a.Sharer] = below[a.Sharer].Plus(a.Spent).Plus(a.InUse()).Plus(a.Kept).Plus(a.Below).Plus(rest)
		}
		if m.Parent != "" && !m.Done && a.Share.Zero() && hasShare(after, m.Name) && !j.population.anyDamaged() {
			j.fail(poolAddsUp, "nothing is carved for %s", m.ID)
		}
		if m.Done && !rest.Zero() {
			j.fail(poolAddsUp, "%s has ended, and %+v of its share are held", m.ID, rest)
		}
		if m.Done && (!a.InUse().Zero() || !a.Kept.Zero()) {
			j.fail(poolAddsUp, "%s has ended and holds %+v, keeps %+v", m.ID, a.InUse(), a.Kept)
		}
		if !m.Done {
			live++
		}
		if m.Query != nil {
			parked++
		}
	})
	if held != p.Held || kept != p.Kept || spent != p.Spent {
		j.fail(poolAddsUp, "the accounts hold %+v keep %+v spent %+v, the pool %+v %+v %+v", held, kept, spent, p.Held, p.Kept, p.Spent)
	}
	if carved != p.Carved {
		j.fail(poolAddsUp, "%+v are left of the shares, the pool holds %+v", carved, p.Carved)
	}
	for who, taken := range below {
		if got := p.Account(who).Below; got != taken {
			j.fail(poolAddsUp, "agents below %s have taken %+v, its account says %+v", who, taken, got)
		}
	}
	j.checkShares(p, used)
	if ahead != p.Ahead {
		j.fail(poolAddsUp, "the accounts hold %+v for further attempts, the pool %+v", ahead, p.Ahead)
	}
	if live != after.Live || parked != after.Parked {
		j.fail(poolAddsUp, "%d live and %d parked, counted %d and %d", live, parked, after.Live, after.Parked)
	}
	j.checkForward(before, p, f)
}

// checkForward checks that what is spent stays spent. In a damaged log it may have changed
// what other agents have spent.
func (j *budgetJudge) checkForward(before *supervisor.State, p budget.Pool, f activation.Fact) {
	back := before.Pool.Spent.Tokens > p.Spent.Tokens && !(f.Kind == j.others.Kind() && j.population.super.damaged)
	if back || p.Held.Tokens < 0 || p.Kept.Tokens < 0 {
		j.fail(poolAddsUp, "the pool goes back: %+v", p)
	}
}

// noteOthers notes what agents that are not in the run have. A bit of it may have changed in the log.
func (j *budgetJudge) noteOthers(before *supervisor.State, fact activation.Fact) {
	if fact.Kind != j.others.Kind() || before.Phase == "" || before.Phase == supervisor.Queued {
		return
	}
	f := decodeFact[supervisor.OthersUse](j.population, fact)
	for _, a := range []*budget.Amount{&f.Spent, &f.Held, &f.Ahead, &f.Kept, &f.Carved} {
		a.Tokens, a.Nano, a.Calls = max(0, min(a.Tokens, 1<<52)), max(0, min(a.Nano, 1<<52)), max(0, min(a.Calls, 1<<52))
	}
	j.others = f
	j.reach.hit(placeOthersUse)
}

func hasShare(s *supervisor.State, name string) bool {
	return slices.ContainsFunc(s.Run.Definitions, func(d supervisor.Definition) bool { return d.Name == name && d.Carved })
}

// checkShares checks that no other agent takes the rest of a share, until limits are lowered or a provider bills more
// than was reserved.
func (j *budgetJudge) checkShares(p budget.Pool, used budget.Amount) {
	if j.limitsSet || !p.Overrun.Zero() {
		return
	}
	if room := p.Limit.Room(used.Plus(p.Kept).Plus(p.Carved)); room.Tokens < 0 || room.Nano < 0 {
		j.fail(spendingStaysWithinLimits, "the limit %+v does not cover what is carved, %+v: room %+v", p.Limit, p.Carved, room)
	}
}

// checkOrder checks that agents that wait for budget are answered in order of arrival.
func (j *budgetJudge) checkOrder(t activation.OutboxMessage) {
	id := spec.ID(t.To.Agent())
	switch i := slices.Index(j.queue, id); {
	case i > 0 && !j.population.anyDamaged(): // rot in the log changes the order of arrival
		j.fail(budgetInOrder, "%s is answered before %s, which waits longer", id, j.queue[0])
	case i == 0:
		j.queue = j.queue[1:]
	}
}

// dropWaiting removes agents from the queue that settle or end.
func (j *budgetJudge) dropWaiting(after *supervisor.State, f activation.Fact) {
	j.queue = slices.DeleteFunc(j.queue, func(who spec.ID) bool {
		m, _ := after.Member(who)
		return m.Done || f.Kind == "settle" && string(who) == f.From.Agent()
	})
	j.paused = slices.DeleteFunc(j.paused, func(who spec.ID) bool {
		m, _ := after.Member(who)
		return m.Done || f.Kind == "settle" && string(who) == f.From.Agent()
	})
}

// noteRequest adds an agent to the judge's own list of those who wait. A request may take back an
// allowance, and so answer some of them in the same step.
func (j *budgetJudge) noteRequest(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	if f.Kind != "reserve" {
		return
	}
	answered := 0
	for _, t := range out.Messages {
		if t.Kind == "granted" || t.Kind == "denied" {
			answered++
		}
	}
	if before.Waiting() == 0 && after.Waiting() > 0 || before.Waiting() > 0 && after.Waiting()+answered > before.Waiting() {
		j.queue = append(j.queue, spec.ID(f.From.Agent()))
	}
}

// checkQueue checks the judge's own list of those who wait.
func (j *budgetJudge) checkQueue(after *supervisor.State) {
	if len(j.queue) != after.Waiting() && !j.population.anyDamaged() {
		j.fail(budgetInOrder, "%d wait for money, and %v should", after.Waiting(), j.queue)
	}
}

// checkReservation checks that the reservation is open, and covers the most that the call can cost.
func (j *budgetJudge) checkReservation(sh *shell, key reservationKey, e agent.CallModel) {
	grant, granted := j.grants[key]
	m, ok := j.allModels()[e.Model]
	if !ok {
		j.fail(modelAsSet, "%s calls %q, which is no model of the run", key.who, e.Model)
	}
	most := maximumBill(m.Price, promptTokens(e.Request), e.Request.MaxOutput)
	if !granted {
		j.checkAhead(sh, key, most)
		return
	}
	if over := most.Over(grant); over.Tokens > 0 || over.Nano > 0 {
		j.fail(reservedFirst, "%s: reservation %d holds %+v, the call may cost %+v", key.who, key.reservation, grant, most)
	}
	account := j.population.super.shadow.super.State.Pool.Account(string(key.who))
	current := sh.actor.shadow.agent.State.Activation == sh.start
	if current && account.Open != key.reservation && !j.population.super.damaged {
		j.fail(reservedFirst, "%s: a model call under reservation %d, but %d is open", key.who, key.reservation, account.Open)
	}
}

// checkParked: in a parked run each agent waits for a person or for an agent below it.
func (j *budgetJudge) checkParked(after *supervisor.State) {
	if !after.IsParked() {
		return
	}
	waits := map[spec.ID]bool{}
	after.Members(func(m supervisor.Member) {
		if !m.Done {
			waits[m.Parent] = true
		}
	})
	after.Members(func(m supervisor.Member) {
		if !m.Done && m.Query == nil && !waits[m.ID] {
			j.fail(parkedRunsWaitForPeople, "the run is parked, and %s waits for nobody", m.ID)
		}
	})
}
