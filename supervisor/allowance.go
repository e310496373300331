package supervisor

import (
	"slices"

	"github.com/benbjohnson/immutable"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
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

// allowsAhead reports whether agents may begin attempts without asking: by the budget, the run's policy and its limits
// no answer to a request could be other than a grant.
func (s State) allowsAhead() bool {
	onTurn := func(r Rule) bool { return r.On == OnTurn }
	return s.isAmple() && s.Cancel == nil && !slices.ContainsFunc(s.Run.Policy.Rules, onTurn)
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
	s.runBudget = s.takeBack(from, f.Keep)
	return s.drainQueue()
}
