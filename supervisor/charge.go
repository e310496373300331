package supervisor

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
)

// Other programs report no cost. If the run states a charge, the pool holds it from the start of the member that
// calls the program, and books it after the first call. Without a charge the cost of the run is unknown.

// chargeAccount is the account of the pool that holds the charge for a member.
func chargeAccount(id spec.ID) string { return string(id) + "/charge" }

// holdCharge holds the charge for a member that represents an agent of another program. why says why it cannot.
func holdCharge(p budget.Pool, m Member, def Definition) (next budget.Pool, why string) {
	if def.ChargeNano <= 0 {
		return p, ""
	}
	next, fits := p.HoldMoney(string(m.Parent), chargeAccount(m.ID), def.ChargeNano)
	if !fits {
		return p, fmt.Sprintf("the budget does not cover a call of %s, for which $%g is charged", def.Name, float64(def.ChargeNano)/budget.NanoPerUSD)
	}
	return next, ""
}

// settleForeignCalls books the charge of a finished member, or counts its calls as calls of unknown cost.
func settleForeignCalls(s State, m Member, calls int) State {
	def, _ := s.Run.findDefinition(m.Name)
	if !def.Foreign || def.ChargeNano <= 0 {
		s.Foreign += max(0, calls)
		return s
	}
	used := budget.Amount{}
	if calls > 0 {
		used.Nano, s.Charged = def.ChargeNano, true
	}
	s.Pool = s.Pool.Settle(chargeAccount(m.ID), 1, used)
	return s
}

// assumedForeignCalls is how many foreign calls to assume for a member whose report is lost.
func assumedForeignCalls(s State, m Member) int {
	if def, _ := s.Run.findDefinition(m.Name); def.Foreign {
		return 1
	}
	return 0
}
