package supervisor

import (
	"math"
	"testing"

	"github.com/troupe-run/troupe/budget"
)

// A file says what other agents had of the budget. No number in it gives a run more than its limits, and what it says last counts.
func TestAttackOthersUseGivesNoBudget(t *testing.T) {
	t.Parallel()
	limit := budget.Limit{Tokens: 1000, Nano: 1000, Calls: 10}
	s := State{Phase: Live, runBudget: runBudget{Pool: budget.Pool{Limit: limit, Spent: budget.Amount{Tokens: 400}}}}
	for _, n := range []int64{math.MaxInt64, math.MinInt64, -1, 300, math.MaxInt64, 0} {
		all := budget.Amount{Tokens: n, Nano: n, Calls: n}
		s, _ = handleOthersUse(s, OthersUse{Spent: all, Held: all, Ahead: all, Kept: all, Carved: all})
		for _, a := range []budget.Amount{s.Pool.Spent, s.Pool.Held, s.Pool.Ahead, s.Pool.Kept, s.Pool.Carved} {
			if a.Tokens < 0 || a.Nano < 0 || a.Calls < 0 {
				t.Errorf("%d: %+v", n, a)
			}
		}
		if n == 300 && s.Pool.Spent.Tokens != 700 {
			t.Errorf("%+v", s.Pool.Spent)
		}
	}
	if s.Pool.Spent != (budget.Amount{Tokens: 400}) || s.Pool.Held != (budget.Amount{}) {
		t.Errorf("%+v", s.Pool)
	}
}
