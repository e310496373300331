package supervisor

import (
	"slices"

	"github.com/benbjohnson/immutable"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// recallsAtOnce is how many allowances one step recalls. Each return recalls further ones, so that no
// step costs more because many agents hold one (PROTOCOL P24).
const recallsAtOnce = 32

// allowanceHolders are the members whose allowances were granted and not recalled, with the
// reservation of the grant. It is a value that shares structure.
type allowanceHolders struct {
	grants    *immutable.SortedMap[string, int] // never written again
	recalling bool                              // all of them, whether or not the budget is ample
}

func (h allowanceHolders) with(id spec.ID, grant int) allowanceHolders {
	if h.grants == nil {
		h.grants = immutable.NewSortedMap[string, int](nil)
	}
	h.grants = h.grants.Set(string(id), grant)
	return h
}

func (h allowanceHolders) without(id spec.ID) allowanceHolders {
	if h.grants == nil {
		return h
	}
	h.grants = h.grants.Delete(string(id))
	return h
}

// first returns up to n holders, in the order of their ids.
func (h allowanceHolders) first(n int) (held []holder) {
	if h.grants == nil {
		return nil
	}
	for it := h.grants.Iterator(); !it.Done() && len(held) < n; {
		id, grant, _ := it.Next()
		held = append(held, holder{spec.ID(id), grant})
	}
	return held
}

type holder struct {
	member spec.ID
	grant  int
}

// grantAllowance adds an allowance to the grant that was just made, if the agent asked for one and the
// budget is ample.
func (s State) grantAllowance(m Member, f agent.Reserve) (State, *budget.Allowance) {
	if !s.allowsAhead() || f.Ahead < 1 || f.Request.Final || m.Stopping { //mutant:allowance-while-others-wait
		return s, nil
	}
	pool, granted, ok := s.Pool.Grant(string(m.ID), min(f.Ahead, agent.GrantsAheadMax))
	if !ok {
		return s, nil
	}
	s.Pool, s.holders = pool, s.holders.with(m.ID, f.Reservation)
	return s, &granted
}

// allowsAhead reports whether agents may begin attempts without asking: no agent waits for budget, and by
// the run's policy and limits no answer to a request could be other than a grant.
func (s State) allowsAhead() bool {
	onTurn := func(r Rule) bool { return r.On == OnTurn }
	return s.Waiting() == 0 && !s.holders.recalling && s.Cancel == nil && !s.Frozen && s.Pool.Overrun.Zero() && !slices.ContainsFunc(s.Run.Policy.Rules, onTurn)
}

// recallAllowances asks members for their allowances once the budget is no longer ample.
func (s State) recallAllowances(fx []Effect) (State, []Effect) {
	if s.Cancel != nil || s.Phase == Over || s.allowsAhead() && !s.Pool.Tight() { //mutant:tight-allowances-kept
		return s, fx
	}
	for _, h := range s.holders.first(recallsAtOnce) { //mutant:allowances-never-recalled
		s.holders = s.holders.without(h.member)
		fx = append(fx, Tell{To: h.member, Fact: agent.AllowanceRecalled{Grant: h.grant}})
	}
	s.holders.recalling = s.holders.recalling && len(s.holders.first(1)) > 0
	return s, fx
}

// takeBack ends a member's allowance; of it, keep stays reserved for the member's closing turn.
func (s State) takeBack(m Member, keep budget.Amount) State {
	s.Pool, s.holders = s.Pool.TakeBack(string(m.ID), keep), s.holders.without(m.ID)
	return s
}

// handleReturnAllowance takes back an allowance that an agent returns. An attempt that it has begun
// under the allowance becomes an ordinary reservation.
func handleReturnAllowance(s State, from spec.ID, f agent.ReturnAllowance) (State, []Effect) {
	m, ok := s.Member(from)
	account := s.Pool.Account(string(from))
	if !ok || m.Done || account.AheadOf != f.Grant {
		return s, nil
	}
	if newest := account.Newest(); f.Reservation < newest {
		return giveUpTruncated(s, from, f.Reservation, newest)
	}
	if f.Open {
		s.Pool = s.Pool.OpenAhead(string(from), f.Grant, f.Reservation, f.Taken)
	}
	return s.takeBack(m, f.Keep).drainQueue()
}
