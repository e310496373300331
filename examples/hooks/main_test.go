package main

import (
	"testing"

	"github.com/troupe-run/troupe/internal/test/judged"
)

func Example() {
	main()
	// Output:
	// purse deny nobody refunds more than 100
	// evidence block Name the evidence.
	// The refund was refused. Evidence: denied by hook purse: nobody refunds more than 100
}

// TestLogs: the logs of the run replay to its end and keep the rules.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	if err := serve(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	judged.Dir(t, dir, 1)
}
