package agent_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/budget"
)

// printReturn prints the return of an allowance.
func printReturn(e agent.ReturnAllowance) string {
	text := fmt.Sprintf("return-allowance %d reservation=%d", e.Grant, e.Reservation)
	if e.Open {
		text += fmt.Sprintf(" open taken=%d", e.Taken.Tokens)
	}
	if !e.Keep.Zero() {
		text += fmt.Sprintf(" keep=%d", e.Keep.Tokens)
	}
	return text
}

// parseRunLeft reads what is left of the run's tokens: `left=N of=N`.
func parseRunLeft(t *testing.T, d *datadriven.TestData) *agent.RunLeft {
	t.Helper()
	of := argumentNumber(t, d, "of", 0)
	if of == 0 {
		return nil
	}
	return &agent.RunLeft{Left: budget.Amount{Tokens: int64(argumentNumber(t, d, "left", 0))}, Of: budget.Limit{Tokens: int64(of)}}
}

// parseAllowance reads the allowance of a grant: `allowance=TOKENS`, with `allowance-calls=N` and `kept=TOKENS`.
func parseAllowance(t *testing.T, d *datadriven.TestData) *budget.Allowance {
	t.Helper()
	room := argumentNumber(t, d, "allowance", 0)
	if room == 0 {
		return nil
	}
	money := budget.Unlimited
	return &budget.Allowance{Room: budget.Amount{Tokens: int64(room), Nano: money, Calls: int64(argumentNumber(t, d, "allowance-calls", 200))},
		Kept: budget.Amount{Tokens: int64(argumentNumber(t, d, "kept", 6000)), Nano: money}}
}
