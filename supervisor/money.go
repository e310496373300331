package supervisor

import (
	"cmp"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// handleReserve answers an agent that wants to call its model, or queues its request: drainQueue
// answers it later.
func handleReserve(s State, from spec.ID, f agent.Reserve) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	s, fx := s.markFirstMessage(m, nil)
	m.Seen = true
	m = m.withReserve(f)
	m.Node = cmp.Or(f.Node, m.Node)
	s = s.put(m)
	if s.Cancel != nil { //mutant:grants-during-cancel
		return s, fx // its Canceled is on the way and answers it
	}
	// its log has lost its tail: an agent requests each reservation once
	if newest := s.Pool.Account(string(from)).Newest(); f.Reservation <= newest {
		next, more := giveUpTruncated(s, from, f.Reservation, newest)
		return next, append(fx, more...)
	}
	s.runBudget = s.takeBack(m.ID, f.Request.ClosingBound()) //mutant:allowance-kept-over-a-request
	if isFrozen(s, m) {
		next, more := pauseRequest(s, m, f)
		next, answers := next.drainQueue() // what came back may be enough for others
		return next, append(append(fx, more...), answers...)
	}
	if s.Waiting() > 0 {
		next, more := s.enqueueRequest(m, f).drainQueue()
		return next, append(fx, more...)
	}
	next, more, waits := s.reserveAttempt(m, f)
	if waits {
		return s.enqueueRequest(m, f), fx
	}
	return next, append(fx, more...)
}

// reserveAttempt asks the pool and informs the agent; it is the only caller of Pool.Reserve. The
// policy may veto the turn: then, or if the budget is frozen or a provider has billed beyond its
// own rules, reserveAttempt asks only for a closing turn.
func (s State) reserveAttempt(m Member, f agent.Reserve) (next State, fx []Effect, waits bool) {
	reservation, request := f.Reservation, f.Request
	why, detail := spec.Reason(""), ""
	var by *agent.VerdictOrigin
	if !request.Final {
		if v := s.Run.Policy.Decide(OnTurn, s.turnFacts(m)); v.Vetoed {
			request.Final, why, detail, by = true, spec.Vetoed, v.Why, nameVerdict(s.Run, v)
		} else if s.Frozen {
			request.Final, why, detail = true, spec.TokenBudget, "the budget was frozen"
		} else if over := s.Pool.Overrun; !over.Zero() { //mutant:overrun-ends-nothing
			request.Final, why, detail = true, spec.TokenBudget, "a provider billed more than its rules allow"
			if over.Tokens == 0 {
				why = spec.CostBudget
			}
		}
	}
	pool, g := s.Pool.Reserve(string(m.ID), reservation, request)
	if why == "" {
		why, detail = shortageReason(g.Short), describeSubtree(s, m, g.Short)
	}
	switch g.Verdict {
	case budget.Stale:
		return s, nil, false
	case budget.Wait:
		return s, nil, true
	case budget.Denied:
		s = s.publishEvent(event.KindBudgetDenied, event.BudgetChanged{Agent: m.ID, Reservation: reservation, Why: why, Short: s.describeShortage(m.ID, f, why)})
		return s, []Effect{Tell{To: m.ID, Fact: agent.Denied{Reservation: reservation, Why: why, Detail: detail, By: by}}}, false
	case budget.Granted:
		why, detail = "", ""
	}
	before := s.runBudget
	s.Pool = pool
	granted, allowed := s.grantAllowance(m, f, s.allowsAhead())
	s.runBudget = granted
	s = s.publishBudget(event.KindBudgetReserved, m.ID, reservation, "")
	if g.Verdict == budget.Closing && why != "" {
		s = s.publishEvent(event.KindBudgetExhausted, event.BudgetChanged{Agent: m.ID, Reservation: reservation, Why: why,
			Short: before.describeShortage(m.ID, f, why), Policy: by.Event()})
	}
	return s, []Effect{Tell{To: m.ID, Fact: agent.Granted{Reservation: reservation, Output: g.Output, Calls: g.Calls,
		Closing: g.Verdict == budget.Closing, Why: why, Detail: detail, By: by, Allowance: allowed, Left: s.runLeft(m)}}}, false
}

// runLeft is the remaining budget of the run, for an agent that tells its model when a limit is near.
func (s State) runLeft(m Member) *agent.RunLeft {
	def, _ := s.Run.findDefinition(m.Name)
	if cmp.Or(def.LoopOptions.LimitNotes, s.Run.LoopOptions.LimitNotes).Near <= 0 {
		return nil
	}
	return &agent.RunLeft{Left: s.Pool.Limit.Room(s.Pool.Spent), Of: s.Pool.Limit}
}

