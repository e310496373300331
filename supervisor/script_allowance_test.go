package supervisor_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/budget"
)

// printAllowance prints the allowance that comes with a grant.
func printAllowance(a *budget.Allowance) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf(" allowance=%d tokens, %d calls", a.Room.Tokens, a.Room.Calls)
}

// takenAmount reads what an attempt took out of its allowance: `taken=N taken-calls=N`.
func takenAmount(t *testing.T, d *datadriven.TestData) budget.Amount {
	t.Helper()
	return budget.Amount{Tokens: int64(argNumber(t, d, "taken", 0)), Calls: int64(argNumber(t, d, "taken-calls", 0))}
}