// shortageReason is the stop reason for what was short.
func shortageReason(of budget.Short) spec.Reason {
	switch of {
	case budget.ShortMoney:
		return spec.CostBudget
	case budget.ShortCalls:
		return spec.MaxToolCalls
	case budget.ShortTokens:
		return spec.TokenBudget
	}
	return ""
}

// drainQueue answers the waiting agents, as long as the first of them gets an answer.
func (s State) drainQueue() (State, []Effect) {
	var fx []Effect
	for s.Waiting() > 0 && s.Cancel == nil { //mutant:queue-drained
		it := s.queue.byArrival.Iterator() //mutant:queue-overtaken
		_, w, _ := it.Next()
		m, _ := s.Member(w.member)
		if isFrozen(s, m) {
			next, more := pauseRequest(s, m, w.request)
			s, fx = next, append(fx, more...)
			continue
		}
		next, more, waits := s.dropRequest(m).reserveAttempt(m, w.request)
		if waits {
			break
		}
		s, fx = next, append(fx, more...)
	}
	return s, fx
}

// handleSettle closes a reservation with its cost; an unknown cost is spent in full.
func handleSettle(s State, from spec.ID, f agent.Settle) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok {
		return s, nil
	}
	before := s.Pool
	if s.queue.waitsUpTo(m.queueKey, f.Reservation) {
		s = s.dropRequest(m)
		m.queueKey = 0 // dropRequest changed the member in s, not this copy
	}
	opened := s.Pool.OpenAhead(string(from), f.Under, f.Reservation, f.Taken)
	s.Pool = opened
	switch {
	case f.Unused:
		s.Pool = s.Pool.Return(string(from), f.Reservation)
	case f.Lost:
		s.Pool = s.Pool.Lose(string(from), f.Reservation, f.Used.Calls)
	default:
		s.Pool = s.Pool.Settle(string(from), f.Reservation, f.Used)
	}
	if f.Under != 0 {
		s.Pool = s.Pool.Refill(string(from), opened)
	}
	if !m.Done {
		m.Turns = max(m.Turns, f.Turn)
		m.Usage = m.Usage.Add(f.Usage)
		m.Calls = int(s.Pool.Account(string(from)).Spent.Calls)
		s = s.put(m)
	}
	if s.Pool != before {
		s = s.publishBudget(event.KindBudgetSettled, from, f.Reservation, "")
	}
	if s.Pool.Overrun != before.Overrun {
		s = s.publishBudget(event.KindBudgetOverrun, from, f.Reservation, "")
	}
	return s.drainQueue() //mutant:settling-wakes-others
}

// handleLimitSet changes the limits of a live run, or freezes it; committed amounts stay. A change of
// anything but the time limits lifts the freeze.
func handleLimitSet(s State, f LimitSet) (State, []Effect) {
	if s.Phase == Over { // its result is published //mutant:limits-change-after-the-end
		return s, nil
	}
	s = s.publishEvent(event.KindBudgetChanged, event.BudgetChanged{By: f.By})
	var more []Effect
	if f.setsTime() { // for agents that begin later, too
		s.Run.Agent.SoftMS, s.Run.Agent.HardMS = f.SoftMS, f.HardMS
		more = s.roster.tellLive(agent.TimeLimitSet{SoftMS: f.SoftMS, HardMS: f.HardMS})
	}
	if f.namesOnlyTime() {
		return s, more
	}
	s.Frozen = f.Freeze
	switch {
	case f.Freeze:
	case f.Patch:
		s.Run.Limits = f.Limits.Merge(s.Run.Limits)
	default:
		s.Run.Limits = withRunDefaults(f.Limits)
	}
	s.Pool.Limit = budget.Limit{Tokens: s.Run.Limits.Tokens, Nano: s.Run.Limits.Nano, Calls: s.Run.Limits.Calls}
	s.holders.recalling = true // the new limits take effect with the next attempt of each agent
	if s.Frozen {
		s = requeueUnfrozen(s)
	}
	s, fx := s.drainQueue()
	return s, append(more, fx...)
}

// forfeitReservations spends every open reservation and charge in full and frees the kept amounts, without
// waiting for any member.
func (s State) forfeitReservations() State {
	next := s
	s.Members(func(m Member) {
		if m.Done {
			return
		}
		next = settleForeignCalls(next.dropRequest(m), m, assumedForeignCalls(next, m))
		next.Pool, next.holders = next.Pool.Leave(string(m.ID)), next.holders.without(m.ID)
	})
	return next
}
